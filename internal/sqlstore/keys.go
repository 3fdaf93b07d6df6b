package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// keyBytes is the length of a key, for AES-256.
const keyBytes = 32

// Keys keeps the random keys of a database, with which the sidecar encrypts the tokens that it hands out.
type Keys struct{ db sqldb.Access }

// NewKeys returns the keys of the database.
func NewKeys(db sqldb.Access) *Keys { return &Keys{db} }

// Get returns the key of a name, which is created on the first call. While the database accepts no writes, a new key is not stored: what
// is signed with it is refused after a restart.
func (k *Keys) Get(ctx context.Context, name string) (key []byte, err error) {
	err = k.db.Read(ctx, func(q sqldb.Querier) error {
		err := q.QueryRow(ctx, `SELECT key FROM keys WHERE name = ?`, name).Scan(&key)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || key != nil {
		return key, err
	}
	made := make([]byte, keyBytes)
	_, _ = rand.Read(made) // never fails
	err = k.db.Write(ctx, func(tx sqldb.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO keys (name, key) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, made); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT key FROM keys WHERE name = ?`, name).Scan(&key)
	})
	if errors.Is(err, memory.ErrUnavailable) {
		return made, nil
	}
	return key, err
}
