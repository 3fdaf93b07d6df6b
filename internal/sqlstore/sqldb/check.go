package sqldb

import (
	"context"
	"errors"
)

// Check is a check of the meaning of a database's rows.
type Check func(ctx context.Context, q Querier) (Finding, error)

// maxExamples bounds how many problems a finding names.
const maxExamples = 5

// Finding is the result of a check.
type Finding struct {
	Check    string   // its name
	About    string   // what it makes sure of
	Problems int64    // how many things are wrong
	Examples []string // some of them; they name rows, and hold nothing of what was said
	Remedy   string   // what to do about it
}

// Add adds a problem.
func (f *Finding) Add(problem string) {
	if f.Problems++; len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, problem)
	}
}

// Ask adds what a query of one column returns.
func (f *Finding) Ask(ctx context.Context, q Querier, query string) (err error) {
	rows, err := q.Query(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var problem string
		if err := rows.Scan(&problem); err != nil {
			return err
		}
		f.Add(problem)
	}
	return rows.Err()
}
