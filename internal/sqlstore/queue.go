package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Queue implements queue.Store.
type Queue struct {
	db sqldb.Access
	// Unquoted is called with users whose memories lost a reason because it may have quoted a forgotten user. Caches of their memories
	// are stale then. Optional; it must be set before the queue is used.
	Unquoted func(memory.User)

	pending pendingCounter
}

var _ queue.Store = (*Queue)(nil)

// NewQueue returns the queue in the database. There must be only one per database, because it counts pending considerations.
func NewQueue(db sqldb.Access) *Queue {
	q := &Queue{db: db}
	db.OnOpen(q.pending.restart)
	return q
}

// Pending returns the counts of pending and running considerations.
func (s *Queue) Pending() Pending { return s.pending.get() }

// overloadRetry is the retry delay for callers when too much is pending.
const overloadRetry = 30 * time.Second

// Accept implements queue.Store.
func (s *Queue) Accept(ctx context.Context, a queue.Acceptance) (c memory.Consideration, err error) {
	messages, err := json.Marshal(a.Dialogue.Messages)
	if err != nil {
		return c, err
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		id, err := acceptedBefore(ctx, tx, a)
		if err != nil {
			return err
		}
		if id != "" {
			job, err := getJob(ctx, tx, a.Dialogue.Scope.User(), id, memory.Everything())
			c = job.Consideration
			return err
		}
		c, err = s.accept(ctx, tx, a, string(messages), 0)
		return err
	})
	return c, err
}

// acceptedBefore returns the consideration of an earlier request with the same request id, or "". If one of the speakers was forgotten
// since, the payload is unknown and counts as the same, because the caller must not add it again.
func acceptedBefore(ctx context.Context, tx sqldb.Tx, a queue.Acceptance) (id string, err error) {
	if a.RequestID == "" {
		return "", nil
	}
	var payload []byte
	err = tx.QueryRow(ctx, `SELECT id, payload_hash FROM dialogues WHERE namespace = ? AND user_id = ? AND request_id = ?`,
		a.Dialogue.Scope.Namespace, a.Dialogue.Scope.UserID, a.RequestID).Scan(&id, &payload)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err == nil && len(payload) > 0 && !bytes.Equal(payload, a.PayloadHash):
		return "", memory.Invalid("request_id", "was used before for another dialogue: use a new one")
	case err == nil && a.Hurry:
		err = release(ctx, tx, a.Dialogue.Scope.User(), a.At)
	}
	return id, err
}

// accept stores the dialogue and returns the consideration of the scope's user. session is the row of its session, or 0.
func (s *Queue) accept(ctx context.Context, tx sqldb.Tx, a queue.Acceptance, messages string, session int64) (own memory.Consideration, err error) {
	scope, at := a.Dialogue.Scope, a.At.Truncate(time.Microsecond).UTC() // the database's precision
	var requestID any
	payload := []byte{}
	if a.RequestID != "" {
		requestID, payload = a.RequestID, append(payload, a.PayloadHash...)
	}
	dialogue, err := tx.Insert(ctx, `INSERT INTO dialogues (id, namespace, user_id, agent_id, channel_kind, channel_id,
		session_id, visibility, request_id, payload_hash, messages, message_count, created_at, turn_id, otel_trace_id,
		session_row) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))`,
		a.ID, scope.Namespace, scope.UserID, scope.AgentID, string(scope.Channel.Kind), scope.Channel.ID, scope.SessionID,
		scope.Channel.VisibilityKey(), requestID, payload, messages, len(a.Dialogue.Messages), sqldb.Micros(at),
		a.Call.TurnID, otelParent(a.Call), session)
	if err != nil {
		return own, err
	}
	pending := int64(0)
	for _, speaker := range a.Speakers {
		if _, skip := a.Skip[speaker]; !skip {
			pending++
		}
	}
	if pending > 0 { // skipped ones are not pending
		if err := errors.Join(hasRoomInNamespace(ctx, tx, a), s.pending.hasRoomForAll(ctx, tx, a)); err != nil {
			return own, err
		}
		s.pending.add(tx, dialogue, pending, int64(len(messages)))
	}
	for _, speaker := range a.Speakers {
		c, err := acceptFor(ctx, tx, a, speaker, dialogue, session)
		if err != nil {
			return own, err
		}
		if speaker == scope.UserID {
			own = c
		}
	}
	return own, nil
}

