package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Digests implements digest.Store.
type Digests struct{ db sqldb.Access }

var _ digest.Store = (*Digests)(nil)

// NewDigests returns the database's contributions to digests.
func NewDigests(db sqldb.Access) *Digests { return &Digests{db} }

// Whether a message is pending for a digest, see session_messages.digest.
const (
	digestAutomatic = 0
	digestOnRequest = 1
)

// waitingClause selects messages that are pending for a digest. The arguments are a user's row, whether for a scheduled digest, and a
// period.
const waitingClause = ` FROM session_messages m INDEXED BY session_messages_undigested
	JOIN sessions s ON s.row = m.session_row AND s.id IS NOT NULL
	WHERE m.owner_row = ?1 AND m.digest IS NOT NULL AND (m.digest = 0 OR NOT ?2)
	AND m.said_at >= ?3 AND m.said_at < ?4 `

func period(from, before time.Time) (first, last int64) {
	first, last = -1<<63, 1<<63-1
	if !from.IsZero() {
		first = from.UnixMicro()
	}
	if !before.IsZero() {
		last = before.UnixMicro()
	}
	return first, last
}

// Pending implements digest.Store. The session is that of the oldest pending message.
func (d *Digests) Pending(ctx context.Context, user memory.User, q digest.PendingQuery) (w digest.Pending, err error) {
	err = d.db.Read(ctx, func(r sqldb.Querier) error {
		w = digest.Pending{}
		userRow, err := UserRow(ctx, r, user)
		if err != nil || userRow == 0 {
			return err
		}
		from, before := period(q.From, q.Before)
		var sessionRow int64
		scope := memory.Scope{Namespace: user.Namespace, UserID: user.ID}
		err = r.QueryRow(ctx, `SELECT s.row, s.id, s.channel_kind, s.channel_id`+waitingClause+`ORDER BY m.row LIMIT 1`,
			userRow, q.ByItself, from, before).Scan(&sessionRow, &scope.SessionID, &scope.Channel.Kind, &scope.Channel.ID)
		if err != nil {
			return sqldb.Optional(err)
		}
		rows, err := r.Query(ctx, `SELECT m.row, m.position, m.agent_id, m.consideration IS NOT NULL
			OR ?2 AND m.settled = 0 AND coalesce(s.memorize_every, s.default_every) > 0, `+notExcluded("m")+`, m.message`+waitingClause+
			`AND m.session_row = ?5 ORDER BY m.row LIMIT ?6`, userRow, q.ByItself, from, before, sessionRow, q.Limit)
		if err != nil {
			return err
		}
		w.Messages, err = sqldb.Collect(rows, func(scan func(...any) error) (m digest.Message, err error) {
			var text []byte
			var agent string
			var kept bool
			if err := scan(&m.Ref, &m.Position, &agent, &m.Considered, &kept, &text); err != nil {
				return m, err
			}
			if scope.AgentID == "" {
				scope.AgentID = agent
			}
			if err = decodeMessage(m.Ref, text, &m.Message); sqldb.Skip(r, err) {
				m.Message, err = memory.Message{Role: memory.RoleSystem}, nil // an empty message, which is no longer pending
			}
			if !kept {
				m.Message = memory.Message{Role: memory.RoleSystem, Time: m.Time} // empty, so that it does not stay pending
			}
			m.AgentID = agent // also for messages to the agent
			return m, err
		})
		w.Scope = scope
		return err
	})
	return w, err
}

// CountPending implements digest.Store.
func (d *Digests) CountPending(ctx context.Context, user memory.User, seen digest.Seen, from, before time.Time) (n int64, err error) {
	err = d.db.Read(ctx, func(r sqldb.Querier) error {
		userRow, err := UserRow(ctx, r, user)
		if err != nil || userRow == 0 {
			return err
		}
		keys, everything, err := visibilities(seen.Audience)
		if err != nil {
			return err
		}
		first, last := period(from, before)
		return r.QueryRow(ctx, `SELECT count(*)`+waitingClause+`AND (?5 OR s.visibility IN (SELECT value FROM json_each(?6)))
			AND (?7 IS NULL OR m.agent_id = ?7)`, userRow, false, first, last, everything, keys, seen.AgentID).Scan(&n)
	})
	return n, err
}

