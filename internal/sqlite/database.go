package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	fileName = "memsidecar.db"
	// maxBatch limits how many writes share a commit, so that the first of them does not wait too long.
	maxBatch = 512
	// waryFor is the number of transactions after a refused request in which each request gets a savepoint.
	waryFor = 16
	// busyTimeout is how long a connection waits for a lock of another program, such as a backup.
	busyTimeout = 5 * time.Second
)

// ErrNewer means that a newer version of this program wrote the database.
var ErrNewer = errors.New("the database was written by a newer version of memsidecar: run that version")

// ErrEmptied means that another program emptied the file: none of its data is left in it.
var ErrEmptied = errors.New("the database is empty, but its write-ahead log (-wal) is not: something emptied it; restore a backup " +
	"with memsidecar restore --replace, or stop memsidecar and move both files away to begin with an empty database")

// ErrDamaged means that some pages of the database cannot be read.
var ErrDamaged = errors.New("the database is damaged: see what memsidecar check says, and restore a backup with memsidecar restore --replace")

// database is one opened file. It is never reopened; Storage replaces it with another.
type database struct {
	log *slog.Logger
	// raw is the file itself. It stays open as long as SQLite has the file open: closing it would release SQLite's locks, because POSIX
	// locks belong to the process and the file.
	raw     *os.File
	place   *place
	vault   *vault // nil: it is not encrypted
	readers *pool
	writer  *sql.DB
	copier  *sql.DB // copies the log into the file concurrently with the writer, see empty
	conn    *sql.Conn
	tx      writeTx
	// readOnly is why the database was opened for reading only, without a writer; nil if it was opened for writing.
	readOnly error
	wary     int // transactions that still need savepoints

	committed func(writes int, took time.Duration) // may be nil

	writes  chan *writeRequest
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
}

type writeRequest struct {
	fn    func(sqldb.Tx) error        // may be nil if after is set
	after func(context.Context) error // runs outside any transaction after fn is committed; may be nil
	state atomic.Int32
	done  chan error
}

const (
	waiting int32 = iota
	taken
	abandoned
)

func busyPragma() string { return fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds()) }

// dsn sets the pragmas in the connection string, because they belong to a connection and pools open several.
func dsn(path string, vault *vault, readOnly bool) string {
	q := vault.parameters()
	q.Set("mode", "rw") // SQLite creates no database
	for _, p := range []string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)", "secure_delete(ON)",
		"temp_store(MEMORY)", "cache_size(-8192)", "wal_autocheckpoint(1000)", "journal_size_limit(67108864)",
	} {
		q.Add("_pragma", p)
	}
	if readOnly {
		q.Add("_pragma", "query_only(ON)")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// openDatabase opens the file in the folder and migrates it. If create is set, a missing file is created.
func openDatabase(ctx context.Context, dir string, options Options, create bool) (_ *database, err error) {
	path := filepath.Join(dir, fileName)
	vault, err := unlock(path, options.key)
	if err != nil {
		return nil, err
	}
	// SQLite would create the file with the permissions of the umask, and other users could read the texts.
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, errors.Join(err, vault.close())
	}
	if err := lockDatabase(f); err != nil {
		return nil, errors.Join(err, vault.close(), closeDatabase(f))
	}
	if !create {
		if err := recognise(ctx, path, &options); err != nil {
			return nil, errors.Join(err, vault.close(), closeDatabase(f))
		}
	}
	if err := errors.Join(prepareFile(dir, options.Log), removeParts(dir), vault.completeRotation(path)); err != nil {
		return nil, errors.Join(err, vault.close(), closeDatabase(f))
	}

	d := &database{
		log: options.Log, committed: options.OnCommit, raw: f, vault: vault,
		writes: make(chan *writeRequest, maxBatch), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			d.closeFiles()
		}
	}()
	if d.writer, err = sql.Open("sqlite", dsn(path, d.vault, false)); err != nil {
		return nil, err
	}
	d.writer.SetMaxOpenConns(1)
	if err := migrate(ctx, d.writer); err != nil {
		return nil, err
	}
	if d.conn, err = d.writer.Conn(ctx); err != nil {
		return nil, err
	}
	d.tx = writeTx{conn: d.conn, stmts: map[string]*sql.Stmt{}}
	if d.place, err = placeOf(path, f); err != nil {
		return nil, err
	}
	d.copier = sql.OpenDB(&guarded{d.writer.Driver(), dsn(path, d.vault, false), d.place})
	d.copier.SetMaxOpenConns(1)
	readers := sql.OpenDB(&guarded{d.writer.Driver(), dsn(path, d.vault, true), d.place})
	d.readers = &pool{db: readers}
	connections := max(4, runtime.GOMAXPROCS(0))
	readers.SetMaxOpenConns(connections)
	readers.SetMaxIdleConns(connections)
	if err := readers.PingContext(ctx); err != nil {
		return nil, err
	}
	go d.write()
	return d, nil
}

// prepareFile checks the file before SQLite opens it. SQLite treats an empty file as a new database and deletes its log. The name of a
// new file is synced; otherwise a power loss could remove it with all its synced data.
func prepareFile(dir string, log *slog.Logger) error {
	path := DatabasePath(dir)
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return err
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return ErrEmptied
	}
	log.Info("making a new database", "file", path)
	return syncFolder(dir)
}

func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("%w (its schema is %d, this one knows %d)", ErrNewer, current, target)
	}
	_, err = p.Up(ctx)
	return err
}

// close waits for running writes, refuses new ones, and closes the files.
func (d *database) close() {
	d.once.Do(func() {
		close(d.stop)
		<-d.stopped
		d.closeFiles()
	})
}