// acceptFor stores the consideration of one speaker of the dialogue.
func acceptFor(ctx context.Context, tx sqldb.Tx, a queue.Acceptance, speaker string, dialogue, session int64) (c memory.Consideration, err error) {
	scope, at := a.Dialogue.Scope, a.At.Truncate(time.Microsecond).UTC()
	c = memory.Consideration{
		ID: a.ID, Scope: scope.WithUser(speaker), State: memory.StatePending, MessageCount: len(a.Dialogue.Messages),
		CreatedAt: at, UpdatedAt: at,
	}
	var hold time.Time
	if reason, skip := a.Skip[speaker]; skip {
		c.State, c.Outcome.Reason = memory.StateSkipped, reason
	} else {
		first, err := hasRoom(ctx, tx, c.Scope.User(), speaker == scope.UserID, a.MaxPending)
		if err != nil {
			return c, err
		}
		if hold, err = holdUntil(ctx, tx, a, c.Scope, at); err != nil {
			return c, err
		}
		if first {
			c.NextAttemptAt = latest(at, hold) // only the first of a line is due
		}
	}
	outcome, err := json.Marshal(c.Outcome)
	if err != nil {
		return c, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO considerations (dialogue_row, namespace, user_id, state, due_at, attempts, outcome,
		accepted_at, updated_at, session_row, hold_until) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?7, nullif(?8, 0), ?9)`,
		dialogue, scope.Namespace, speaker, string(c.State), sqldb.Micros(c.NextAttemptAt), string(outcome), sqldb.Micros(at), session,
		sqldb.Micros(hold))
	if err != nil || hold.IsZero() {
		return c, err
	}
	due, err := releaseFull(ctx, tx, a, c.Scope.User(), at)
	if due && !c.NextAttemptAt.IsZero() {
		c.NextAttemptAt = at
	}
	return c, err
}

// The queries of a user's line and of failures name their index. Otherwise SQLite uses (namespace, user_id), and reads all
// considerations of the user.

// hasRoom reports whether the next consideration would be the first of the user's line. The error is a *memory.OverloadError if the
// line is full.
func hasRoom(ctx context.Context, tx sqldb.Tx, user memory.User, limited bool, maxPending int) (first bool, err error) {
	var waiting int
	err = tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT 1 FROM considerations INDEXED BY considerations_line
		WHERE namespace = ? AND user_id = ? AND state IN ('pending', 'running') LIMIT ?)`,
		user.Namespace, user.ID, maxPending).Scan(&waiting)
	if err == nil && limited && waiting >= maxPending {
		err = &memory.OverloadError{
			Limit:      fmt.Sprintf("%d considerations of user %q are pending already", waiting, user.ID),
			RetryAfter: overloadRetry,
		}
	}
	return waiting == 0, err
}

