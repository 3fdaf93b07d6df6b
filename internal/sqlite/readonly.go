package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// cannotOpen reports whether SQLite could not open one of the database's files. It says the same when it cannot create the log's.
func cannotOpen(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlitelib.SQLITE_CANTOPEN
}

// openUnwritable opens the database of a folder for reading only, because cause keeps it from being opened for writing: on a full or
// read-only disk its log cannot be created. The caller must have the folder locked. If this fails as well, the error is cause.
func openUnwritable(ctx context.Context, dir string, options Options, cause error) (_ *database, err error) {
	path := filepath.Join(dir, fileName)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil, cause
	}
	vault, err := unlock(path, options.key)
	if err != nil {
		return nil, err
	}
	d := &database{
		log: options.Log, vault: vault, readOnly: &openError{cause}, tx: writeTx{stmts: map[string]*sql.Stmt{}},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	close(d.stopped) // there is no writer
	defer func() {
		if err != nil {
			options.Log.Debug("opening the database for reading", "error", err)
			d.close()
			err = cause
		}
	}()
	if d.raw, err = os.Open(path); err != nil {
		return nil, err
	}
	if err := lockDatabase(d.raw); err != nil {
		return nil, err
	}
	if d.place, err = placeOfDatabase(path, d.raw); err != nil {
		return nil, err
	}
	q := vault.parameters()
	q.Set("mode", "ro")
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		q.Set("readonly_shm", "1") // SQLite keeps the log's index in memory
	} else {
		q.Set("immutable", "1") // without a log nothing can change
	}
	for _, p := range []string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "temp_store(MEMORY)", "cache_size(-8192)", "query_only(ON)",
	} {
		q.Add("_pragma", p)
	}
	source := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
	unguarded, err := sql.Open("sqlite", source) // opens no connection
	if err != nil {
		return nil, err
	}
	readers := sql.OpenDB(&guarded{unguarded.Driver(), source, d.place})
	d.readers = &pool{db: readers}
	connections := max(4, runtime.GOMAXPROCS(0))
	readers.SetMaxOpenConns(connections)
	readers.SetMaxIdleConns(connections)
	var schema int64
	if err := d.readers.QueryRow(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&schema); err != nil {
		return nil, err
	}
	known, err := knownSchema()
	if err != nil {
		return nil, err
	}
	if schema != known {
		return nil, fmt.Errorf("its schema is %d, not %d", schema, known)
	}
	return d, nil
}