// visibilities returns the visibility keys of an audience as a JSON list.
func visibilities(audience memory.Audience) (list string, everything bool, err error) {
	keys, everything := audience.Keys()
	list, err = jsonList(keys)
	return list, everything, err
}

// Save implements digest.Store.
func (d *Digests) Save(ctx context.Context, c digest.Contribution) error {
	covers, err := json.Marshal(c.Covers)
	if err != nil {
		return err
	}
	return d.db.Write(ctx, func(tx sqldb.Tx) error {
		session, ok, err := sourceSession(ctx, tx, c)
		if err != nil || !ok {
			return err
		}
		user := c.Scope.User()
		userRow, err := EnsureUserRow(ctx, tx, user)
		if err != nil {
			return err
		}
		if len(c.Covers) > 0 {
			if err := markRead(ctx, tx, userRow, string(covers), len(c.Covers)); err != nil {
				return err
			}
		}
		for i := range c.Findings {
			if err := insertFinding(ctx, tx, userRow, session, i, &c); err != nil {
				return err
			}
		}
		return nil
	})
}

// sourceSession finds the session of a contribution, if any; ok is false if the session or the consideration was deleted.
func sourceSession(ctx context.Context, tx sqldb.Tx, c digest.Contribution) (session sql.NullInt64, ok bool, err error) {
	if c.ConsiderationID == "" {
		if len(c.Covers) == 0 {
			return session, true, nil
		}
		err = tx.QueryRow(ctx, `SELECT s.row FROM session_messages m JOIN sessions s ON s.row = m.session_row AND s.id IS NOT NULL
			WHERE m.row = ?`, c.Covers[0]).Scan(&session)
		if sqldb.Optional(err) == nil && err != nil {
			return session, false, digest.ErrChanged
		}
		return session, err == nil, err
	}
	err = tx.QueryRow(ctx, `SELECT c.session_row FROM dialogues d JOIN considerations c ON c.dialogue_row = d.row
		WHERE d.id = ? AND c.namespace = ? AND c.user_id = ?`, c.ConsiderationID, c.Scope.Namespace, c.Scope.UserID).Scan(&session)
	return session, err == nil, sqldb.Optional(err)
}

// markRead marks messages as read for a digest.
func markRead(ctx context.Context, tx sqldb.Tx, userRow int64, refs string, n int) error {
	var people, found int
	err := tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE m.role = 'user' AND m.digest = 0)
		FROM json_each(?1) i CROSS JOIN session_messages m ON m.row = i.value
		WHERE m.owner_row = ?2 AND m.digest IS NOT NULL`, refs, userRow).Scan(&found, &people)
	if err != nil {
		return err
	}
	if found != n {
		return digest.ErrChanged
	}
	_, err = tx.Exec(ctx, `UPDATE session_messages SET digest = NULL WHERE row IN (SELECT value FROM json_each(?))`, refs)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE digest_progress SET waiting = max(0, waiting - ?) WHERE user_row = ?`, people, userRow)
	return err
}

