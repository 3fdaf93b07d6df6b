package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// What errors about rows that cannot be read name.
const (
	dialoguesTable      = "dialogues"
	considerationsTable = "considerations"
)

// unreadableOutcome is what a consideration says whose outcome cannot be read.
const unreadableOutcome = "what became of it cannot be read any more"

// dueJobs reads what is due. When a page is broken they are read one by one, and those on it are unreadable.
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

// setAside fails a job whose dialogue cannot be read: it would hold up its user's line. It is listed with the others that failed, and
// can be retried when a backup was restored.
func (s *Queue) setAside(ctx context.Context, tx sqldb.Tx, job *queue.Job, at time.Time) error {
	text, err := json.Marshal(memory.Outcome{Error: "the dialogue cannot be considered: " + job.Unreadable.Error()})
	if err != nil {
		return err
	}
	return s.finish(ctx, tx, job.Seq, memory.StateFailed, string(text), at)
}
