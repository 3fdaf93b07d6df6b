package sqlite_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// exec runs statements in one write.
func exec(ctx context.Context, s *sqlite.Storage, statements ...string) error {
	return s.Write(ctx, func(tx sqldb.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

var discard = slog.New(slog.DiscardHandler)