func insertFinding(ctx context.Context, tx sqldb.Tx, userRow int64, session sql.NullInt64, number int, c *digest.Contribution) error {
	f := &c.Findings[number]
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	agent := f.AgentID
	if c.ConsiderationID != "" {
		agent = c.Scope.AgentID
	}
	remember := f.Importance > 0 && f.MemoryID == "" && c.ConsiderationID == ""
	_, err = tx.Exec(ctx, `INSERT INTO digest_findings (user_row, contribution, number, session_row, session_id, agent_id,
		channel_kind, channel_id, visibility, made_by, made_at, said_at, remember, memory_id, finding)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		userRow, c.ID, number, session, c.Scope.SessionID, agent, string(c.Scope.Channel.Kind), c.Scope.Channel.ID,
		c.Scope.Channel.VisibilityKey(), c.MadeBy, sqldb.Micros(c.At), sqldb.Micros(f.SaidAt), remember, f.MemoryID, string(text))
	return err
}

const entryColumns = `contribution || '/' || number, session_id, agent_id, channel_kind, channel_id, made_by, made_at, said_at,
	memory_id, finding`

func queryEntries(ctx context.Context, r sqldb.Querier, where string, args ...any) ([]digest.Entry, error) {
	rows, err := r.Query(ctx, `SELECT `+entryColumns+` FROM digest_findings `+where, args...)
	if err != nil {
		return nil, err
	}
	return sqldb.CollectReadable(r, rows, scanEntry)
}

func scanEntry(scan func(...any) error) (e digest.Entry, err error) {
	var made, said sql.NullInt64
	var text []byte
	err = scan(&e.ID, &e.SessionID, &e.AgentID, &e.Channel.Kind, &e.Channel.ID, &e.MadeBy, &made, &said, &e.MemoryID, &text)
	if err != nil {
		return e, sqldb.Scanned("digest_findings", e.ID, err)
	}
	e.MadeAt, e.SaidAt = sqldb.Time(made), sqldb.Time(said)
	return e, errors.Join(sqldb.DecodeJSON("digest_findings", e.ID, text, &e.Finding), sqldb.Times("digest_findings", e.ID, e.MadeAt, e.SaidAt))
}

// findingKept is the condition for findings that rest on no excluded message. Those that are memories are left out with their memory.
const findingKept = `(memory_id <> '' OR session_row IS NULL OR NOT EXISTS (SELECT 1
	FROM json_each(iif(json_valid(finding), coalesce(finding ->> '$.messages', '[]'), '[]')) cited
	JOIN session_messages m ON m.row = CASE WHEN cited.value LIKE '@%'
		THEN (SELECT row FROM session_messages WHERE session_row = digest_findings.session_row AND position = CAST(substr(cited.value, 2) AS INTEGER))
		ELSE (SELECT row FROM session_messages WHERE session_row = digest_findings.session_row AND id = cited.value) END
	JOIN memory_messages x ON x.message_row = m.row AND x.excluded = 1))`

// Find implements digest.Store.
func (d *Digests) Find(ctx context.Context, user memory.User, seen digest.Seen, from, before time.Time) (found []digest.Entry, err error) {
	err = d.db.Read(ctx, func(r sqldb.Querier) error {
		userRow, err := UserRow(ctx, r, user)
		if err != nil || userRow == 0 {
			return err
		}
		keys, everything, err := visibilities(seen.Audience)
		if err != nil {
			return err
		}
		first, last := period(from, before)
		found, err = queryEntries(ctx, r, `WHERE user_row = ? AND said_at >= ? AND said_at < ?
			AND (? OR visibility IN (SELECT value FROM json_each(?))) AND (?6 IS NULL OR agent_id = ?6) AND `+findingKept+` ORDER BY said_at, row`,
			userRow, first, last, everything, keys, seen.AgentID)
		return err
	})
	return found, err
}

// Newest implements digest.Store.
func (d *Digests) Newest(ctx context.Context, user memory.User, seen digest.Seen, before time.Time) (at time.Time, err error) {
	err = d.db.Read(ctx, func(r sqldb.Querier) error {
		userRow, err := UserRow(ctx, r, user)
		if err != nil || userRow == 0 {
			return err
		}
		keys, everything, err := visibilities(seen.Audience)
		if err != nil {
			return err
		}
		_, last := period(time.Time{}, before)
		var said sql.NullInt64
		err = r.QueryRow(ctx, `SELECT said_at FROM digest_findings WHERE user_row = ? AND said_at < ?
			AND (? OR visibility IN (SELECT value FROM json_each(?))) AND (?5 IS NULL OR agent_id = ?5) AND `+findingKept+` ORDER BY said_at DESC LIMIT 1`,
			userRow, last, everything, keys, seen.AgentID).Scan(&said)
		at = sqldb.Time(said)
		return sqldb.Optional(err)
	})
	return at, err
}

// List implements digest.Store.
func (d *Digests) List(ctx context.Context, user memory.User, after string, limit int) (found []digest.Entry, next string, err error) {
	start := int64(0)
	if after != "" {
		if start, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, "", memory.Invalid("page_token", "is invalid: start again without it")
		}
	}
	err = d.db.Read(ctx, func(r sqldb.Querier) error {
		next = ""
		userRow, err := UserRow(ctx, r, user)
		if err != nil || userRow == 0 {
			return err
		}
		rows, err := r.Query(ctx, `SELECT row, `+entryColumns+` FROM digest_findings WHERE user_row = ? AND row > ? ORDER BY row LIMIT ?`,
			userRow, start, limit)
		if err != nil {
			return err
		}
		last := int64(0)
		all, err := sqldb.CollectMarked(r, rows, func(scan func(...any) error) (digest.Entry, error) {
			return scanEntry(func(fields ...any) error { return scan(append([]any{&last}, fields...)...) })
		})
		found = nil
		for _, e := range all {
			if !e.Damaged {
				found = append(found, e.Row)
			}
		}
		if len(all) == limit {
			next = strconv.FormatInt(last, 10)
		}
		return err
	})
	return found, next, err
}

// Unremembered implements digest.Store.
func (d *Digests) Unremembered(ctx context.Context, user memory.User) (found []digest.Entry, err error) {
	err = d.db.Read(ctx, func(r sqldb.Querier) error {
		userRow, err := UserRow(ctx, r, user)
		if err != nil || userRow == 0 {
			return err
		}
		found, err = queryEntries(ctx, r, `WHERE user_row = ? AND remember = 1 AND `+findingKept+` ORDER BY row`, userRow)
		return err
	})
	return found, err
}

// Remembered implements digest.Store.
func (d *Digests) Remembered(ctx context.Context, user memory.User, memories map[string]string) error {
	return d.db.Write(ctx, func(tx sqldb.Tx) error {
		userRow, err := UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		for id, memoryID := range memories {
			at := strings.LastIndexByte(id, '/')
			if at < 0 {
				return fmt.Errorf("%q is not the id of an entry", id)
			}
			_, err := tx.Exec(ctx, `UPDATE digest_findings SET remember = 0, memory_id = ? WHERE user_row = ? AND contribution = ? AND number = ?`,
				memoryID, userRow, id[:at], id[at+1:])
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Forget implements digest.Store.
func (d *Digests) Forget(ctx context.Context, user memory.User) (n int64, err error) {
	err = d.db.Write(ctx, func(tx sqldb.Tx) error {
		n = 0
		userRow, err := UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		if n, err = tx.Affect(ctx, `DELETE FROM digest_findings WHERE user_row = ?`, userRow); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM digest_progress WHERE user_row = ?`, userRow); err != nil {
			return err
		}
		return DropUserRow(ctx, tx, userRow)
	})
	return n, err
}

