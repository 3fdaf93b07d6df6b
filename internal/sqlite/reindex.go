package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Reindex rebuilds the indexes of the database in a data folder, calls rebuild for other derived data, and purges. No sidecar may use the
// folder at the same time.
func Reindex(
	ctx context.Context, dir string, log *slog.Logger, key seal.Key, rebuild func(context.Context, sqldb.Access) error,
) (err error) {
	if info, err := os.Stat(DatabasePath(dir)); err != nil || info.Size() == 0 {
		return fmt.Errorf("%w in %s", ErrNoDatabase, dir) // and it gets none
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	db, err := openDatabase(ctx, dir, Options{Log: log, Key: func() (seal.Key, error) { return key, nil }}, false)
	if err != nil {
		return err
	}
	defer db.close()
	w := &offline{db: db}
	if err := w.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, "REINDEX")
		return err
	}); err != nil {
		return err
	}
	if err := rebuild(ctx, w); err != nil {
		return err
	}
	_, err = db.purge(ctx)
	return err
}

// offline is a database that no other process and no breaker uses.
type offline struct{ db *database }

// Read implements sqldb.Access.
func (w *offline) Read(_ context.Context, fn func(sqldb.Querier) error) error { return w.db.read(fn) }

// Write implements sqldb.Access.
func (w *offline) Write(ctx context.Context, fn func(sqldb.Tx) error) error {
	return w.db.submit(ctx, &writeRequest{fn: fn})
}

// Purge implements sqldb.Access.
func (w *offline) Purge(ctx context.Context) (bool, error) { return w.db.purge(ctx) }

// PurgeLater implements sqldb.Access: Reindex purges at its end.
func (w *offline) PurgeLater() {}

// OnOpen implements sqldb.Access: the database is opened once.
func (w *offline) OnOpen(func()) {}