// hasRoomInNamespace returns a *memory.OverloadError if too much is pending in the dialogue's namespace. Its cost is proportional to
// the limit.
func hasRoomInNamespace(ctx context.Context, tx sqldb.Tx, a queue.Acceptance) error {
	if a.MaxPendingNamespace == 0 || len(a.Skip) >= len(a.Speakers) { // skipped ones are not pending
		return nil
	}
	namespace, waiting := a.Dialogue.Scope.Namespace, 0
	err := tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT 1 FROM considerations INDEXED BY considerations_line
		WHERE namespace = ? AND state IN ('pending', 'running') LIMIT ?)`, namespace, a.MaxPendingNamespace).Scan(&waiting)
	if err == nil && waiting >= a.MaxPendingNamespace {
		err = &memory.OverloadError{
			Limit:      fmt.Sprintf("%d considerations of namespace %q are pending already", waiting, namespace),
			RetryAfter: overloadRetry,
		}
	}
	return err
}

// Claim implements queue.Store.
func (s *Queue) Claim(ctx context.Context, now time.Time, limit int) (jobs []queue.Job, next time.Time, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		jobs, next = nil, time.Time{}
		if err := s.pending.advance(ctx, tx); err != nil {
			return err
		}
		found, err := dueJobs(ctx, tx, now, limit)
		if err != nil {
			return err
		}
		for _, job := range found {
			if job.Unreadable != nil {
				if err := s.setAside(ctx, tx, &job, now); err != nil {
					return err
				}
				continue
			}
			job.Consideration.State = memory.StateRunning
			job.Consideration.Attempts++
			if job.AcceptedAt.After(now) { // accepted by a clock that was ahead: its age limit restarts
				job.AcceptedAt = now.Truncate(time.Microsecond).UTC()
			}
			_, err := tx.Exec(ctx, `UPDATE considerations SET state = 'running', due_at = NULL, hold_until = NULL, attempts = attempts + 1,
				accepted_at = min(accepted_at, ?1), updated_at = ?1 WHERE seq = ?2`, sqldb.Micros(now), job.Seq)
			if err != nil {
				return err
			}
			jobs = append(jobs, job)
		}
		var due sql.NullInt64
		err = tx.QueryRow(ctx, `SELECT min(due_at) FROM considerations WHERE due_at IS NOT NULL`).Scan(&due)
		next = sqldb.Time(due)
		return err
	})
	return jobs, next, err
}

// precedingScan is how many of a user's considerations Preceding looks at when there is no session.
const precedingScan = 100

// Preceding implements queue.Store.
func (s *Queue) Preceding(ctx context.Context, seq int64, limit int) (list []queue.Preceding, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		var dialogue int64
		var session sql.NullInt64
		err := q.QueryRow(ctx, `SELECT d.row, d.session_row FROM considerations c JOIN dialogues d ON d.row = c.dialogue_row
			WHERE c.seq = ?`, seq).Scan(&dialogue, &session)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // its user was forgotten
		}
		if err != nil {
			return err
		}
		query := `SELECT d.id, d.messages FROM dialogues d WHERE d.session_row = ? AND d.row < ? ORDER BY d.row DESC LIMIT ?`
		args := []any{session.Int64, dialogue, limit}
		if !session.Valid {
			query = `SELECT d.id, d.messages FROM dialogues mine JOIN (SELECT p.dialogue_row AS row FROM considerations c
				JOIN considerations p ON p.namespace = c.namespace AND p.user_id = c.user_id AND p.seq < c.seq
				WHERE c.seq = ? ORDER BY p.seq DESC LIMIT ?) earlier JOIN dialogues d ON d.row = earlier.row
				WHERE mine.row = ? AND d.channel_kind = mine.channel_kind AND d.channel_id = mine.channel_id
				AND d.agent_id = mine.agent_id AND d.session_row IS NULL ORDER BY d.row DESC LIMIT ?`
			args = []any{seq, precedingScan, dialogue, limit}
		}
		rows, err := q.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		list, err = sqldb.CollectReadable(q, rows, func(scan func(...any) error) (p queue.Preceding, err error) {
			var messages []byte
			if err := scan(&p.ConsiderationID, &messages); err != nil {
				return p, err
			}
			return p, sqldb.DecodeJSON(dialoguesTable, p.ConsiderationID, messages, &p.Messages)
		})
		return err
	})
	return list, err
}

// Checkpoint implements queue.Store.
func (s *Queue) Checkpoint(ctx context.Context, seq int64, data []byte) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE considerations SET checkpoint = ? WHERE seq = ?`, string(data), seq)
		return err
	})
}

