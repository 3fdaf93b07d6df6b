package sqlstore_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/usage/budget/budgettest"
)

func TestTokens(t *testing.T) {
	budgettest.Run(t, func(t *testing.T) budget.Store {
		return sqlstore.NewTokens(dbtest.New(t))
	})
}

// TestTokenCountsOfEarlierDaysAreDeleted: Counts of earlier days do not accumulate.
func TestTokenCountsOfEarlierDaysAreDeleted(t *testing.T) {
	db := dbtest.New(t)
	s := sqlstore.NewTokens(db)
	for _, day := range []string{"2026-11-20", "2026-11-21", "2026-11-22"} {
		if err := s.Add(t.Context(), []budget.Entry{{Day: day, User: ann, Count: budget.Count{Tokens: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	if rows := dbtest.Value[int](t, db, `SELECT count(*) FROM token_counts`); rows != 1 {
		t.Errorf("%d rows are left", rows)
	}
}