func (d *database) closeFiles() {
	var err error
	for _, s := range d.tx.stmts {
		err = errors.Join(err, s.Close())
	}
	if d.conn != nil {
		err = errors.Join(err, d.conn.Close())
	}
	// Close the readers first: the last connection to close checkpoints the log, and a query_only connection cannot.
	if d.readers != nil {
		err = errors.Join(err, d.readers.close())
	}
	if d.copier != nil {
		err = errors.Join(err, d.copier.Close())
	}
	if d.writer != nil {
		err = errors.Join(err, d.writer.Close())
	}
	err = errors.Join(err, d.vault.close())
	if d.raw != nil {
		err = errors.Join(err, closeDatabase(d.raw))
	}
	if err != nil {
		d.log.Warn("closing the database", "error", err)
	}
}

func (d *database) read(fn func(sqldb.Querier) error) error { return fn(d.readers) }

func (d *database) submit(ctx context.Context, r *writeRequest) error {
	if d.readOnly != nil {
		return d.readOnly
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.done = make(chan error, 1)
	select {
	case <-d.stop:
		return errClosed
	default:
	}
	select {
	case d.writes <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.stop:
		return errClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		// The request is being committed: the caller must learn whether it is durable.
		return <-r.done
	case <-d.stopped:
		// The writer answers every accepted request before it stops; this one may still be in the channel.
		select {
		case err := <-r.done:
			return err
		default:
			return errClosed
		}
	}
}

// write is the single writer: it commits all requests in the channel together.
func (d *database) write() {
	defer close(d.stopped)
	for {
		var first *writeRequest
		select {
		case first = <-d.writes:
		case <-d.stop:
			return
		}
		batch := []*writeRequest{first}
	drain:
		for len(batch) < maxBatch {
			select {
			case r := <-d.writes:
				batch = append(batch, r)
			default:
				break drain
			}
		}
		d.commit(batch)
	}
}

// commit executes the batch in one transaction. A request that fails is rolled back alone. The after functions run after the other
// requests are answered.
func (d *database) commit(batch []*writeRequest) {
	ctx := context.Background() // the batch belongs to no single caller
	var accepted, after []*writeRequest
	for _, r := range batch {
		switch {
		case !r.state.CompareAndSwap(waiting, taken):
		case r.fn == nil:
			after = append(after, r)
		default:
			accepted = append(accepted, r)
		}
	}
	if len(accepted) > 0 {
		after = append(after, d.commitAccepted(ctx, accepted)...)
	}
	for _, r := range after {
		r.done <- r.after(ctx)
	}
}

// commitAccepted answers the requests, except those that have an after function.
func (d *database) commitAccepted(ctx context.Context, accepted []*writeRequest) (after []*writeRequest) {
	results := make([]error, len(accepted))
	started := time.Now()
	err := d.transact(ctx, accepted, results)
	if err == nil {
		err = d.place.check() // a commit is durable only if the files are still at their paths
	}
	if err == nil && d.committed != nil {
		d.committed(len(accepted), time.Since(started))
	}
	for i, r := range accepted {
		switch {
		case err != nil:
			r.done <- err
		case results[i] == nil && r.after != nil:
			after = append(after, r)
		default:
			r.done <- results[i]
		}
	}
	return after
}

// transact fills results, and returns an error if nothing was committed. A request that has a transaction to itself, or shares it only
// with successful requests, needs no savepoint; with one, SQLite copies each page that the request changes. When a request is refused,
// the transaction is rolled back and all requests run again, each in a savepoint. The next transactions also use savepoints, because
// refusals often come in groups.
func (d *database) transact(ctx context.Context, batch []*writeRequest, results []error) error {
	if len(batch) == 1 || d.wary == 0 {
		refused := false
		err := d.transaction(ctx, func() error {
			for _, r := range batch {
				if err := d.call(r.fn); err != nil {
					refused = !isOutage(err)
					return err
				}
			}
			return nil
		})
		if len(batch) == 1 || !refused {
			return err
		}
		d.wary = waryFor
	} else {
		d.wary--
	}
	return d.transaction(ctx, func() error { return d.each(ctx, batch, results) })
}

// transaction commits what fn does, or rolls it back when fn fails.
func (d *database) transaction(ctx context.Context, fn func() error) (err error) {
	if _, err := d.tx.Exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			defer d.tx.rolledBack(0)
			if _, rerr := d.tx.Exec(ctx, "ROLLBACK"); rerr != nil {
				// After some errors SQLite has rolled back already, and this error only says so.
				d.log.Debug("rolling back", "error", rerr)
			}
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	if _, err := d.tx.Exec(ctx, "COMMIT"); err != nil {
		return err
	}
	d.tx.forgetUndo(0)
	return nil
}

// each executes the requests, each in a savepoint.
func (d *database) each(ctx context.Context, batch []*writeRequest, results []error) error {
	for i, r := range batch {
		if _, err := d.tx.Exec(ctx, "SAVEPOINT request"); err != nil {
			return err
		}
		before := len(d.tx.undo)
		if results[i] = d.call(r.fn); results[i] != nil {
			if isOutage(results[i]) {
				return results[i] // the whole transaction is in doubt, not only this request
			}
			d.wary = waryFor
			if _, err := d.tx.Exec(ctx, "ROLLBACK TO request"); err != nil {
				return err
			}
			d.tx.rolledBack(before)
		}
		if _, err := d.tx.Exec(ctx, "RELEASE request"); err != nil {
			return err
		}
	}
	return nil
}

// call executes a request. A panic in it does not end the writer.
func (d *database) call(fn func(sqldb.Tx) error) (err error) {
	defer d.tx.closeRows()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a database write: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(&d.tx)
}
