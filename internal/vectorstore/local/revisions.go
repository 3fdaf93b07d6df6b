package local

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// revision is the stored form of one change of one memory.
type revision struct {
	change          vectorstore.Change
	otherID         string // the memory that superseded it
	before          overwritten
	reason          string
	considerationID string
	at              time.Time
}

// overwritten holds the values of a memory that a change overwrote; nil fields did not change.
type overwritten struct {
	Text     *string      `json:"text,omitempty"`
	Language *string      `json:"language,omitempty"`
	Kind     *memory.Kind `json:"kind,omitempty"`
	// Standing is absent in changes of before there was one.
	Standing     *memory.StandingClass `json:"standing,omitempty"`
	Importance   *float64              `json:"importance,omitempty"`
	UpdatedAt    *time.Time            `json:"updated_at,omitempty"`
	ValidTo      *time.Time            `json:"valid_to,omitempty"`
	SupersededBy *string               `json:"superseded_by,omitempty"`
	Quarantine   *string               `json:"quarantine,omitempty"`
	WithdrawnAt  *time.Time            `json:"withdrawn_at,omitempty"`
	// Added says that the same change stored the superseding memory.
	Added bool `json:"added,omitempty"`
}

func writeRevision(ctx context.Context, tx sqldb.Tx, memoryRow int64, r revision) error {
	before, err := json.Marshal(r.before)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO memory_revisions (user_row, id, change, memory_row, other_id, before, reason,
		consideration_id, at, reverted)
		VALUES ((SELECT user_row FROM memories WHERE row = ?1), ?2, ?3, ?1, ?4, ?5, ?6, ?7, ?8, 0)`,
		memoryRow, "rev_"+uuid.NewString(), string(r.change), r.otherID, string(before), r.reason, r.considerationID,
		r.at.UnixMicro())
	return err
}

// goneReason replaces the reason of a revision that may quote a deleted memory.
const goneReason = "the memory that superseded it has been deleted"

// remove deletes a memory and its text in its own revisions and those of others.
func remove(ctx context.Context, tx sqldb.Tx, row int64, id string) error {
	var changed bool // most never changed, and the user may have many revisions
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM memory_revisions WHERE memory_row = ?1)`, row).Scan(&changed)
	if err != nil {
		return err
	}
	if changed {
		if err := forgetReasons(ctx, tx, row); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `UPDATE memory_revisions SET reason = ?3
		WHERE user_row = (SELECT user_row FROM memories WHERE row = ?1) AND other_id = ?2 AND other_id <> ''`, row, id, goneReason)
	if err != nil {
		return err
	}
	var userRow int64
	if err = tx.QueryRow(ctx, `DELETE FROM memories WHERE row = ? RETURNING user_row`, row).Scan(&userRow); err != nil {
		return sqldb.Optional(err)
	}
	return sqlstore.DropMemory(ctx, tx, userRow, id)
}

// forgetReasons empties the reasons of changes of a memory together with others: they may quote any of them.
func forgetReasons(ctx context.Context, tx sqldb.Tx, row int64) error {
	_, err := tx.Exec(ctx, `UPDATE memory_revisions SET reason = '' WHERE user_row = (SELECT user_row FROM memories WHERE row = ?1)
		AND (at, reason) IN (SELECT at, reason FROM memory_revisions WHERE memory_row = ?1)`, row)
	return err
}
