package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Record implements session.Store.
func (s *Sessions) Record(ctx context.Context, r session.Record) (c memory.Consideration, done session.Appended, err error) {
	dialogue, leftOut := withoutSkipped(r.Acceptance)
	r.Messages = dialogue.Messages
	texts, err := encodeMessages(r.Messages)
	if err != nil {
		return c, done, err
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		c, done = memory.Consideration{}, session.Appended{}
		a := r.Acceptance
		a.Dialogue = dialogue
		id, err := acceptedBefore(ctx, tx, a)
		if err != nil {
			return err
		}
		if id != "" {
			job, err := getJob(ctx, tx, a.Dialogue.Scope.User(), id, memory.Everything())
			c = job.Consideration
			return err
		}
		if !slices.Contains(leftOut, false) { // no message is kept
			c, err = s.queue.accept(ctx, tx, a, jsonArray(texts), 0)
			return err
		}
		w, err := s.appendMessages(ctx, tx, r.Append, texts, leftOut, a.ID)
		if err != nil {
			return err
		}
		if c, err = s.consider(ctx, tx, w, a, texts); err != nil {
			return err
		}
		s.cache.put(tx, r.Scope, w.session, w.users)
		done = w.done
		return s.Quotas.historyWithin(ctx, tx, w)
	})
	return c, done, s.Quotas.Note(err)
}

// withoutSkipped returns the dialogue without the words of skipped users, and which messages the session excludes because of that.
func withoutSkipped(a queue.Acceptance) (d memory.Dialogue, leftOut []bool) {
	d = a.Dialogue
	for speaker := range a.Skip {
		d, _ = d.Without(speaker)
	}
	leftOut = make([]bool, len(d.Messages))
	for i, m := range d.Messages {
		leftOut[i] = len(a.Skip) > 0 && m.Role == memory.RoleSystem && m.ID == "" && m.AgentID == "" && m.Content == "" &&
			m.Metadata == "" && len(m.Tools) == 0
	}
	return d, leftOut
}

func jsonArray(texts []string) string { return "[" + strings.Join(texts, ",") + "]" }

// consider accepts the messages that were not considered before.
func (s *Sessions) consider(
	ctx context.Context, tx sqldb.Tx, w *appending, a queue.Acceptance, texts []string,
) (memory.Consideration, error) {
	var rest []memory.Message
	var restTexts, earlier []string
	var taken []int64 // positions
	people, considered, words, some := int64(0), map[string]bool{}, map[string]bool{}, false
	for i, f := range w.outcomes {
		m := a.Dialogue.Messages[i]
		if f.settled {
			if f.consideration != "" && !slices.Contains(earlier, f.consideration) {
				earlier = append(earlier, f.consideration)
			}
			considered[m.Speaker] = true
			continue
		}
		rest, restTexts = append(rest, m), append(restTexts, texts[i])
		if f.position == 0 { // emptied
			continue
		}
		if !f.added {
			taken = append(taken, f.position)
		}
		some = true
		if m.Role == memory.RoleUser {
			words[m.Speaker] = true
			people++
		}
	}
	reason := "these messages are in the history already and were excluded from considering"
	if len(earlier) > 0 {
		reason = "these messages were considered before, in " + strings.Join(earlier, ", ")
	}
	skip := maps.Clone(a.Skip)
	if skip == nil {
		skip = map[string]string{}
	}
	for _, speaker := range a.Speakers {
		if _, ok := skip[speaker]; !ok && (!some || considered[speaker] && !words[speaker]) {
			skip[speaker] = reason
		}
	}
	a.Skip, a.Dialogue.Messages = skip, rest
	a.Dialogue.Scope.SessionID = w.session.ID
	c, err := s.queue.accept(ctx, tx, a, jsonArray(restTexts), w.session.row)
	if err != nil {
		return c, err
	}
	for _, position := range taken {
		_, err := tx.Exec(ctx, `UPDATE session_messages SET settled = 1, consideration = ? WHERE session_row = ? AND position = ?`,
			a.ID, w.session.row, position)
		if err != nil {
			return c, err
		}
	}
	w.session.Unconsidered -= people
	w.session.schedule(w.at)
	w.done.Session = w.session.Session
	return c, w.session.save(ctx, tx)
}

// span is a part of a session to consider.
type span struct {
	messages []memory.Message
	agents   []string // of the messages
	first    int64    // positions
	last     int64
	people   int64 // messages of people
}

