package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// UserRow is the row of a user; 0 when nothing was ever stored about them.
func UserRow(ctx context.Context, q sqldb.Querier, user memory.User) (int64, error) {
	var row int64
	err := q.QueryRow(ctx, `SELECT id FROM users WHERE namespace = ? AND user_id = ?`, user.Namespace, user.ID).Scan(&row)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return row, err
}

// EnsureUserRow is the row of a user, which is created when it is missing.
func EnsureUserRow(ctx context.Context, tx sqldb.Tx, user memory.User) (int64, error) {
	row, err := UserRow(ctx, tx, user)
	if err != nil || row != 0 {
		return row, err
	}
	return tx.Insert(ctx, `INSERT INTO users (namespace, user_id) VALUES (?, ?)`, user.Namespace, user.ID)
}

// DropUserRow deletes the row of a user about whom nothing else is stored.
func DropUserRow(ctx context.Context, tx sqldb.Tx, row int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM users WHERE id = ?1
		AND NOT EXISTS (SELECT 1 FROM memories WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM applied_statements WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM settings WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM digest_findings WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM session_participants WHERE user_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM session_messages WHERE owner_row = ?1)
		AND NOT EXISTS (SELECT 1 FROM current_sessions WHERE namespace = users.namespace AND user_row = ?1)`, row)
	return err
}
