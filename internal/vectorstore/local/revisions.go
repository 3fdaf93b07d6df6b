package local

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// revision is the stored form of one change of one memory.
type revision struct {
	change          vectorstore.Change
	otherID         string // the memory that took its place
	before          overwritten
	reason          string
	considerationID string
	at              time.Time
}

// overwritten is what a change overwrote of its memory; nil is what it left.
type overwritten struct {
	Text         *string      `json:"text,omitempty"`
	Language     *string      `json:"language,omitempty"`
	Kind         *memory.Kind `json:"kind,omitempty"`
	Importance   *float64     `json:"importance,omitempty"`
	UpdatedAt    *time.Time   `json:"updated_at,omitempty"`
	ValidTo      *time.Time   `json:"valid_to,omitempty"`
	SupersededBy *string      `json:"superseded_by,omitempty"`
	Quarantine   *string      `json:"quarantine,omitempty"`
	WithdrawnAt  *time.Time   `json:"withdrawn_at,omitempty"`
	// Added says that the memory that took the place was stored with the change.
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

// goneReason is what a revision says of a memory that was deleted since: its reason may have quoted it.
const goneReason = "the memory that took its place was deleted since"

// remove deletes a memory and what its own revisions and those of others say of it.
func remove(ctx context.Context, tx sqldb.Tx, row int64, id string) error {
	var changed bool // most never were, and the user's revisions may be many
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
	_, err = tx.Exec(ctx, `DELETE FROM memories WHERE row = ?`, row)
	return err
}

// forgetReasons empties the reasons of what was done to a memory and to others at once: they may quote any of them.
func forgetReasons(ctx context.Context, tx sqldb.Tx, row int64) error {
	_, err := tx.Exec(ctx, `UPDATE memory_revisions SET reason = '' WHERE user_row = (SELECT user_row FROM memories WHERE row = ?1)
		AND (at, reason) IN (SELECT at, reason FROM memory_revisions WHERE memory_row = ?1)`, row)
	return err
}
