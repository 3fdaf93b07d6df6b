package sqlstore_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/manage/quotatest"
	"github.com/memsidecar/memsidecar/internal/manage/settingstest"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
	"github.com/memsidecar/memsidecar/internal/usage/usagetest"
	"github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

func TestSettings(t *testing.T) {
	settingstest.Run(t, func(t *testing.T) settingstest.Stores {
		db := dbtest.New(t)
		return settingstest.Stores{
			Settings: sqlstore.NewSettings(db),
			Memories: local.New(db, local.Options{IndexBudget: 1 << 30}),
			Reopen:   func() manage.SettingsStore { return sqlstore.NewSettings(db) },
			Close:    func() { closeNow(t, db) },
		}
	})
}

func TestQuotas(t *testing.T) {
	quotatest.Run(t, func(t *testing.T, q quotatest.Quotas) quotatest.Stores {
		db := dbtest.New(t)
		quotas := &sqlstore.Quotas{Limit: q.Limit, Refused: q.Refused}
		sessions, results := sqlstore.NewSessions(db, sqlstore.NewQueue(db)), sqlstore.NewNumberedLists(db)
		sessions.Quotas, results.Quotas = quotas, quotas
		return quotatest.Stores{
			Memories:  local.New(db, local.Options{IndexBudget: 1 << 30, Quotas: quotas}),
			Sessions:  sessions,
			Lists:     results,
			Standings: sqlstore.NewUsage(db, quotas).Standings,
			Close:     func() { closeNow(t, db) },
		}
	})
}

func TestUsage(t *testing.T) {
	usagetest.Run(t, func(t *testing.T) usagetest.Stores {
		db := dbtest.New(t)
		return usagetest.Stores{Usage: sqlstore.NewModels(db), Close: func() { closeNow(t, db) }}
	})
}
