package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Recall searches past messages. The rows of session_messages are the truth; postings and vectors are derived from them.
type Recall struct {
	db sqldb.Access

	// Of the one goroutine that indexes: how far it has looked, and how far it has noted on disk to have.
	started     atomic.Bool
	seen, noted int64
}

var (
	_ recall.Store = (*Recall)(nil)
	_ recall.Index = (*Recall)(nil)
)

// NewRecall returns the search over the messages in the database.
func NewRecall(db sqldb.Access) *Recall {
	s := &Recall{db: db}
	db.OnOpen(func() { s.started.Store(false) }) // how far the index is must be read again
	return s
}

// Parts of message_progress.
const (
	progressPostings = "postings"
	progressVectors  = "vectors"
)

// progress reads how far a part of the background work has come.
func (s *Recall) progress(ctx context.Context, part string) (row int64, fingerprint string, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		err := q.QueryRow(ctx, `SELECT row, fingerprint FROM message_progress WHERE part = ?`, part).Scan(&row, &fingerprint)
		if errors.Is(err, sql.ErrNoRows) {
			row, fingerprint = 0, ""
			return nil
		}
		return err
	})
	return row, fingerprint, err
}

// note writes down how far a part of the background work has come.
func (s *Recall) note(ctx context.Context, part, fingerprint string, row int64) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error { return noteProgress(ctx, tx, part, fingerprint, row) })
}

func noteProgress(ctx context.Context, tx sqldb.Tx, part, fingerprint string, row int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO message_progress (part, fingerprint, row, leftovers) VALUES (?1, ?2, ?3, 0)
		ON CONFLICT DO UPDATE SET fingerprint = ?2, row = ?3`, part, fingerprint, row)
	return err
}
