package sqlstore_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/retrieve/recall/recalltest"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
)

func TestRecall(t *testing.T) {
	recalltest.Run(t, func(t *testing.T) recalltest.Stores {
		db := dbtest.New(t)
		search := sqlstore.NewRecall(db)
		return recalltest.Stores{
			Sessions: sqlstore.NewSessions(db, sqlstore.NewQueue(db)),
			Search:   search,
			Index:    search,
			Close:    func() { closeNow(t, db) },
		}
	})
}