// Due implements digest.Store.
func (d *Digests) Due(ctx context.Context, now time.Time, limit int) (due []memory.User, next time.Time, err error) {
	err = d.db.Read(ctx, func(r sqldb.Querier) error {
		rows, err := r.Query(ctx, `SELECT u.namespace, u.user_id, p.due_at FROM digest_progress p JOIN users u ON u.id = p.user_row
			WHERE p.due_at IS NOT NULL ORDER BY p.due_at LIMIT ?`, limit+1)
		if err != nil {
			return err
		}
		type item struct {
			user memory.User
			at   time.Time
		}
		all, err := sqldb.Collect(rows, func(scan func(...any) error) (i item, err error) {
			var at sql.NullInt64
			err = scan(&i.user.Namespace, &i.user.ID, &at)
			i.at = sqldb.Time(at)
			return i, err
		})
		due, next = nil, time.Time{}
		for _, i := range all {
			if len(due) == limit || i.at.After(now) {
				next = i.at
				break
			}
			due = append(due, i.user)
		}
		return err
	})
	return due, next, err
}

// Done implements digest.Store.
func (d *Digests) Done(ctx context.Context, user memory.User, rule digest.Rule) error {
	return d.db.Write(ctx, func(tx sqldb.Tx) error {
		userRow, err := UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		var waiting, people int64
		err = tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE role = 'user') FROM session_messages
			INDEXED BY session_messages_undigested WHERE owner_row = ? AND digest IS NOT NULL AND digest = 0`, userRow).Scan(&waiting, &people)
		if err != nil {
			return err
		}
		if waiting == 0 {
			_, err := tx.Exec(ctx, `DELETE FROM digest_progress WHERE user_row = ?`, userRow)
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE digest_progress SET waiting = ?, due_at = ?, postponed = 0 WHERE user_row = ?`,
			people, sqldb.Micros(dueAt(people, rule)), userRow)
		return err
	})
}

