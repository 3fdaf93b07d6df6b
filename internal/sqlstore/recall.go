package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Recall searches past messages. Postings and vectors are derived from the rows of session_messages.
type Recall struct {
	db sqldb.Access

	started     atomic.Bool // seen and noted are valid
	seen, noted int64       // the last row that was indexed, and the last one recorded on disk; used only by the indexing goroutine
}

var (
	_ recall.Store = (*Recall)(nil)
	_ recall.Index = (*Recall)(nil)
)

// NewRecall returns the search over the messages in the database.
func NewRecall(db sqldb.Access) *Recall {
	s := &Recall{db: db}
	db.OnOpen(func() { s.started.Store(false) }) // the progress must be read again
	return s
}

// Parts of message_progress.
const (
	progressPostings = "postings"
	progressVectors  = "vectors"
)

// progress reads the progress of a part of the background work.
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

// note records the progress of a part of the background work.
func (s *Recall) note(ctx context.Context, part, fingerprint string, row int64) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error { return noteProgress(ctx, tx, part, fingerprint, row) })
}

func noteProgress(ctx context.Context, tx sqldb.Tx, part, fingerprint string, row int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO message_progress (part, fingerprint, row, leftovers) VALUES (?1, ?2, ?3, 0)
		ON CONFLICT DO UPDATE SET fingerprint = ?2, row = ?3`, part, fingerprint, row)
	return err
}