// Finish implements queue.Store.
func (s *Queue) Finish(ctx context.Context, seq int64, state memory.State, outcome memory.Outcome, at time.Time) error {
	text, err := json.Marshal(outcome)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx sqldb.Tx) error { return s.finish(ctx, tx, seq, state, string(text), at) })
}

func (s *Queue) finish(ctx context.Context, tx sqldb.Tx, seq int64, state memory.State, outcome string, at time.Time) error {
	var dialogue int64
	var user memory.User
	err := tx.QueryRow(ctx, `SELECT dialogue_row, namespace, user_id FROM considerations WHERE seq = ?`, seq).
		Scan(&dialogue, &user.Namespace, &user.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // its user was forgotten
	}
	if err != nil {
		return err
	}
	err = s.pending.changing(ctx, tx, []int64{dialogue}, func() error {
		// A failed job keeps its checkpoint, and a retry continues from there.
		_, err := tx.Exec(ctx, `UPDATE considerations SET state = ?1, due_at = NULL, hold_until = NULL, outcome = ?2, updated_at = ?3,
			checkpoint = CASE ?1 WHEN 'failed' THEN checkpoint END WHERE seq = ?4`, string(state), outcome, sqldb.Micros(at), seq)
		return err
	})
	if err != nil {
		return err
	}
	return advance(ctx, tx, user, at)
}

// advance makes the first job of a user's line due, unless one of the line is due or running. If it is held back, it is due at the end
// of that.
func advance(ctx context.Context, tx sqldb.Tx, user memory.User, at time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE considerations SET due_at = max(?3, min(coalesce(hold_until, ?3), ?4))
		WHERE state = 'pending' AND due_at IS NULL AND seq =
		(SELECT min(seq) FROM considerations INDEXED BY considerations_line
			WHERE namespace = ?1 AND user_id = ?2 AND state IN ('pending', 'running'))`,
		user.Namespace, user.ID, sqldb.Micros(at), sqldb.Micros(at.Add(queue.MaxDelay)))
	return err
}

// Postpone implements queue.Store.
func (s *Queue) Postpone(ctx context.Context, seq int64, due time.Time, outcome memory.Outcome, at time.Time) error {
	text, err := json.Marshal(outcome)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE considerations SET state = 'pending', due_at = ?, outcome = ?, updated_at = ?
			WHERE seq = ?`, sqldb.Micros(due), string(text), sqldb.Micros(at), seq)
		return err
	})
}

// Recover implements queue.Store.
func (s *Queue) Recover(ctx context.Context, except []int64, at time.Time) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		rows, err := tx.Query(ctx, `SELECT seq FROM considerations WHERE state = 'running'`)
		if err != nil {
			return err
		}
		seqs, err := sqldb.Column[int64](rows)
		if err != nil {
			return err
		}
		for _, seq := range seqs {
			if slices.Contains(except, seq) {
				continue
			}
			_, err := tx.Exec(ctx, `UPDATE considerations SET state = 'pending', due_at = ?1, updated_at = ?1 WHERE seq = ?2`,
				sqldb.Micros(at), seq)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Get implements queue.Store.
func (s *Queue) Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Consideration, error) {
	var job queue.Job
	err := s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		job, err = getJob(ctx, q, user, id, audience)
		return err
	})
	return job.Consideration, err
}

