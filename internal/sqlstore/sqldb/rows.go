package sqldb

import (
	"database/sql"
	"errors"
	"time"
)

// Collect reads all rows and closes them.
func Collect[T any](rows *sql.Rows, scanRow func(scan func(...any) error) (T, error)) (all []T, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := scanRow(rows.Scan)
		if errors.Is(err, errSkipped) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// Column reads rows of one column.
func Column[T any](rows *sql.Rows) ([]T, error) {
	return Collect(rows, func(scan func(...any) error) (v T, err error) {
		err = scan(&v)
		return v, err
	})
}

// Marked is a row, and whether it could not be decoded. Then it has the values that could be.
type Marked[T any] struct {
	Row     T
	Damaged bool
}

// CollectMarked reads all rows and marks those that cannot be decoded, so that pages can end at one.
func CollectMarked[T any](q Querier, rows *sql.Rows, scanRow func(scan func(...any) error) (T, error)) ([]Marked[T], error) {
	return Collect(rows, func(scan func(...any) error) (Marked[T], error) {
		v, err := scanRow(scan)
		if Skip(q, err) {
			return Marked[T]{v, true}, nil
		}
		return Marked[T]{v, false}, err
	})
}

// CollectReadable reads all rows except those that cannot be decoded, and closes them.
func CollectReadable[T any](q Querier, rows *sql.Rows, scanRow func(scan func(...any) error) (T, error)) (all []T, err error) {
	return Collect(rows, func(scan func(...any) error) (T, error) {
		v, err := scanRow(scan)
		if Skip(q, err) {
			return v, errSkipped
		}
		return v, err
	})
}

// errSkipped makes Collect omit a row.
var errSkipped = errors.New("skipped")

// Optional is nil for the error about a missing row.
func Optional(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
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
