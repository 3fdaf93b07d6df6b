package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// When what is pending is due.

// MakeDue implements queue.Store. It costs what is due later than that.
func (s *Queue) MakeDue(ctx context.Context, after, now time.Time) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE considerations INDEXED BY considerations_due SET due_at = ?2 WHERE due_at IS NOT NULL AND due_at > ?1
			AND state = 'pending'`, sqldb.Micros(after), sqldb.Micros(now))
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
		// A line has at most one due job: if another of this user's waits or runs, that one stays the due one, and this
		// one has its turn by its place in the line.
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

// retryPending makes the first of the user's line due: the others wait for it. The age limit of the consideration begins again.
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
	if err != nil {
		return memory.Consideration{}, err
	}
	job, err = getJob(ctx, tx, user, job.Consideration.ID, audience)
	return job.Consideration, err
}