// List implements queue.Store.
func (s *Queue) List(ctx context.Context, user memory.User, l queue.ListQuery) (jobs []queue.Job, next string, err error) {
	order, compare, start := "DESC", "<", int64(math.MaxInt64)
	if l.OldestFirst {
		order, compare, start = "ASC", ">", 0
	}
	if l.After != "" {
		if start, err = strconv.ParseInt(l.After, 10, 64); err != nil {
			return nil, "", memory.Invalid("page_token", "is invalid: start again without it")
		}
	}
	keys, all := l.Audience.Keys()
	visible, err := json.Marshal(keys)
	if err != nil {
		return nil, "", err
	}
	states, err := json.Marshal(l.States)
	if err != nil {
		return nil, "", err
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		jobs, err = queryJobs(ctx, q, `WHERE c.namespace = ?1 AND c.user_id = ?2 AND c.seq `+compare+` ?3
			AND (?4 OR d.visibility IN (SELECT value FROM json_each(?5)))
			AND (?6 OR c.state IN (SELECT value FROM json_each(?7))) ORDER BY c.seq `+order+` LIMIT ?8`,
			user.Namespace, user.ID, start, all, string(visible), len(l.States) == 0, string(states), l.Limit+1)
		return err
	})
	if len(jobs) > l.Limit {
		jobs = jobs[:l.Limit]
		next = strconv.FormatInt(jobs[l.Limit-1].Seq, 10)
	}
	return jobs, next, err
}

// Stats implements queue.Store.
func (s *Queue) Stats(ctx context.Context, namespace string) (stats queue.Stats, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		var oldest sql.NullInt64
		err := q.QueryRow(ctx, `SELECT count(*), min(accepted_at) FROM considerations INDEXED BY considerations_line
			WHERE namespace = ? AND state IN ('pending', 'running')`, namespace).Scan(&stats.Pending, &oldest)
		if err != nil {
			return err
		}
		stats.OldestPending = sqldb.Time(oldest)
		return q.QueryRow(ctx, `SELECT count(*) FROM considerations INDEXED BY considerations_failed
			WHERE namespace = ? AND state = 'failed'`, namespace).
			Scan(&stats.Failed)
	})
	return stats, err
}

const jobColumns = `c.seq, c.state, c.due_at, c.attempts, c.checkpoint, c.outcome, c.accepted_at, c.updated_at, c.user_id,
	d.id, d.namespace, d.user_id, d.agent_id, d.channel_kind, d.channel_id, d.session_id, d.messages, d.created_at,
	d.turn_id, d.otel_trace_id`

func queryJobs(ctx context.Context, q sqldb.Querier, where string, args ...any) ([]queue.Job, error) {
	rows, err := q.Query(ctx, `SELECT `+jobColumns+` FROM considerations c JOIN dialogues d ON d.row = c.dialogue_row `+where,
		args...)
	if err != nil {
		return nil, err
	}
	return sqldb.Collect(rows, func(scan func(...any) error) (queue.Job, error) {
		job, err := scanJob(q, scan)
		if sqldb.Skip(q, err) {
			if job.Unreadable = err; job.Consideration.ID == "" {
				job.Consideration.ID = fmt.Sprint(job.Seq)
			}
			err = nil
		}
		return job, err
	})
}

func getJob(ctx context.Context, q sqldb.Querier, user memory.User, id string, audience memory.Audience) (queue.Job, error) {
	jobs, err := queryJobs(ctx, q, `WHERE d.id = ? AND c.namespace = ? AND c.user_id = ?`, id, user.Namespace, user.ID)
	if err != nil {
		return queue.Job{}, err
	}
	if len(jobs) == 0 || !audience.Sees(jobs[0].Consideration.Scope.Channel) {
		return queue.Job{}, fmt.Errorf("consideration %q: %w", id, memory.ErrNotFound)
	}
	return jobs[0], nil
}

