package sqlstore

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// RebuildOptions describes a Rebuild.
type RebuildOptions struct {
	// KeepVectors leaves the vectors: computing them again may cost money.
	KeepVectors bool
	// Progress is called with the name of the step and how many of how many rows are done. Optional.
	Progress func(what string, done, total int64)
}

// Rebuilt is what Rebuild did.
type Rebuilt struct {
	Postings int64 `json:"keyword_messages"` // messages in the keyword index
	Vectors  int64 `json:"dropped_vectors"`  // that the next sidecar computes again
}

const (
	// droppedPerWrite bounds a transaction.
	droppedPerWrite = 5000
	keywordStep     = "keyword index"
	vectorStep      = "vectors"
)

// Rebuild rebuilds the keyword index of past messages and drops the vectors, which the next sidecar computes in the background, as after a
// change of the model. Nothing else may use the database at the time. If it is interrupted, call it again, or leave it: the next
// sidecar completes what is missing.
func Rebuild(ctx context.Context, db sqldb.Access, o RebuildOptions) (r Rebuilt, err error) {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	w := &rebuilding{db}
	if r.Postings, err = w.keywords(ctx, o.Progress); err != nil || o.KeepVectors {
		return r, err
	}
	r.Vectors, err = w.dropVectors(ctx, o.Progress)
	return r, err
}

type rebuilding struct{ sqldb.Access }

// keywords rebuilds the keyword index. Without a row in message_indexes a search ignores a user's postings and reads the newest messages
// instead. So after an interruption nothing is wrong, and older messages are not found until the next sidecar has continued.
func (w *rebuilding) keywords(ctx context.Context, progress func(string, int64, int64)) (messages int64, err error) {
	err = w.Write(ctx, func(tx sqldb.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM message_indexes`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM message_progress WHERE part = ?`, progressPostings)
		return err
	})
	if err != nil {
		return 0, err
	}
	if _, err := w.drop(ctx, `DELETE FROM message_postings WHERE (user_row, term, first_row) IN
		(SELECT user_row, term, first_row FROM message_postings LIMIT ?)`, nil); err != nil {
		return 0, err
	}
	var last int64
	if err := w.one(ctx, &last, `SELECT coalesce(max(row), 0) FROM session_messages`); err != nil {
		return 0, err
	}
	index := NewRecall(w)
	for more := true; more; {
		if more, err = index.IndexNext(ctx); err != nil {
			return 0, err
		}
		progress(keywordStep, index.seen, last)
	}
	err = w.one(ctx, &messages, `SELECT coalesce(sum(messages), 0) FROM message_indexes`)
	return messages, err
}

// dropVectors first records that vectors are missing, so that the next sidecar computes them even after a crash here.
func (w *rebuilding) dropVectors(ctx context.Context, progress func(string, int64, int64)) (dropped int64, err error) {
	err = w.Write(ctx, func(tx sqldb.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE fingerprints SET complete = 0`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM message_progress WHERE part = ?`, progressVectors)
		return err
	})
	if err != nil {
		return 0, err
	}
	var total int64
	if err := w.one(ctx, &total, `SELECT (SELECT count(*) FROM embeddings) + (SELECT count(*) FROM message_embeddings)`); err != nil {
		return 0, err
	}
	for _, statement := range []string{
		`DELETE FROM embeddings WHERE row IN (SELECT row FROM embeddings LIMIT ?)`,
		`DELETE FROM message_embeddings WHERE message_row IN (SELECT message_row FROM message_embeddings LIMIT ?)`,
	} {
		before := dropped
		n, err := w.drop(ctx, statement, func(n int64) { progress(vectorStep, before+n, total) })
		if dropped += n; err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// drop repeats a statement that deletes some rows until it deletes no more.
func (w *rebuilding) drop(ctx context.Context, statement string, done func(int64)) (dropped int64, err error) {
	for {
		var n int64
		err := w.Write(ctx, func(tx sqldb.Tx) (err error) {
			n, err = tx.Affect(ctx, statement, droppedPerWrite)
			return err
		})
		if dropped += n; err != nil || n == 0 {
			return dropped, err
		}
		if done != nil {
			done(dropped)
		}
	}
}

func (w *rebuilding) one(ctx context.Context, value *int64, query string) error {
	return w.Read(ctx, func(q sqldb.Querier) error { return q.QueryRow(ctx, query).Scan(value) })
}
