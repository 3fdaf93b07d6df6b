package sqlstore

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Limits of one transaction. All other writes wait for it.
const (
	deletedMessages  = 1000
	deletedDialogues = 200
	leftSessions     = 200
)

// Delete implements session.Store.
func (s *Sessions) Delete(ctx context.Context, v session.Viewer, sessionID string) (deleted session.Deleted, err error) {
	var row int64
	err = s.rewrite(ctx, func(tx sqldb.Tx) error {
		found, err := writableSession(ctx, tx, v, sessionID)
		if err != nil {
			return err
		}
		row, deleted = found.row, session.Deleted{Messages: found.Messages}
		deleted.Considerations, err = s.free(ctx, tx, found)
		return err
	})
	if err != nil {
		return session.Deleted{}, err
	}
	// The id is free, so the call cannot be repeated. The deletion is completed even if the caller has gone.
	return deleted, s.complete(context.WithoutCancel(ctx), row)
}

// free releases the session's id, and deletes its pending considerations.
func (s *Sessions) free(ctx context.Context, tx sqldb.Tx, freed *sessionRow) (considerations int64, err error) {
	for _, statement := range []string{
		`UPDATE sessions SET id = NULL, ref = NULL, consider_at = NULL, summarize_at = NULL WHERE row = ?`,
		`DELETE FROM current_sessions WHERE session_row = ?`,
		`DELETE FROM session_summaries WHERE session_row = ?`,
		`DELETE FROM digest_findings WHERE session_row = ?`,
	} {
		if _, err := tx.Exec(ctx, statement, freed.row); err != nil {
			return 0, err
		}
	}
	rows, err := tx.Query(ctx, `SELECT DISTINCT dialogue_row FROM considerations WHERE session_row = ? AND state `+isPending, freed.row)
	if err != nil {
		return 0, err
	}
	dialogues, err := sqldb.Column[int64](rows)
	if err != nil {
		return 0, err
	}
	var users []string
	err = s.queue.pending.changing(ctx, tx, dialogues, func() error {
		rows, err := tx.Query(ctx, `DELETE FROM considerations WHERE session_row = ? AND state `+isPending+` RETURNING user_id`, freed.row)
		if err == nil {
			users, err = sqldb.Column[string](rows)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, id := range users {
		if err := advance(ctx, tx, memory.User{Namespace: freed.Namespace, ID: id}, time.Now()); err != nil {
			return 0, err
		}
	}
	return int64(len(users)), nil
}

// complete deletes, in steps, the rest of a session whose id was released. A transaction continues with the next step while there is less
// to do than the limit of a step.
func (s *Sessions) complete(ctx context.Context, row int64) error {
	for more := true; more; {
		err := s.rewrite(ctx, func(tx sqldb.Tx) (err error) {
			for _, step := range []func(context.Context, sqldb.Tx, int64) (more bool, err error){deleteMessages, s.emptyDialogues, deleteSession} {
				if more, err = step(ctx, tx, row); more || err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func deleteMessages(ctx context.Context, tx sqldb.Tx, sessionRow int64) (more bool, err error) {
	removed, err := queryRemoved(ctx, tx, `session_row = ? ORDER BY position LIMIT ?`, sessionRow, deletedMessages)
	if err != nil {
		return false, err
	}
	return len(removed) == deletedMessages, removeMessages(ctx, tx, removed)
}

// emptyDialogues removes the messages from the dialogues of a session. Their outcomes stay, without quotes, and the messages keep their
// positions. A dialogue without considerations is deleted.
func (s *Sessions) emptyDialogues(ctx context.Context, tx sqldb.Tx, sessionRow int64) (more bool, err error) {
	type dialogue struct {
		row      int64
		messages []byte
	}
	rows, err := tx.Query(ctx, `SELECT row, messages FROM dialogues WHERE session_row = ? LIMIT ?`, sessionRow, deletedDialogues)
	if err != nil {
		return false, err
	}
	found, err := sqldb.Collect(rows, func(scan func(...any) error) (d dialogue, err error) {
		err = scan(&d.row, &d.messages)
		return d, err
	})
	if err != nil {
		return false, err
	}
	for _, f := range found {
		deleted, err := tx.Affect(ctx, `DELETE FROM dialogues WHERE row = ?1
			AND NOT EXISTS (SELECT 1 FROM considerations WHERE dialogue_row = ?1)`, f.row)
		if err != nil {
			return false, err
		}
		if deleted > 0 {
			continue
		}
		var d memory.Dialogue
		if sqldb.Skip(tx, sqldb.DecodeJSON(dialoguesTable, f.row, f.messages, &d.Messages)) {
			d.Messages = nil
		}
		for _, speaker := range d.Speakers() {
			d, _ = d.Without(speaker) // without speakers no message is left
		}
		texts, err := encodeMessages(d.Messages)
		if err != nil {
			return false, err
		}
		err = s.queue.pending.changing(ctx, tx, []int64{f.row}, func() error {
			_, err := tx.Exec(ctx, `UPDATE dialogues SET messages = ?, payload_hash = x'', session_row = NULL, session_id = '',
				turn_id = '', otel_trace_id = '' WHERE row = ?`, jsonArray(texts), f.row)
			return err
		})
		if err != nil {
			return false, err
		}
		_, err = tx.Exec(ctx, `UPDATE considerations SET checkpoint = NULL, session_row = NULL WHERE dialogue_row = ?`, f.row)
		if err == nil {
			err = removeQuotes(ctx, tx, f.row)
		}
		if err != nil {
			return false, err
		}
	}
	return len(found) == deletedDialogues, nil
}

const deletedReason = "the session has been deleted"

// removeQuotes removes quotes from the outcomes of a dialogue: reasons quote messages, changes hold memories.
func removeQuotes(ctx context.Context, tx sqldb.Tx, dialogueRow int64) error {
	return rewriteOutcomes(ctx, tx, dialogueRow, func(o *memory.Outcome) {
		replace(&o.Reason, deletedReason)
		replace(&o.Error, deletedReason)
		for i := range o.Changes {
			o.Changes[i].Text = ""
			replace(&o.Changes[i].Reason, deletedReason)
		}
	})
}

// deleteSession deletes the session row, and the rows of users without other stored data.
func deleteSession(ctx context.Context, tx sqldb.Tx, sessionRow int64) (more bool, err error) {
	rows, err := tx.Query(ctx, `SELECT user_row FROM session_participants WHERE session_row = ? LIMIT ?`, sessionRow, deletedMessages)
	if err != nil {
		return false, err
	}
	users, err := sqldb.Column[int64](rows)
	if err != nil {
		return false, err
	}
	if len(users) == deletedMessages {
		for _, user := range users {
			if err := removeParticipant(ctx, tx, sessionRow, user); err != nil {
				return false, err
			}
			if err := DropUserRow(ctx, tx, user); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE row = ?`, sessionRow); err != nil {
		return false, err
	}
	for _, user := range users {
		if err := DropUserRow(ctx, tx, user); err != nil {
			return false, err
		}
	}
	return false, nil
}

// removeParticipant removes a user from the participants.
func removeParticipant(ctx context.Context, tx sqldb.Tx, sessionRow, userRow int64) error {
	left, err := tx.Affect(ctx, `DELETE FROM session_participants WHERE user_row = ? AND session_row = ?`, userRow, sessionRow)
	if err != nil || left == 0 {
		return err
	}
	if _, err = tx.Exec(ctx, `UPDATE sessions SET participants = participants - 1 WHERE row = ?`, sessionRow); err != nil {
		return err
	}
	return replaceRef(ctx, tx, sessionRow, userRow)
}

// Sweep implements session.Store.
func (s *Sessions) Sweep(ctx context.Context) error {
	var left []int64
	err := s.db.Read(ctx, func(q sqldb.Querier) error {
		rows, err := q.Query(ctx, `SELECT row FROM sessions WHERE id IS NULL`)
		if err == nil {
			left, err = sqldb.Column[int64](rows)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, row := range left {
		if err := s.complete(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// removed is a message being deleted.
type removed struct {
	removedMessage
	session       int64
	agent         string
	counted       bool   // counted as pending
	consideration string // that considers it, or ""
	text          string // in stored form
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

// removeMessages deletes messages and their derived data. The caller updates the sessions' counters.
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

// messageTimes selects the times of a session's first and last message, and of the first and the last message of people.
const messageTimes = `
	SELECT said_at FROM (SELECT said_at FROM session_messages WHERE session_row = ?1 ORDER BY position LIMIT 1) UNION ALL
	SELECT said_at FROM (SELECT said_at FROM session_messages WHERE session_row = ?1 ORDER BY position DESC LIMIT 1) UNION ALL
	SELECT said_at FROM (SELECT said_at FROM session_messages INDEXED BY session_messages_by_time
		WHERE session_row = ?1 AND role = 'user' AND withheld = 0 ORDER BY said_at LIMIT 1) UNION ALL
	SELECT said_at FROM (SELECT said_at FROM session_messages INDEXED BY session_messages_by_time
		WHERE session_row = ?1 AND role = 'user' AND withheld = 0 ORDER BY said_at DESC LIMIT 1)`

// shrink deletes messages, updates their sessions and returns them.
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
		// The first and the last time come from the remaining messages at the ends, and from those of users, for which there is an
		// index. Searches for topics of a period rely on the two. Reading all other messages would be too slow.
		_, err := tx.Exec(ctx, `UPDATE sessions SET messages = messages - ?2, user_messages = user_messages - ?3,
			unconsidered = unconsidered - ?4,
			first_said_at = (SELECT min(said_at) FROM (`+messageTimes+`)), last_said_at = (SELECT max(said_at) FROM (`+messageTimes+`)),
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

// Forget implements session.Store. It works in steps, each of which leaves the data consistent, so an interrupted call can be repeated. It
// also completes the deletion of sessions that an earlier call had begun.
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
			return dropUser(ctx, tx, userRow) // last, because another user may get the row number
		})
		if err != nil {
			return forgotten, err
		}
	}
	return forgotten, nil
}

// invalidateSummaries deletes the summaries of sessions that lost messages, invalidates running ones, and requests new ones where there were
// any.
func invalidateSummaries(ctx context.Context, tx sqldb.Tx, sessions []int64) error {
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

// forgetting is the result of a step of Forget.
type forgetting struct {
	messages int64
	empty    []int64 // released sessions
	more     bool
}

// forgetSome deletes some of the user's messages. When none is left, it removes the user from some sessions: as long as a user has
// messages in a session the user is a participant, even if a bot keeps appending.
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
	if err := invalidateSummaries(ctx, tx, sessions); err != nil {
		return step, err
	}
	step.messages = int64(len(messages))
	if len(messages) == deletedMessages {
		step.more = true
		return step, nil
	}
	left, err := removeFromSessions(ctx, tx, userRow)
	if err != nil {
		return step, err
	}
	step.more = len(left) == leftSessions
	err = s.freeEmpty(ctx, tx, &step, left)
	return step, err
}

// forgetAnswers removes the bot's answers to the user from all dialogues, including those of other users. The queue removes the user's
// own words. Dialogues store messages in the same form as sessions.
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

// emptyAnswers removes messages, given in stored form, from a dialogue. The others keep their positions.
func (s *Sessions) emptyAnswers(ctx context.Context, tx sqldb.Tx, consideration string, texts map[string]bool) error {
	var row int64
	var list []byte
	err := tx.QueryRow(ctx, `SELECT row, messages FROM dialogues WHERE id = ?`, consideration).Scan(&row, &list)
	if err != nil {
		return sqldb.Optional(err)
	}
	var d memory.Dialogue
	if sqldb.Skip(tx, sqldb.DecodeJSON(dialoguesTable, consideration, list, &d.Messages)) {
		d.Messages = nil // single messages cannot be removed
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

// removeFromSessions removes the user from some sessions.
func removeFromSessions(ctx context.Context, tx sqldb.Tx, userRow int64) (sessions []int64, err error) {
	rows, err := tx.Query(ctx, `SELECT session_row FROM session_participants WHERE user_row = ? LIMIT ?`, userRow, leftSessions)
	if err != nil {
		return nil, err
	}
	if sessions, err = sqldb.Column[int64](rows); err != nil {
		return nil, err
	}
	for _, row := range sessions {
		if err := removeParticipant(ctx, tx, row, userRow); err != nil {
			return nil, err
		}
	}
	return sessions, invalidateSummaries(ctx, tx, sessions)
}

// freeEmpty releases the ids of sessions without participants and without messages of users. The remaining messages of the bot were
// sent to a forgotten user.
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

// expire deletes at most so many messages of the session that has the oldest one, and the session if it is empty then.
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
	_, err = deleteSession(ctx, tx, s.row) // with very many participants it takes another step
	return n, true, err
}