// scanJob reads jobColumns. A job whose dialogue cannot be decoded is still listed, with the values that can be.
func scanJob(q sqldb.Querier, scan func(...any) error) (job queue.Job, err error) {
	var due, accepted, updated, created sql.NullInt64
	var checkpoint, outcome, messages []byte
	var speaker, otel string
	c, scope := &job.Consideration, &job.Dialogue.Scope
	err = scan(&job.Seq, &c.State, &due, &c.Attempts, &checkpoint, &outcome, &accepted, &updated, &speaker,
		&c.ID, &scope.Namespace, &scope.UserID, &scope.AgentID, &scope.Channel.Kind, &scope.Channel.ID, &scope.SessionID,
		&messages, &created, &job.Call.TurnID, &otel)
	if err != nil {
		return job, sqldb.Scanned(considerationsTable, job.Seq, err)
	}
	if json.Valid(checkpoint) { // without a checkpoint it is decided again
		job.Checkpoint = checkpoint
	}
	job.AcceptedAt = sqldb.Time(accepted)
	job.Call.OTelTraceID, job.Call.OTelSpanID, _ = strings.Cut(otel, "-")
	c.Scope = scope.WithUser(speaker)
	c.NextAttemptAt, c.CreatedAt, c.UpdatedAt = sqldb.Time(due), sqldb.Time(created), sqldb.Time(updated)
	if sqldb.Skip(q, sqldb.DecodeJSON(considerationsTable, job.Seq, outcome, &c.Outcome)) {
		c.Outcome = memory.Outcome{Error: unreadableOutcome}
	}
	if err := sqldb.DecodeJSON(dialoguesTable, c.ID, messages, &job.Dialogue.Messages); sqldb.Skip(q, err) {
		job.Dialogue.Messages, job.Unreadable = nil, err
	}
	c.MessageCount = len(job.Dialogue.Messages)
	err = sqldb.Times(considerationsTable, job.Seq, c.NextAttemptAt, c.CreatedAt, c.UpdatedAt, job.AcceptedAt)
	if err != nil {
		c.NextAttemptAt, c.CreatedAt, c.UpdatedAt = time.Time{}, time.Time{}, time.Time{}
	}
	return job, err
}

// Depths counts the considerations of all namespaces that are pending, running or failed. It reads only partial indexes of these states,
// so its cost does not depend on how many have ended. The oldest is the first in the queue.
func (s *Queue) Depths(ctx context.Context) (depths []queue.Depth, err error) {
	const running = `SELECT seq FROM considerations INDEXED BY considerations_running WHERE state = 'running'`
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		depths = nil
		for _, of := range []struct {
			state memory.State
			where string
		}{
			{memory.StatePending, `INDEXED BY considerations_line WHERE state IN ('pending', 'running') AND seq NOT IN (` + running + `)`},
			{memory.StateRunning, `INDEXED BY considerations_running WHERE state = 'running'`},
			{memory.StateFailed, `INDEXED BY considerations_failed WHERE state = 'failed'`},
		} {
			d := queue.Depth{State: of.state}
			var oldest sql.NullInt64
			err := q.QueryRow(ctx, `WITH some AS (SELECT count(*) AS n, min(seq) AS first, count(hold_until) AS held FROM considerations `+
				of.where+`) SELECT n, held, (SELECT accepted_at FROM considerations WHERE seq = first) FROM some`).
				Scan(&d.Count, &d.Delayed, &oldest)
			if err != nil {
				return err
			}
			d.Oldest = sqldb.Time(oldest)
			depths = append(depths, d)
		}
		return nil
	})
	return depths, err
}

// Due times of pending jobs.