// answerDelay is how long a digest waits for the answer to the last message: the answer to a problem holds the solution.
const answerDelay = time.Minute

// dueAt returns when the digest of a user with so many pending messages is due.
func dueAt(people int64, rule digest.Rule) time.Time {
	if rule.Every > 0 && people >= int64(rule.Every) {
		return rule.Now
	}
	return rule.DayEnd
}

// Postpone implements digest.Store.
func (d *Digests) Postpone(ctx context.Context, user memory.User, until time.Time) error {
	return d.db.Write(ctx, func(tx sqldb.Tx) error {
		userRow, err := UserRow(ctx, tx, user)
		if err != nil || userRow == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE digest_progress SET due_at = max(due_at, ?), postponed = 1 WHERE user_row = ? AND due_at IS NOT NULL`,
			sqldb.Micros(until), userRow)
		return err
	})
}

// longestDay is longer than any day, even one on which clocks change: no digest is due later.
const longestDay = 26 * time.Hour

// MakeDue implements digest.Store. Its cost is proportional to the digests that are due later than now.
func (d *Digests) MakeDue(ctx context.Context, o digest.Overdue) error {
	return d.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE digest_progress SET due_at = ?1, postponed = 0 WHERE due_at IS NOT NULL AND due_at > ?1
			AND (due_at > ?2 OR postponed AND due_at > ?3 OR ?4 > 0 AND waiting >= ?4 AND due_at > max(?3, ?5))`,
			sqldb.Micros(o.Now), sqldb.Micros(o.Now.Add(longestDay)), sqldb.Micros(o.Now.Add(o.Longest)), o.Every, sqldb.Micros(o.Now.Add(2*answerDelay)))
		return err
	})
}

// digestState is the stored state of a message being appended; nil if no digest reads it.
func (w *appending) digestState(m *memory.Message, owner int64, withheld bool) any {
	person := session.Owner(m, w.Scope.UserID)
	_, automatic := w.Digests[person]
	switch {
	case owner == 0 || withheld || w.Paused[person] || m.Role != memory.RoleUser && m.Role != memory.RoleAssistant:
		return nil
	case w.Settled || !automatic:
		return digestOnRequest
	}
	return digestAutomatic
}

// scheduleDigests makes digests due for users with enough messages, or at the end of their day.
func (w *appending) scheduleDigests(ctx context.Context, tx sqldb.Tx) error {
	for person, rule := range w.Digests {
		said, ok := w.digested[person]
		if !ok {
			continue
		}
		userRow, err := w.user(ctx, tx, person)
		if err != nil {
			return err
		}
		soon := w.at
		if w.Messages[len(w.Messages)-1].Role == memory.RoleUser {
			soon = soon.Add(answerDelay)
		}
		if err := scheduleDigest(ctx, tx, userRow, said, digest.Rule{Now: soon, Every: rule.Every, DayEnd: rule.DayEnd}); err != nil {
			return err
		}
	}
	return nil
}

// scheduleDigest adds to the count of pending messages, and makes the digest due by the rule unless it is due earlier.
func scheduleDigest(ctx context.Context, tx sqldb.Tx, userRow, said int64, rule digest.Rule) error {
	// Most messages do not change the due time: then its index is not written.
	known, err := tx.Affect(ctx, `UPDATE digest_progress SET waiting = waiting + ?1 WHERE user_row = ?2
		AND due_at <= CASE WHEN ?3 > 0 AND waiting + ?1 >= ?3 THEN ?4 ELSE ?5 END`,
		said, userRow, rule.Every, sqldb.Micros(rule.Now), sqldb.Micros(rule.DayEnd))
	if err != nil || known > 0 {
		return err
	}
	var waiting int64
	err = tx.QueryRow(ctx, `INSERT INTO digest_progress (user_row, waiting) VALUES (?1, ?2)
		ON CONFLICT DO UPDATE SET waiting = waiting + ?2 RETURNING waiting`, userRow, said).Scan(&waiting)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE digest_progress SET due_at = min(coalesce(due_at, ?1), ?1) WHERE user_row = ?2`, sqldb.Micros(dueAt(waiting, rule)), userRow)
	return err
}
