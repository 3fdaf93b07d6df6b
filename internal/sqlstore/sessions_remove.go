package sqlstore

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// removed is a message that is being deleted.
type removed struct {
	removedMessage
	session       int64
	agent         string
	counted       bool   // among those that wait to be considered
	consideration string // that took it, or ""
	text          string // as it is stored
}

func queryRemoved(ctx context.Context, tx sqldb.Tx, where string, args ...any) ([]removed, error) {
	rows, err := tx.Query(ctx, `SELECT row, coalesce(owner_row, 0), session_row, agent_id, role = 'user' AND settled = 0,
		coalesce(consideration, ''), message FROM session_messages WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	return sqldb.Collect(rows, func(scan func(...any) error) (m removed, err error) {
		if err := scan(&m.row, &m.owner, &m.session, &m.agent, &m.counted, &m.consideration, &m.text); err != nil {
			return m, err
		}
		err = decodeMessage(m.row, []byte(m.text), &m.message)
		if m.unreadable = sqldb.Skip(tx, err); m.unreadable {
			err = nil
		}
		return m, err
	})
}

// removeMessages deletes messages with what was derived from them. The sessions' counters are the caller's business.
func removeMessages(ctx context.Context, tx sqldb.Tx, messages []removed) error {
	if len(messages) == 0 {
		return nil
	}
	derived := make([]removedMessage, len(messages))
	for i, m := range messages {
		derived[i] = m.removedMessage
	}
	if err := unindexMessages(ctx, tx, derived); err != nil {
		return err
	}
	for _, m := range messages {
		if _, err := tx.Exec(ctx, `DELETE FROM session_messages WHERE row = ?`, m.row); err != nil {
			return err
		}
	}
	return nil
}

// whenSaid are times of messages of a session: those at its ends, and the first and the last of people.
const whenSaid = `
	SELECT said_at FROM (SELECT said_at FROM session_messages WHERE session_row = ?1 ORDER BY position LIMIT 1) UNION ALL
	SELECT said_at FROM (SELECT said_at FROM session_messages WHERE session_row = ?1 ORDER BY position DESC LIMIT 1) UNION ALL
	SELECT said_at FROM (SELECT said_at FROM session_messages INDEXED BY session_messages_by_time
		WHERE session_row = ?1 AND role = 'user' AND withheld = 0 ORDER BY said_at LIMIT 1) UNION ALL
	SELECT said_at FROM (SELECT said_at FROM session_messages INDEXED BY session_messages_by_time
		WHERE session_row = ?1 AND role = 'user' AND withheld = 0 ORDER BY said_at DESC LIMIT 1)`

// shrink deletes messages and brings their sessions up to date. It returns the sessions.
func shrink(ctx context.Context, tx sqldb.Tx, messages []removed) (sessions []int64, err error) {
	if err := removeMessages(ctx, tx, messages); err != nil {
		return nil, err
	}
	type loss struct {
		messages, people, waiting int64
		agents                    map[string]int64
	}
	losses := map[int64]*loss{}
	for _, m := range messages {
		l := losses[m.session]
		if l == nil {
			l = &loss{agents: map[string]int64{}}
			losses[m.session] = l
			sessions = append(sessions, m.session)
		}
		l.messages++
		l.agents[m.agent]++
		if m.message.Role == memory.RoleUser {
			l.people++
		}
		if m.counted {
			l.waiting++
		}
	}
	for _, row := range sessions {
		l := losses[row]
		// When it began and ended is told by what is left at its ends, and by what people said, of which there is an index: the
		// topics of a period are looked for between the two. Looking through the rest would cost the session.
		_, err := tx.Exec(ctx, `UPDATE sessions SET messages = messages - ?2, user_messages = user_messages - ?3,
			unconsidered = unconsidered - ?4,
			first_said_at = (SELECT min(said_at) FROM (`+whenSaid+`)), last_said_at = (SELECT max(said_at) FROM (`+whenSaid+`)),
			oldest_at = coalesce((SELECT received_at FROM session_messages WHERE session_row = ?1 ORDER BY position LIMIT 1),
				active_at, oldest_at) WHERE row = ?1`, row, l.messages, l.people, l.waiting)
		if err != nil {
			return nil, err
		}
		_, err = tx.Exec(ctx, `UPDATE sessions SET consider_at = NULL, consider_after = NULL WHERE row = ? AND unconsidered <= 0`, row)
		if err != nil {
			return nil, err
		}
		for agent, n := range l.agents {
			_, err := tx.Exec(ctx, `UPDATE session_agents SET messages = messages - ? WHERE session_row = ? AND agent_id = ?`, n, row, agent)
			if err != nil {
				return nil, err
			}
		}
		if _, err := tx.Exec(ctx, `DELETE FROM session_agents WHERE session_row = ? AND messages <= 0`, row); err != nil {
			return nil, err
		}
	}
	return sessions, nil
}

// Forget implements session.Store. What it does is done in steps, each of which leaves everything consistent: calling it
// again goes on, also with sessions of which an earlier call had deleted a part and nobody takes part any more.
func (s *Sessions) Forget(ctx context.Context, user memory.User) (forgotten session.Forgotten, err error) {
	if err := s.Sweep(ctx); err != nil {
		return forgotten, err
	}
	var userRow int64
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		userRow, err = UserRow(ctx, q, user)
		return err
	})
	if err != nil || userRow == 0 {
		return forgotten, err
	}
	for done := false; !done; {
		err := s.rewrite(ctx, func(tx sqldb.Tx) (err error) {
			done, err = forgetIndex(ctx, tx, userRow)
			return err
		})
		if err != nil {
			return forgotten, err
		}
	}
	for more := true; more; {
		var step forgetting
		err := s.rewrite(ctx, func(tx sqldb.Tx) (err error) {
			step, err = s.forgetSome(ctx, tx, userRow)
			return err
		})
		if err != nil {
			return forgotten, err
		}
		forgotten.Messages += step.messages
		forgotten.Sessions += int64(len(step.empty))
		for _, row := range step.empty {
			if err := s.complete(context.WithoutCancel(ctx), row); err != nil {
				return forgotten, err
			}
		}
		more = step.more
	}
	for done := false; !done; {
		err := s.rewrite(ctx, func(tx sqldb.Tx) (err error) {
			if done, err = forgetIndex(ctx, tx, userRow); err != nil || !done {
				return err
			}
			if _, err := tx.Exec(ctx, `DELETE FROM current_sessions WHERE namespace = ? AND user_row = ?`, user.Namespace, userRow); err != nil {
				return err
			}
			return DropUserRow(ctx, tx, userRow) // at last: another user may get its number
		})
		if err != nil {
			return forgotten, err
		}
	}
	return forgotten, nil
}

// voidSummaries deletes the summaries of sessions out of which words were taken, also one that is being made, and asks
// for new ones where there were any.
func voidSummaries(ctx context.Context, tx sqldb.Tx, sessions []int64) error {
	for _, row := range sessions {
		_, err := tx.Exec(ctx, `UPDATE sessions SET revision = revision + 1, summarize_at = CASE
			WHEN id IS NULL THEN NULL
			WHEN EXISTS (SELECT 1 FROM session_summaries WHERE session_row = ?1) THEN ?2
			ELSE summarize_at END WHERE row = ?1`, row, sqldb.Micros(time.Now()))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM session_summaries WHERE session_row = ?`, row); err != nil {
			return err
		}
	}
	return nil
}

