package sqlite_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/retrieve/recall/recalltest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

func TestRecall(t *testing.T) {
	recalltest.Run(t, func(t *testing.T) recalltest.Stores {
		db := open(t, sqlite.Options{Dir: t.TempDir()})
		search := sqlite.NewRecall(db)
		return recalltest.Stores{
			Sessions: sqlite.NewSessions(db),
			Search:   search,
			Index:    search,
			Close:    func() { closeNow(t, db) },
		}
	})
}
