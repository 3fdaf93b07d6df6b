package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Report is the result of Check.
type Report struct {
	File string `json:"file"`
	// Schema is the version of the tables. If this program knows another one, only pages and references are checked.
	Schema, Known int64
	Findings      []sqldb.Finding
}

// Sound reports whether no problem was found.
func (r *Report) Sound() bool {
	for _, f := range r.Findings {
		if f.Problems > 0 {
			return false
		}
	}
	return true
}

const (
	aboutPages    = "every page can be read, and the database's own indexes agree with its tables"
	remedyRestore = "restore a backup: memsidecar restore FILE --replace (docs/backup.md)"
)

// Check reads a whole database, a data folder's or a backup's, and reports what is wrong. It changes nothing and reads the state of one
// moment. A sidecar may be running.
func (of Files) Check(ctx context.Context, file string, backup bool) (r Report, err error) {
	open := openSnapshot
	if backup {
		open = openBackup
	}
	s, err := open(ctx, file, of.Key)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r.File = file
	if r.Known, err = knownSchema(); err != nil {
		return r, err
	}
	if r.Schema, err = s.schema(ctx); corrupt(err) {
		r.Findings = append(r.Findings, finding("pages", aboutPages, remedyRestore, []string{err.Error()}))
		return r, nil
	}
	if err != nil {
		return r, err
	}
	pages, references, err := s.sound(ctx)
	if err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	r.Findings = append(r.Findings,
		finding("pages", aboutPages, remedyRestore, pages),
		finding("references", "what rows refer to is there", remedyRestore, references))
	if r.Schema != r.Known || len(pages) > 0 {
		return r, nil
	}
	for _, check := range of.Checks {
		f, err := check(ctx, s)
		if err != nil {
			return r, fmt.Errorf("checking %s: %w", f.Check, err)
		}
		r.Findings = append(r.Findings, f)
	}
	return r, nil
}

func finding(check, about, remedy string, problems []string) sqldb.Finding {
	f := sqldb.Finding{Check: check, About: about, Remedy: remedy}
	for _, p := range problems {
		f.Add(p)
	}
	return f
}
