// Package sqldb is the contract between the stores and a database engine, with helpers to read rows. It knows no table.
package sqldb

import (
	"context"
	"database/sql"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Access is a database. Every error that means that it is unavailable wraps memory.ErrUnavailable.
type Access interface {
	// Read calls fn outside of any transaction: each query sees what was committed before it.
	Read(ctx context.Context, fn func(q Querier) error) error
	// Write calls fn inside a transaction and returns when the transaction is durable. Calls of several goroutines may share one transaction;
	// an error of fn undoes only what this fn did. fn must be quick and must use nothing but tx. It may run again after it was undone,
	// also within one call of Write, so each run must set its results from the beginning.
	Write(ctx context.Context, fn func(tx Tx) error) error
	// Purge removes deleted bytes from the files and reports whether it could. If not, it is tried again in the background.
	Purge(ctx context.Context) (bool, error)
	// PurgeLater removes deleted bytes in the background.
	PurgeLater()
	// OnOpen registers a function that is called each time the database was opened again, before calls are admitted. The database may be
	// another one then, so caches of rows must be cleared. The function must not use the database.
	OnOpen(fn func())
}

// Querier reads: outside of a transaction or in one.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) *sql.Row
	// NoteDamage logs and counts a row that cannot be decoded.
	NoteDamage(row *memory.DamagedError)
	// Unreadable returns the error as a memory.ErrDamaged if it says that a part of the database cannot be read, else nil.
	Unreadable(err error) error
}

// Tx is a transaction. A statement is not interrupted when its context is cancelled, because that could undo the whole transaction.
type Tx interface {
	Querier
	Exec(ctx context.Context, query string, args ...any) (sql.Result, error)
	// Insert writes a row and returns its row id.
	Insert(ctx context.Context, query string, args ...any) (int64, error)
	// Affect writes and returns how many rows it changed.
	Affect(ctx context.Context, query string, args ...any) (int64, error)
	// OnRollback registers a function that is called if what this run of fn wrote is rolled back, even after fn has returned. A store that
	// also keeps something in memory restores it there. Functions are called in reverse order, before another transaction begins. They
	// must not use the database.
	OnRollback(fn func())
}
