package sqlite_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/digest/digesttest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

func TestDigests(t *testing.T) {
	digesttest.Run(t, func(t *testing.T) digesttest.Stores {
		db := open(t, sqlite.Options{Dir: t.TempDir()})
		return digesttest.Stores{
			Digests:  sqlite.NewDigests(db),
			Sessions: sqlite.NewSessions(db),
			Queue:    sqlite.NewQueue(db),
			Close:    func() { closeNow(t, db) },
		}
	})
}

// closeNow closes the storage before the test ends.
func closeNow(t *testing.T, db *sqlite.Storage) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