// forgetting is a step of Forget.
type forgetting struct {
	messages int64
	empty    []int64 // sessions that were given up
	more     bool
}

// forgetSome deletes some of the user's messages. When none is left, it takes the user out of some sessions: whoever has
// messages in a session takes part in it, also while a bot goes on to append.
func (s *Sessions) forgetSome(ctx context.Context, tx sqldb.Tx, userRow int64) (step forgetting, err error) {
	messages, err := queryRemoved(ctx, tx, `owner_row = ? ORDER BY row LIMIT ?`, userRow, deletedMessages)
	if err != nil {
		return step, err
	}
	if err := s.forgetAnswers(ctx, tx, messages); err != nil {
		return step, err
	}
	sessions, err := shrink(ctx, tx, messages)
	if err != nil {
		return step, err
	}
	if err := voidSummaries(ctx, tx, sessions); err != nil {
		return step, err
	}
	step.messages = int64(len(messages))
	if len(messages) == deletedMessages {
		step.more = true
		return step, nil
	}
	left, err := leaveSome(ctx, tx, userRow)
	if err != nil {
		return step, err
	}
	step.more = len(left) == leftSessions
	err = s.freeEmpty(ctx, tx, &step, left)
	return step, err
}

// forgetAnswers takes what the bot answered to the user out of the dialogues that it became a part of, other people's
// included. The user's own words in them are the queue's business. Dialogues hold messages as sessions do.
func (s *Sessions) forgetAnswers(ctx context.Context, tx sqldb.Tx, messages []removed) error {
	answers := map[string]map[string]bool{} // texts by consideration
	for _, m := range messages {
		if m.consideration == "" || m.message.Role == memory.RoleUser {
			continue
		}
		if answers[m.consideration] == nil {
			answers[m.consideration] = map[string]bool{}
		}
		answers[m.consideration][m.text] = true
	}
	for id, texts := range answers {
		if err := s.emptyAnswers(ctx, tx, id, texts); err != nil {
			return err
		}
	}
	return nil
}

