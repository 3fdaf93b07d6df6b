package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// writeTx is the transaction of the writer. It implements sqldb.Tx. Statements are prepared once in the life of the connection. A
// statement does not follow the cancellation of its context: interrupting it would roll back the part of all callers.
type writeTx struct {
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	open   []*sql.Rows // of the current request, including closed ones
	undo   []func()    // of all requests in the transaction
	damage *damage
}

var _ sqldb.Tx = (*writeTx)(nil)

// OnRollback implements sqldb.Tx.
func (t *writeTx) OnRollback(fn func()) { t.undo = append(t.undo, fn) }

// rolledBack calls the functions registered after the first so many, newest first.
func (t *writeTx) rolledBack(to int) {
	for i := len(t.undo) - 1; i >= to; i-- {
		t.undo[i]()
	}
	t.forgetUndo(to)
}

func (t *writeTx) forgetUndo(to int) {
	clear(t.undo[to:])
	t.undo = t.undo[:to]
}

// Query reads inside the transaction.
func (t *writeTx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := t.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return nil, err
	}
	t.open = append(t.open, rows)
	return rows, nil
}

// closeRows closes the rows that a request left open, for example because it panicked. Open rows would keep the connection locked.
func (t *writeTx) closeRows() {
	for _, rows := range t.open {
		_ = rows.Close() // the request has seen every error that concerns it
	}
	clear(t.open)
	t.open = t.open[:0]
}

// QueryRow reads one row inside the transaction.
func (t *writeTx) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := t.prepare(ctx, query)
	if err != nil {
		// Let the connection report the same error through the row.
		return t.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)
	}
	return s.QueryRowContext(context.WithoutCancel(ctx), args...)
}

// Exec writes.
func (t *writeTx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := t.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.WithoutCancel(ctx), args...)
}

// Insert writes a row and returns its row id.
func (t *writeTx) Insert(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Affect writes and returns how many rows it changed.
func (t *writeTx) Affect(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (t *writeTx) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := t.stmts[query]; ok {
		return s, nil
	}
	s, err := t.conn.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	t.stmts[query] = s
	return s, nil
}

// pool reads with any free connection. database/sql prepares a statement once for each connection, because preparing costs as much as
// reading a few rows.
type pool struct {
	db     *sql.DB
	stmts  sync.Map // query → *sql.Stmt; the program's queries are few
	damage *damage
}

// Query implements sqldb.Querier.
func (p *pool) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// QueryRow implements sqldb.Querier.
func (p *pool) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.prepare(ctx, query)
	if err != nil {
		return p.db.QueryRowContext(ctx, query, args...) // which reports the same error through the row
	}
	return s.QueryRowContext(ctx, args...)
}

func (p *pool) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := p.stmts.Load(query); ok {
		return s.(*sql.Stmt), nil //nolint:errcheck // nothing else is stored
	}
	s, err := p.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, raced := p.stmts.LoadOrStore(query, s); raced {
		return first.(*sql.Stmt), s.Close() //nolint:errcheck // nothing else is stored
	}
	return s, nil
}

// close closes the statements and the connections.
func (p *pool) close() error {
	var errs []error
	p.stmts.Range(func(_, s any) bool {
		errs = append(errs, s.(*sql.Stmt).Close()) //nolint:errcheck // nothing else is stored
		return true
	})
	return errors.Join(append(errs, p.db.Close())...)
}

// errClosed is returned to calls while the database is being closed or replaced.
var errClosed = errors.New("the database is closed")

// openError means that the database cannot be opened or its file cannot be read.
type openError struct{ err error }

func (e *openError) Error() string { return "cannot open or read the database: " + e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// isOutage reports whether the error means that the database is unavailable or broken, and not that a caller made a mistake. A broken page
// is no outage: only calls that need that page fail.
func isOutage(err error) bool {
	if open := (*openError)(nil); errors.As(err, &open) || errors.Is(err, ErrGone) {
		return true
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff { // the low byte is the primary code
	case sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_NOTADB, sqlitelib.SQLITE_FULL,
		sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_PERM, sqlitelib.SQLITE_AUTH,
		sqlitelib.SQLITE_NOMEM, sqlitelib.SQLITE_PROTOCOL, sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED:
		return true
	}
	return false
}

// corrupt reports whether the error says that pages are broken.
func corrupt(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlitelib.SQLITE_CORRUPT || e.Code()&0xff == sqlitelib.SQLITE_NOTADB)
}

// classify wraps an outage as memory.ErrUnavailable and a broken page as memory.ErrDamaged. Other errors are unchanged.
func classify(err error) error {
	if broken := unreadable(err); broken != nil {
		return broken
	}
	refused := (*breaker.OpenError)(nil)
	if isOutage(err) || errors.Is(err, errClosed) || errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", memory.ErrUnavailable, err)
	}
	return err
}