// MakeDue implements queue.Store. Its cost is proportional to the jobs that are due later than after.
func (s *Queue) MakeDue(ctx context.Context, after, now time.Time) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE considerations INDEXED BY considerations_due SET due_at = ?2 WHERE due_at IS NOT NULL AND due_at > ?1
			AND state = 'pending' AND (hold_until IS NULL OR hold_until > ?3)`, sqldb.Micros(after), sqldb.Micros(now),
			sqldb.Micros(now.Add(queue.MaxDelay)))
		return err
	})
}

// Retry implements queue.Store.
func (s *Queue) Retry(
	ctx context.Context, user memory.User, id string, audience memory.Audience, at time.Time,
) (c memory.Consideration, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		job, err := getJob(ctx, tx, user, id, audience)
		if err != nil {
			return err
		}
		switch job.Consideration.State {
		case memory.StateFailed:
		case memory.StatePending, memory.StateRunning:
			c, err = retryPending(ctx, tx, job, user, audience, at)
			return err
		default:
			return fmt.Errorf("%w: consideration %q is %s; only one that failed or is pending can be retried", memory.ErrPrecondition, id,
				job.Consideration.State)
		}
		// A line has at most one due job. If another one of the user is pending or running, that one stays due, and this one runs at
		// its position in the line.
		var dialogue int64
		if err := tx.QueryRow(ctx, `SELECT dialogue_row FROM considerations WHERE seq = ?`, job.Seq).Scan(&dialogue); err != nil {
			return err
		}
		err = s.pending.changing(ctx, tx, []int64{dialogue}, func() error {
			_, err := tx.Exec(ctx, `UPDATE considerations SET state = 'pending', due_at = NULL, attempts = 0, accepted_at = ?1,
				updated_at = ?1 WHERE seq = ?2`, sqldb.Micros(at), job.Seq)
			return err
		})
		if err != nil {
			return err
		}
		var busy bool
		err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM considerations INDEXED BY considerations_line WHERE namespace = ? AND user_id = ?
			AND state IN ('pending', 'running') AND seq <> ? AND (state = 'running' OR due_at IS NOT NULL))`,
			user.Namespace, user.ID, job.Seq).Scan(&busy)
		if err != nil {
			return err
		}
		if !busy {
			if err := advance(ctx, tx, user, at); err != nil {
				return err
			}
		}
		job, err = getJob(ctx, tx, user, id, audience)
		c = job.Consideration
		return err
	})
	return c, err
}

// retryPending makes the first job of the user's line due: the others wait for it. The age limit of the consideration restarts.
func retryPending(
	ctx context.Context, tx sqldb.Tx, job queue.Job, user memory.User, audience memory.Audience, at time.Time,
) (memory.Consideration, error) {
	_, err := tx.Exec(ctx, `UPDATE considerations SET accepted_at = ?1 WHERE seq = ?2 AND state = 'pending'`, sqldb.Micros(at), job.Seq)
	if err != nil {
		return memory.Consideration{}, err
	}
	_, err = tx.Exec(ctx, `UPDATE considerations INDEXED BY considerations_line SET due_at = ?3, updated_at = ?3
		WHERE namespace = ?1 AND user_id = ?2 AND state IN ('pending', 'running') AND state = 'pending' AND due_at > ?3`,
		user.Namespace, user.ID, sqldb.Micros(at))
	if err == nil {
		err = release(ctx, tx, user, at)
	}
	if err != nil {
		return memory.Consideration{}, err
	}
	job, err = getJob(ctx, tx, user, job.Consideration.ID, audience)
	return job.Consideration, err
}

// expiredDialogues finds dialogues, longest ended first. All considerations of a group's dialogue must have ended long enough ago:
// while one is kept, forgetting a user must find the dialogue by all its speakers.
const expiredDialogues = `SELECT DISTINCT c.dialogue_row FROM considerations c INDEXED BY considerations_ended
		WHERE c.state IN ('remembered', 'skipped') AND c.updated_at < ?1 AND NOT EXISTS (` + keptSibling + `)
	UNION SELECT DISTINCT c.dialogue_row FROM considerations c INDEXED BY considerations_given_up
		WHERE c.state = 'failed' AND c.updated_at < ?2 AND NOT EXISTS (` + keptSibling + `) LIMIT ?3`

const keptSibling = `SELECT 1 FROM considerations o WHERE o.dialogue_row = c.dialogue_row AND NOT (
	o.state IN ('remembered', 'skipped') AND o.updated_at < ?1 OR o.state = 'failed' AND o.updated_at < ?2)`

