package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// holdUntil returns until when a new consideration is held back, zero for not at all. Those that are held back in the same conversation
// wait for it, but not longer than queue.MaxDelays delays after the first was accepted. If the acceptance hurries, it ends all holding
// back in the user's line.
func holdUntil(ctx context.Context, tx sqldb.Tx, a queue.Acceptance, scope memory.Scope, at time.Time) (time.Time, error) {
	if a.Hurry {
		return time.Time{}, release(ctx, tx, scope.User(), at)
	}
	if a.Delay <= 0 {
		return time.Time{}, nil
	}
	delay := min(a.Delay, queue.MaxDelay)
	until := at.Add(delay)
	const held = `c.namespace = ?1 AND c.user_id = ?2 AND c.state IN ('pending', 'running') AND c.state = 'pending' AND c.hold_until IS NOT NULL
		AND d.session_id = ?3 AND d.channel_kind = ?4 AND d.channel_id = ?5 AND d.agent_id = ?6`
	conversation := []any{scope.Namespace, scope.UserID, scope.SessionID, string(scope.Channel.Kind), scope.Channel.ID, scope.AgentID}
	var first sql.NullInt64
	err := tx.QueryRow(ctx, `SELECT min(c.accepted_at) FROM considerations c INDEXED BY considerations_line
		JOIN dialogues d ON d.row = c.dialogue_row WHERE `+held, conversation...).Scan(&first)
	if err != nil || !first.Valid {
		return until, err
	}
	if end := sqldb.Time(first).Add(min(queue.MaxDelays*delay, queue.MaxDelay)); end.Before(until) {
		until = end
	}
	_, err = tx.Exec(ctx, `UPDATE considerations SET hold_until = ?7, due_at = CASE WHEN due_at IS NOT NULL THEN ?7 END
		WHERE seq IN (SELECT c.seq FROM considerations c INDEXED BY considerations_line JOIN dialogues d ON d.row = c.dialogue_row WHERE `+held+`)`,
		append(conversation, sqldb.Micros(until))...)
	return until, err
}

// releaseFull ends the holding back in a user's line when many messages of people are held back, and reports whether it did.
func releaseFull(ctx context.Context, tx sqldb.Tx, a queue.Acceptance, user memory.User, at time.Time) (bool, error) {
	if a.DelayMessages <= 0 {
		return false, nil
	}
	var messages int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM considerations c INDEXED BY considerations_line
		JOIN dialogues d ON d.row = c.dialogue_row, json_each(CASE WHEN json_valid(d.messages) THEN d.messages ELSE '[]' END) m
		WHERE c.namespace = ? AND c.user_id = ? AND c.state IN ('pending', 'running') AND c.hold_until IS NOT NULL
		AND m.value ->> 'role' = 'user'`, user.Namespace, user.ID).Scan(&messages)
	if err != nil || messages < a.DelayMessages {
		return false, err
	}
	return true, release(ctx, tx, user, at)
}

// release ends the holding back in a user's line.
func release(ctx context.Context, tx sqldb.Tx, user memory.User, at time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE considerations INDEXED BY considerations_line
		SET hold_until = NULL, due_at = CASE WHEN due_at IS NOT NULL THEN min(due_at, ?3) END
		WHERE namespace = ?1 AND user_id = ?2 AND state IN ('pending', 'running') AND state = 'pending' AND hold_until IS NOT NULL`,
		user.Namespace, user.ID, sqldb.Micros(at))
	return err
}

// Following implements queue.Store.
func (s *Queue) Following(ctx context.Context, seq int64, limit int) (jobs []queue.Job, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		jobs, err = queryJobs(ctx, q, `WHERE c.seq = ?`, seq)
		if err != nil || len(jobs) == 0 {
			return err // its user was forgotten
		}
		first := jobs[0]
		user := first.User()
		jobs, err = queryJobs(ctx, q, `WHERE c.namespace = ? AND c.user_id = ? AND c.state IN ('pending', 'running') AND c.seq > ?
			ORDER BY c.seq LIMIT ?`, user.Namespace, user.ID, seq, limit)
		for i := range jobs {
			if !follows(&first, &jobs[i]) {
				jobs = jobs[:i]
				break
			}
		}
		return err
	})
	return jobs, err
}

func follows(first, next *queue.Job) bool {
	a, b := first.Dialogue.Scope, next.Dialogue.Scope
	return next.Unreadable == nil && next.Checkpoint == nil && next.Consideration.State == memory.StatePending &&
		a.SessionID == b.SessionID && a.Channel == b.Channel && a.AgentID == b.AgentID
}

// ReadCheckpoint implements queue.Store.
func (s *Queue) ReadCheckpoint(ctx context.Context, seq int64) (data []byte, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		err := q.QueryRow(ctx, `SELECT checkpoint FROM considerations WHERE seq = ?`, seq).Scan(&data)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // its user was forgotten
		}
		return err
	})
	return data, err
}

// SameDialogues implements queue.Store.
func (s *Queue) SameDialogues(ctx context.Context, seqs []int64) (lines [][]queue.Job, err error) {
	of, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		lines = nil
		jobs, err := queryJobs(ctx, q, `WHERE c.dialogue_row IN (SELECT dialogue_row FROM considerations WHERE seq IN (SELECT value FROM json_each(?1)))
			AND c.seq NOT IN (SELECT value FROM json_each(?1)) AND c.state IN ('pending', 'running') ORDER BY c.user_id, c.seq`, string(of))
		if err != nil {
			return err
		}
		for len(jobs) > 0 {
			user, n := jobs[0].User(), 1
			for n < len(jobs) && jobs[n].User() == user {
				n++
			}
			turn, err := nextInLine(ctx, q, user, jobs[:n])
			if err != nil {
				return err
			}
			if turn {
				lines = append(lines, jobs[:n:n])
			}
			jobs = jobs[n:]
		}
		return nil
	})
	return lines, err
}

// nextInLine reports whether jobs are the first in their user's line, can be read and have no checkpoint.
func nextInLine(ctx context.Context, q sqldb.Querier, user memory.User, jobs []queue.Job) (bool, error) {
	if slices.ContainsFunc(jobs, func(job queue.Job) bool { return job.Unreadable != nil || job.Checkpoint != nil }) {
		return false, nil
	}
	var before int
	err := q.QueryRow(ctx, `SELECT count(*) FROM considerations INDEXED BY considerations_line
		WHERE namespace = ? AND user_id = ? AND state IN ('pending', 'running') AND seq <= ?`,
		user.Namespace, user.ID, jobs[len(jobs)-1].Seq).Scan(&before)
	return before == len(jobs), err
}

// CheckpointAll implements queue.Store.
func (s *Queue) CheckpointAll(ctx context.Context, checkpoints map[int64][]byte) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		for seq, data := range checkpoints {
			_, err := tx.Exec(ctx, `UPDATE considerations SET checkpoint = ?, hold_until = NULL
				WHERE seq = ? AND state IN ('pending', 'running')`, string(data), seq)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
