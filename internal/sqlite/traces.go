package sqlite

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Traces implements trace.Store.
type Traces struct{ db Access }

var _ trace.Store = (*Traces)(nil)

// NewTraces returns the traces in the database.
func NewTraces(db Access) *Traces { return &Traces{db} }

// Append implements trace.Store.
func (s *Traces) Append(ctx context.Context, records []trace.Record) error {
	return s.db.Write(ctx, func(tx *Tx) error {
		for _, r := range records {
			_, err := tx.Exec(ctx, `INSERT INTO traces (id, namespace, user_id, kind, record, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
				r.ID, r.User.Namespace, r.User.ID, string(r.Kind), string(r.Data), Micros(r.At))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Prune implements trace.Store.
func (s *Traces) Prune(ctx context.Context, before time.Time) error {
	return s.db.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM traces WHERE created_at < ?`, Micros(before))
		return err
	})
}

// Forget implements trace.Store.
func (s *Traces) Forget(ctx context.Context, user memory.User) (count int64, err error) {
	err = s.db.Write(ctx, func(tx *Tx) error {
		count, err = tx.Affect(ctx, `DELETE FROM traces WHERE namespace = ? AND user_id = ?`, user.Namespace, user.ID)
		return err
	})
	return count, err
}