// Expire implements queue.Store. It also deletes the records of applied statements: an expired consideration cannot run again.
func (s *Queue) Expire(ctx context.Context, e queue.Expiry) (deleted int64, err error) {
	ended, failed := e.EndedBefore.UnixMicro(), e.FailedBefore.UnixMicro()
	if e.EndedBefore.IsZero() {
		ended = -1 << 62
	}
	if e.FailedBefore.IsZero() {
		failed = -1 << 62
	}
	var rows []int64
	err = s.db.Read(ctx, func(q sqldb.Querier) error { // a read, so that an empty result does not block writers
		found, err := q.Query(ctx, expiredDialogues, ended, failed, e.Limit)
		if err == nil {
			rows, err = sqldb.Column[int64](found)
		}
		return err
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return 0, err
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		// A failed consideration may have become pending in the meantime.
		const which = `(SELECT c.dialogue_row FROM considerations c WHERE c.dialogue_row IN (SELECT value FROM json_each(?3))
			AND NOT EXISTS (` + keptSibling + `))`
		if _, err := tx.Exec(ctx, `DELETE FROM applied_statements WHERE row IN (SELECT a.row FROM dialogues d
			JOIN considerations c ON c.dialogue_row = d.row JOIN users u ON u.namespace = c.namespace AND u.user_id = c.user_id
			JOIN applied_statements a ON a.user_row = u.id AND a.statement_id > d.id || '/' AND a.statement_id < d.id || '0'
			WHERE d.row IN `+which+`)`, ended, failed, string(list)); err != nil {
			return err
		}
		deleted, err = tx.Affect(ctx, `DELETE FROM dialogues WHERE row IN `+which, ended, failed, string(list))
		return err
	})
	return deleted, err
}

// Table names in errors about rows that cannot be decoded.
const (
	dialoguesTable      = "dialogues"
	considerationsTable = "considerations"
)

// unreadableOutcome is the error in a consideration whose outcome cannot be decoded.
const unreadableOutcome = "its outcome cannot be read any more"

// dueJobs reads due jobs. If a page is broken they are read one by one, and the jobs on that page are unreadable.
func dueJobs(ctx context.Context, tx sqldb.Tx, now time.Time, limit int) ([]queue.Job, error) {
	jobs, err := queryJobs(ctx, tx, `WHERE c.due_at <= ? AND c.state = 'pending' ORDER BY c.due_at, c.seq LIMIT ?`, sqldb.Micros(now), limit)
	if tx.Unreadable(err) == nil {
		return jobs, err
	}
	rows, err := tx.Query(ctx, `SELECT seq FROM considerations WHERE due_at <= ? AND state = 'pending' ORDER BY due_at, seq LIMIT ?`,
		sqldb.Micros(now), limit)
	if err != nil {
		return nil, err
	}
	due, err := sqldb.Column[int64](rows)
	if err != nil {
		return nil, err
	}
	jobs = nil
	for _, seq := range due {
		found, err := queryJobs(ctx, tx, `WHERE c.seq = ?`, seq)
		if damage := tx.Unreadable(err); damage != nil {
			found, err = []queue.Job{{Seq: seq, Unreadable: damage}}, nil
		}
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, found...)
	}
	return jobs, nil
}

// setAside fails a job whose dialogue cannot be decoded, because it would block its user's line. It is listed with the other failed
// jobs, and can be retried after restoring a backup.
func (s *Queue) setAside(ctx context.Context, tx sqldb.Tx, job *queue.Job, at time.Time) error {
	text, err := json.Marshal(memory.Outcome{Error: "the dialogue cannot be considered: " + job.Unreadable.Error()})
	if err != nil {
		return err
	}
	return s.finish(ctx, tx, job.Seq, memory.StateFailed, string(text), at)
}

// otelParent is the value of a dialogue's column otel_trace_id: the trace id and, if known, a hyphen and the span id, in the order of a
// traceparent header. Older rows have the trace id alone.
func otelParent(c trace.Call) string {
	if c.OTelSpanID == "" {
		return c.OTelTraceID
	}
	return c.OTelTraceID + "-" + c.OTelSpanID
}