// emptyAnswers takes messages, as they are stored, out of a dialogue; the others keep their places.
func (s *Sessions) emptyAnswers(ctx context.Context, tx sqldb.Tx, consideration string, texts map[string]bool) error {
	var row int64
	var list []byte
	err := tx.QueryRow(ctx, `SELECT row, messages FROM dialogues WHERE id = ?`, consideration).Scan(&row, &list)
	if err != nil {
		return sqldb.Optional(err)
	}
	var d memory.Dialogue
	if sqldb.Skip(tx, sqldb.DecodeJSON(dialoguesTable, consideration, list, &d.Messages)) {
		d.Messages = nil // none of it can be taken out alone
	}
	before, err := encodeMessages(d.Messages)
	if err != nil {
		return err
	}
	for i, text := range before {
		if texts[text] {
			d.Messages[i] = memory.Message{Role: memory.RoleSystem, Time: d.Messages[i].Time} // as Dialogue.Without
		}
	}
	after, err := encodeMessages(d.Messages)
	if err != nil {
		return err
	}
	err = s.queue.pending.changing(ctx, tx, []int64{row}, func() error {
		_, err := tx.Exec(ctx, `UPDATE dialogues SET messages = ?, payload_hash = x'' WHERE row = ?`, jsonArray(after), row)
		return err
	})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE considerations SET checkpoint = NULL WHERE dialogue_row = ?`, row)
	return err
}

// leaveSome takes the user out of some sessions.
func leaveSome(ctx context.Context, tx sqldb.Tx, userRow int64) (sessions []int64, err error) {
	rows, err := tx.Query(ctx, `SELECT session_row FROM session_participants WHERE user_row = ? LIMIT ?`, userRow, leftSessions)
	if err != nil {
		return nil, err
	}
	if sessions, err = sqldb.Column[int64](rows); err != nil {
		return nil, err
	}
	for _, row := range sessions {
		if err := leave(ctx, tx, row, userRow); err != nil {
			return nil, err
		}
	}
	return sessions, voidSummaries(ctx, tx, sessions)
}

// freeEmpty gives up the ids of those sessions in which nobody takes part and no person's words are left. What is left of
// the bot's was said to somebody who is not there any more.
func (s *Sessions) freeEmpty(ctx context.Context, tx sqldb.Tx, f *forgetting, sessions []int64) error {
	for _, row := range sessions {
		found, err := querySessions(ctx, tx, `WHERE s.row = ? AND s.id IS NOT NULL AND s.user_messages = 0 AND s.participants = 0`, row)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			continue
		}
		if _, err := s.free(ctx, tx, &found[0]); err != nil {
			return err
		}
		f.messages += found[0].Messages
		f.empty = append(f.empty, row)
	}
	return nil
}

// Expire implements session.Store.
func (s *Sessions) Expire(ctx context.Context, e session.Expiry) (deleted int64, err error) {
	for more := true; more; {
		n := int64(0)
		err := s.rewrite(ctx, func(tx sqldb.Tx) (err error) {
			n, more, err = expire(ctx, tx, e)
			return err
		})
		if err != nil {
			return deleted, err
		}
		deleted += n
	}
	return deleted, nil
}

// expire deletes at most so many messages of the session that has the oldest, and the session when nothing is left of it.
func expire(ctx context.Context, tx sqldb.Tx, e session.Expiry) (n int64, more bool, err error) {
	found, err := querySessions(ctx, tx, `WHERE s.namespace = ? AND s.oldest_at < ? AND s.id IS NOT NULL
		ORDER BY s.oldest_at LIMIT 1`, e.Namespace, sqldb.Micros(e.Before))
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	s := found[0]
	messages, err := queryRemoved(ctx, tx, `row IN (SELECT row FROM session_messages WHERE session_row = ? ORDER BY position LIMIT ?)
		AND received_at < ? ORDER BY position`, s.row, e.Limit, sqldb.Micros(e.Before))
	if err != nil {
		return 0, false, err
	}
	if _, err := shrink(ctx, tx, messages); err != nil {
		return 0, false, err
	}
	if n = int64(len(messages)); s.Messages > n {
		return n, n > 0, nil
	}
	_, err = deleteSession(ctx, tx, s.row) // with very many who take part it takes another step
	return n, true, err
}
