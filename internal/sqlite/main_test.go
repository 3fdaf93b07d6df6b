package sqlite_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// open opens the storage in the folder and closes it with the test.
func open(t *testing.T, options sqlite.Options) *sqlite.Storage {
	t.Helper()
	if options.Log == nil {
		options.Log = discard
	}
	s, err := sqlite.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// exec runs statements in one write.
func exec(ctx context.Context, s *sqlite.Storage, statements ...string) error {
	return s.Write(ctx, func(tx *sqlite.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

func mustExec(t *testing.T, s *sqlite.Storage, statements ...string) {
	t.Helper()
	if err := exec(t.Context(), s, statements...); err != nil {
		t.Fatal(err)
	}
}

// value reads one value.
func value[T any](t *testing.T, s *sqlite.Storage, query string, args ...any) (v T) {
	t.Helper()
	err := s.Read(t.Context(), func(q sqlite.Querier) error { return q.QueryRow(t.Context(), query, args...).Scan(&v) })
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

var discard = slog.New(slog.DiscardHandler)