// pendingMessages returns the pending messages up to a position, oldest first, as many as fit into a dialogue. It is empty without a
// message of a user: until then messages of the bot stay pending.
func pendingMessages(ctx context.Context, q sqldb.Querier, sessionRow, last int64) (found span, err error) {
	person, room := int64(0), int64(0)
	err = q.QueryRow(ctx, `SELECT position, ? - octet_length(message) FROM session_messages INDEXED BY session_messages_unsettled
		WHERE session_row = ? AND settled = 0 AND role = 'user' AND position <= ? ORDER BY position LIMIT 1`,
		memory.MaxDialogueBytes, sessionRow, last).Scan(&person, &room)
	if err != nil {
		return found, sqldb.Optional(err)
	}
	// Earlier messages are included while there is room.
	err = q.QueryRow(ctx, `SELECT coalesce(min(position), ?1) FROM (SELECT position, sum(size) OVER (ORDER BY position DESC) AS size
		FROM (SELECT position, octet_length(message) AS size FROM session_messages INDEXED BY session_messages_unsettled
			WHERE session_row = ?2 AND settled = 0 AND position < ?1 ORDER BY position DESC LIMIT ?3)) WHERE size <= ?4`,
		person, sessionRow, leadingContext, room).Scan(&found.first)
	if err != nil {
		return found, err
	}
	rows, err := q.Query(ctx, `SELECT row, position, agent_id, role, coalesce((SELECT user_id FROM users WHERE id = owner_row), ''), message
		FROM session_messages INDEXED BY session_messages_unsettled
		WHERE session_row = ? AND settled = 0 AND position BETWEEN ? AND ? ORDER BY position LIMIT ?`,
		sessionRow, found.first, last, memory.MaxMessages)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	bytes := 0
	for rows.Next() {
		var row, position int64
		var agent, owner string
		var role memory.Role
		var text []byte
		var m memory.Message
		if err := rows.Scan(&row, &position, &agent, &role, &owner, &text); err != nil {
			return found, err
		}
		if sqldb.Skip(q, decodeMessage(row, text, &m)) { // it becomes empty, so that later messages are considered
			m = memory.Message{Role: role, Speaker: owner}
		}
		if bytes += m.Size(); bytes > memory.MaxDialogueBytes && len(found.messages) > 0 {
			break
		}
		found.messages, found.agents, found.last = append(found.messages, m), append(found.agents, agent), position
		if m.Role == memory.RoleUser {
			found.people++
		}
	}
	return found, rows.Err()
}

// Unconsidered implements session.Store.
func (s *Sessions) Unconsidered(ctx context.Context, namespace, sessionID string) (p session.Pending, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		p = session.Pending{}
		found, err := findSession(ctx, q, namespace, sessionID, "")
		if err != nil {
			return err
		}
		if found == nil {
			return errNoSession(sessionID)
		}
		p.Session = found.Session
		w, err := pendingMessages(ctx, q, found.row, found.Last)
		if err != nil || w.people == 0 {
			return err
		}
		p.Last = w.last
		p.Scope = memory.Scope{Namespace: namespace, Channel: found.Channel, SessionID: found.ID}
		i := slices.IndexFunc(w.messages, func(m memory.Message) bool { return m.Role == memory.RoleUser })
		p.Scope.UserID, p.Scope.AgentID = w.messages[i].Speaker, w.agents[i]
		p.Speakers = memory.Dialogue{Scope: p.Scope, Messages: w.messages}.Speakers()
		return nil
	})
	return p, err
}

// Take implements session.Store.
func (s *Sessions) Take(ctx context.Context, t session.Take) (c memory.Consideration, ok bool, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		c, ok = memory.Consideration{}, false
		a := t.Acceptance
		id, err := acceptedBefore(ctx, tx, a)
		if err != nil {
			return err
		}
		if id != "" {
			job, err := getJob(ctx, tx, a.Dialogue.Scope.User(), id, memory.Everything())
			c, ok = job.Consideration, err == nil
			return err
		}
		found, err := findSession(ctx, tx, t.Namespace, t.SessionID, "")
		if err != nil {
			return err
		}
		if found == nil {
			return errNoSession(t.SessionID)
		}
		w, err := pendingMessages(ctx, tx, found.row, t.Last)
		if err != nil || w.people == 0 {
			return err
		}
		ok = true
		s.cache.drop(found.row)
		c, err = s.take(ctx, tx, found, w, a)
		return err
	})
	return c, ok && err == nil, err
}

// take accepts the messages of a span.
func (s *Sessions) take(
	ctx context.Context, tx sqldb.Tx, from *sessionRow, w span, a queue.Acceptance,
) (c memory.Consideration, err error) {
	a.Dialogue.Messages, a.Dialogue.Scope.SessionID = w.messages, from.ID
	a.Speakers = a.Dialogue.Speakers() // another call accepted the other speakers' messages
	for speaker := range a.Skip {
		a.Dialogue, _ = a.Dialogue.Without(speaker)
	}
	texts, err := encodeMessages(a.Dialogue.Messages)
	if err != nil {
		return c, err
	}
	if c, err = s.queue.accept(ctx, tx, a, jsonArray(texts), from.row); err != nil {
		return c, err
	}
	skipped, err := jsonList(slices.Collect(maps.Keys(a.Skip)))
	if err != nil {
		return c, err
	}
	// Messages of the bot long before the first message of a user are not context.
	_, err = tx.Exec(ctx, `UPDATE session_messages INDEXED BY session_messages_unsettled SET settled = 1
		WHERE session_row = ? AND settled = 0 AND position < ?`, from.row, w.first)
	if err != nil {
		return c, err
	}
	_, err = tx.Exec(ctx, `UPDATE session_messages INDEXED BY session_messages_unsettled SET settled = 1,
		consideration = CASE WHEN role = 'user' AND iif(json_valid(message), message ->> '$.speaker', '') IN (SELECT value FROM json_each(?)) THEN NULL ELSE ? END
		WHERE session_row = ? AND settled = 0 AND position BETWEEN ? AND ?`,
		skipped, a.ID, from.row, w.first, w.last)
	if err != nil {
		return c, err
	}
	from.Unconsidered = max(0, from.Unconsidered-w.people)
	at := a.At.Truncate(time.Microsecond).UTC()
	from.considerAt = time.Time{}
	from.schedule(at)
	return c, from.save(ctx, tx)
}
