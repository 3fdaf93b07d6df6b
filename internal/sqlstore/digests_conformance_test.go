package sqlstore_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/digest/digesttest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
)

func TestDigests(t *testing.T) {
	digesttest.Run(t, func(t *testing.T) digesttest.Stores {
		db := dbtest.New(t)
		queue := sqlstore.NewQueue(db)
		return digesttest.Stores{
			Digests:  sqlstore.NewDigests(db),
			Sessions: sqlstore.NewSessions(db, queue),
			Queue:    queue,
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
