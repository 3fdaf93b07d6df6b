package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Access is the database as its users see it. Every error that means that storage is down wraps memory.ErrUnavailable.
type Access interface {
	// Read calls fn with a pooled connection, outside of any transaction: each query sees what was committed before it.
	Read(ctx context.Context, fn func(q Querier) error) error
	// Write calls fn inside a transaction and returns when it is durable. Calls from several goroutines may share one
	// commit; an error from fn undoes only what this fn did. fn must be quick and must use nothing but tx. It may run again after what
	// it did was undone, in the same call, too: what it says to its caller must be of its last run alone.
	Write(ctx context.Context, fn func(tx *Tx) error) error
	// Purge removes deleted bytes from the files and reports whether it could: a reader that still needs the write-ahead log
	// prevents it. Then it is tried again in the background.
	Purge(ctx context.Context) (bool, error)
	// PurgeLater has them removed in the background.
	PurgeLater()
}

// Querier is what reads: a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) *sql.Row
}

// Tx is the writer's transaction. Statements are prepared once in the life of the connection. The contexts are not
// followed when they are cancelled: interrupting a statement would roll back everybody's part of the transaction.
type Tx struct {
	conn  *sql.Conn
	stmts map[string]statement
	open  []*sql.Rows // of the request that is being carried out, closed ones included

	accepted accepted
	known    *known
	damage   *damage
}

type statement struct {
	*sql.Stmt
	voids bool // what is known, unless it comes from who keeps that up to date
}

// Query reads inside the transaction.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
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

// closeRows closes what a request left open, for example because it panicked: it would keep the connection locked.
func (t *Tx) closeRows() {
	for _, rows := range t.open {
		_ = rows.Close() // the request has seen every error that concerns it
	}
	clear(t.open)
	t.open = t.open[:0]
}

// QueryRow reads one row inside the transaction.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := t.prepare(ctx, query)
	if err != nil {
		// Let the connection report the same error through the row.
		return t.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)
	}
	return s.QueryRowContext(context.WithoutCancel(ctx), args...)
}

// Exec writes.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := t.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.WithoutCancel(ctx), args...)
}

// Insert writes a row and returns its row id.
func (t *Tx) Insert(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Affect writes and returns how many rows it changed.
func (t *Tx) Affect(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// prepare is called whenever a statement is executed.
func (t *Tx) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	s, ok := t.stmts[query]
	if !ok {
		prepared, err := t.conn.PrepareContext(context.WithoutCancel(ctx), query)
		if err != nil {
			return nil, err
		}
		s = statement{prepared, voidsKnown(query)}
		t.stmts[query] = s
	}
	if s.voids && t.known.trusted == 0 {
		t.known.forget()
	}
	return s.Stmt, nil
}

// pool reads with whatever connection is free. Statements are prepared once for each connection, which database/sql sees
// to: preparing costs as much as reading a user's few rows.
type pool struct {
	db     *sql.DB
	stmts  sync.Map // query → *sql.Stmt; the program's queries are few
	damage *damage
}

// Query implements Querier.
func (p *pool) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// QueryRow implements Querier.
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

// UserRow finds the row of a user; 0 when nothing was ever stored about them.
func UserRow(ctx context.Context, q Querier, user memory.User) (int64, error) {
	var row int64
	err := q.QueryRow(ctx, `SELECT id FROM users WHERE namespace = ? AND user_id = ?`, user.Namespace, user.ID).Scan(&row)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return row, err
}

// EnsureUserRow finds the row of a user, or makes it.
func EnsureUserRow(ctx context.Context, tx *Tx, user memory.User) (int64, error) {
	row, err := UserRow(ctx, tx, user)
	if err != nil || row != 0 {
		return row, err
	}
	return tx.Insert(ctx, `INSERT INTO users (namespace, user_id) VALUES (?, ?)`, user.Namespace, user.ID)
}

// DropUserRow deletes the row of a user of whom nothing else is stored any more.
func DropUserRow(ctx context.Context, tx *Tx, row int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM users WHERE id = ?1
		AND NOT EXISTS (SELECT 1 FROM memories WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM applied_statements WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM settings WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM digest_findings WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM session_participants WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM session_messages WHERE owner_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM current_sessions WHERE namespace = users.namespace AND user_row = ?1)`, row)
	return err
}

// Micros is a time as the database keeps it; a zero time is null.
func Micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// Time reads what Micros wrote.
func Time(micros sql.NullInt64) time.Time {
	if !micros.Valid {
		return time.Time{}
	}
	return time.UnixMicro(micros.Int64).UTC()
}

// errClosed answers calls that come while the database is being closed or replaced.
var errClosed = errors.New("the database is closed")

// openError is the failure to open the database, or to read its file, whatever its cause.
type openError struct{ err error }

func (e *openError) Error() string { return "cannot open or read the database: " + e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// outage reports whether the error says that the database is away or broken, as opposed to a caller's mistake. A broken page is
// no outage: it concerns whoever needs that page, and what lies on the other pages can be read and written.
func outage(err error) bool {
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

// classify wraps an outage as memory.ErrUnavailable, a broken page as memory.ErrDamaged, and leaves other errors as they are.
func classify(err error) error {
	if brokenPage(err) {
		return fmt.Errorf("%w: %w", errPages, err)
	}
	refused := (*breaker.OpenError)(nil)
	if outage(err) || errors.Is(err, errClosed) || errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", memory.ErrUnavailable, err)
	}
	return err
}
