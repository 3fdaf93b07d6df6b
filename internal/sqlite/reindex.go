package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// ReindexOptions describes a Reindex.
type ReindexOptions struct {
	// Key is that of the database; the zero Key if it is not encrypted.
	Key seal.Key
	// KeepVectors leaves the vectors: making them anew may cost money.
	KeepVectors bool
	// Progress is called with what is being done and how many rows of how many are done. Optional.
	Progress func(what string, done, total int64)
}

// Reindexed is what Reindex did.
type Reindexed struct {
	Postings int64 `json:"keyword_messages"` // messages in the keyword index
	Vectors  int64 `json:"dropped_vectors"`  // that the next sidecar makes again
}

const (
	// droppedPerWrite bounds a transaction.
	droppedPerWrite = 5000
	keywordStep     = "keyword index"
	vectorStep      = "vectors"
)

// Reindex makes anew what is derived from the rows: the database's own indexes, and the keyword index of past messages. Vectors
// are dropped, and the next sidecar makes them in the background, as after a change of the model. No sidecar may use the
// folder meanwhile. One that was interrupted can be begun again, or left: what is missing then is made by the next sidecar.
func Reindex(ctx context.Context, dir string, log *slog.Logger, o ReindexOptions) (r Reindexed, err error) {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if info, err := os.Stat(DatabasePath(dir)); err != nil || info.Size() == 0 {
		return r, fmt.Errorf("%w in %s", ErrNoDatabase, dir) // and it gets none
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	db, err := openDatabase(ctx, dir, Options{Log: log, Key: func() (seal.Key, error) { return o.Key, nil }}, false)
	if err != nil {
		return r, err
	}
	defer db.close()
	w := &offline{db: db}
	if err := w.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "REINDEX")
		return err
	}); err != nil {
		return r, err
	}
	if r.Postings, err = w.keywords(ctx, o.Progress); err != nil {
		return r, err
	}
	if !o.KeepVectors {
		if r.Vectors, err = w.dropVectors(ctx, o.Progress); err != nil {
			return r, err
		}
	}
	_, err = db.purge(ctx)
	return r, err
}

// offline is a database that nobody else uses.
type offline struct{ db *database }

// Read implements Access.
func (w *offline) Read(_ context.Context, fn func(Querier) error) error { return w.db.read(fn) }

// Write implements Access.
func (w *offline) Write(ctx context.Context, fn func(*Tx) error) error {
	return w.db.submit(ctx, &writeRequest{fn: fn})
}

// Purge implements Access.
func (w *offline) Purge(ctx context.Context) (bool, error) { return w.db.purge(ctx) }

// PurgeLater implements Access: Reindex purges at its end.
func (w *offline) PurgeLater() {}

// keywords makes the keyword index again. Without a row in message_indexes a search takes no notice of a user's postings and reads
// the newest messages itself, so that an interruption leaves nothing wrong, and older messages unfound until the next sidecar
// has gone on.
func (w *offline) keywords(ctx context.Context, progress func(string, int64, int64)) (messages int64, err error) {
	err = w.Write(ctx, func(tx *Tx) error {
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

// dropVectors first notes that vectors are missing: whatever happens afterwards, the next sidecar makes them.
func (w *offline) dropVectors(ctx context.Context, progress func(string, int64, int64)) (dropped int64, err error) {
	err = w.Write(ctx, func(tx *Tx) error {
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

// drop runs a statement that deletes some rows until there are none.
func (w *offline) drop(ctx context.Context, statement string, done func(int64)) (dropped int64, err error) {
	for {
		var n int64
		err := w.Write(ctx, func(tx *Tx) (err error) {
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

func (w *offline) one(ctx context.Context, value *int64, query string) error {
	return w.Read(ctx, func(q Querier) error { return q.QueryRow(ctx, query).Scan(value) })
}
