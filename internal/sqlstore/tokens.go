package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
)

// Tokens counts the tokens that models take, for budgets.
type Tokens struct{ db sqldb.Access }

var _ budget.Store = (*Tokens)(nil)

// NewTokens returns the counts in the database.
func NewTokens(db sqldb.Access) *Tokens { return &Tokens{db} }

// Add implements budget.Store.
func (s *Tokens) Add(ctx context.Context, entries []budget.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	// Many entries are of few users.
	type key struct {
		day  string
		user memory.User
	}
	sums, earliest := map[key]budget.Count{}, entries[0].Day
	for _, e := range entries {
		k := key{e.Day, e.User}
		sums[k] = budget.Count{Tokens: sums[k].Tokens + e.Tokens, Refused: sums[k].Refused + e.Refused}
		earliest = min(earliest, e.Day)
	}
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM token_counts WHERE day < ?`, earliest); err != nil {
			return err
		}
		for k, c := range sums {
			_, err := tx.Exec(ctx, `INSERT INTO token_counts (day, namespace, user_id, tokens, refused) VALUES (?1, ?2, ?3, ?4, ?5)
				ON CONFLICT DO UPDATE SET tokens = tokens + ?4, refused = refused + ?5`,
				k.day, k.user.Namespace, k.user.ID, c.Tokens, c.Refused)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Get implements budget.Store.
func (s *Tokens) Get(ctx context.Context, day string, user memory.User) (c budget.Count, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		err := q.QueryRow(ctx, `SELECT tokens, refused FROM token_counts WHERE day = ? AND namespace = ? AND user_id = ?`,
			day, user.Namespace, user.ID).Scan(&c.Tokens, &c.Refused)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return c, err
}

// RefusedUsers implements budget.Store.
func (s *Tokens) RefusedUsers(ctx context.Context, day, namespace string) (n int64, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		return q.QueryRow(ctx, `SELECT count(*) FROM token_counts WHERE day = ? AND namespace = ? AND user_id <> '' AND refused > 0`,
			day, namespace).Scan(&n)
	})
	return n, err
}

// Forget implements budget.Store.
func (s *Tokens) Forget(ctx context.Context, user memory.User) (had bool, err error) {
	if user.ID == "" {
		return false, nil // that is the namespace's
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		deleted, err := tx.Affect(ctx, `DELETE FROM token_counts WHERE namespace = ? AND user_id = ?`, user.Namespace, user.ID)
		had = deleted > 0
		return err
	})
	return had, err
}
