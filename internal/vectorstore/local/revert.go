package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Revert implements vectorstore.Store.
func (s *Store) Revert(
	ctx context.Context, user memory.User, id, revisionID string, audience memory.Audience, at time.Time,
) (memory.Memory, vectorstore.Revision, error) {
	defer s.writers.lock(user)()
	var holds memory.Memory
	var undone vectorstore.Revision
	var changed []changed
	err := s.db.Write(ctx, func(tx sqldb.Tx) error {
		h, err := readHistory(ctx, tx, user, id, audience, false)
		if err != nil {
			return err
		}
		newest, err := h.undoable(id, revisionID)
		if err != nil {
			return err
		}
		list := h.list()
		undone = list[slices.IndexFunc(list, func(r vectorstore.Revision) bool { return r.ID == newest.id })]
		undone.Reverted = true
		u := undoer{applier: applier{tx: tx, user: user, fingerprint: s.indexed()}, at: at.Truncate(time.Microsecond).UTC()}
		if holds, err = u.undo(ctx, newest, id); err != nil {
			return err
		}
		changed = u.changed
		return nil
	})
	if err != nil {
		return memory.Memory{}, vectorstore.Revision{}, err
	}
	s.reindex(ctx, user, changed)
	s.written()
	return holds, undone, nil
}

// undoable returns the newest change that can be undone.
func (h *history) undoable(id, revisionID string) (*kept, error) {
	var newest *kept
	for i := range h.revisions {
		k := &h.revisions[i]
		if k.reverted || k.change == vectorstore.ChangeReverted {
			continue
		}
		if newest == nil {
			newest = k
		}
		if k.together(newest) && (revisionID == "" || k.id == revisionID) {
			return k, nil
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("memory %q has no change that can be undone; to remove it, delete it: %w", id, memory.ErrPrecondition)
	}
	return nil, fmt.Errorf("revision %q is not the newest change of memory %q that can be undone, which is %q: look at its revisions again: %w",
		revisionID, id, newest.id, memory.ErrPrecondition)
}

// together reports whether two revisions are one change: a memory may supersede several.
func (k *kept) together(other *kept) bool {
	return k.id == other.id || k.change == vectorstore.ChangeSuperseded && other.change == k.change && k.otherID == other.otherID && k.at.Equal(other.at)
}

// undoer undoes a change.
type undoer struct {
	applier
	at time.Time
}

// undo undoes a change and all its parts, and returns the memory that is active again: the one with the id, if there are several.
func (u *undoer) undo(ctx context.Context, k *kept, id string) (holds memory.Memory, err error) {
	ids := []string{k.memoryID}
	if k.change == vectorstore.ChangeSuperseded {
		ids, err = queryIDs(ctx, u.tx, `SELECT m.id FROM memory_revisions r JOIN memories m ON m.row = r.memory_row
			WHERE r.user_row = (SELECT user_row FROM memory_revisions WHERE row = ?1) AND r.other_id = ?2 AND r.other_id <> ''
				AND r.change = ?3 AND r.at = ?4 AND r.reverted = 0 ORDER BY r.row`, k.row, k.otherID, string(k.change), k.at.UnixMicro())
		if err != nil {
			return holds, err
		}
	}
	added := false
	for _, each := range ids {
		m, withTaker, err := u.undoOne(ctx, k, each)
		if err != nil {
			return holds, err
		}
		added = added || withTaker
		if each == id || each == k.memoryID && holds.ID == "" {
			holds = m
		}
	}
	if !added {
		return holds, nil
	}
	row, taker, err := find(ctx, u.tx, u.user, k.otherID, memory.Everything())
	if errors.Is(err, memory.ErrNotFound) || err == nil && !taker.WithdrawnAt.IsZero() {
		return holds, nil
	}
	if err != nil {
		return holds, err
	}
	return holds, u.restore(ctx, &stored{row, taker}, overwritten{WithdrawnAt: &u.at}, k.id)
}

// undoOne undoes a change of one memory. added says that the change also stored the superseding memory.
func (u *undoer) undoOne(ctx context.Context, k *kept, id string) (m memory.Memory, added bool, err error) {
	row, m, err := find(ctx, u.tx, u.user, id, memory.Everything())
	if err != nil {
		return m, false, err
	}
	h, one := history{}, &stored{row, m}
	if err := h.read(ctx, u.tx, one); err != nil {
		return m, false, err
	}
	for i := range h.revisions {
		r := &h.revisions[i]
		if r.reverted || !r.together(k) {
			continue
		}
		added = added || r.before.Added
		if _, err := u.tx.Exec(ctx, `UPDATE memory_revisions SET reverted = 1 WHERE row = ?`, r.row); err != nil {
			return m, false, err
		}
		if err := u.restore(ctx, one, r.before, r.id); err != nil {
			return m, false, err
		}
	}
	return one.Memory, added, nil
}

// restore restores the values of a memory that a revision overwrote, and records the current ones.
func (u *undoer) restore(ctx context.Context, m *stored, before overwritten, revisionID string) error {
	now := m.Memory
	before.restore(&m.Memory)
	if m.Text != now.Text {
		if err := saveText(ctx, u.tx, m.row, &m.Memory, vectorstore.Embedding{}); err != nil {
			return err
		}
	}
	if err := save(ctx, u.tx, m.row, &m.Memory); err != nil {
		return err
	}
	if err := u.restoreMessages(ctx, m, !now.WithdrawnAt.IsZero()); err != nil {
		return err
	}
	err := writeRevision(ctx, u.tx, m.row, revision{
		change: vectorstore.ChangeReverted, before: before.of(now), reason: "undoes " + revisionID, at: u.at,
	})
	if err != nil {
		return err
	}
	return u.reread(ctx, m)
}

// restoreMessages excludes or restores the messages of a memory that is withdrawn now, or was before.
func (u *undoer) restoreMessages(ctx context.Context, m *stored, before bool) error {
	if before == !m.WithdrawnAt.IsZero() {
		return nil
	}
	userRow, err := sqlstore.UserRow(ctx, u.tx, u.user)
	if err != nil {
		return err
	}
	if before {
		return sqlstore.RestoreMemory(ctx, u.tx, userRow, m.ID)
	}
	return sqlstore.ExcludeMemory(ctx, u.tx, userRow, &m.Memory, nil)
}

// reread updates a memory in the index with its vectors. It may have none, if it was withdrawn during the backfill.
func (u *undoer) reread(ctx context.Context, m *stored) error {
	embedding, err := readEmbedding(ctx, u.tx, m.row, u.fingerprint)
	if err != nil {
		return err
	}
	u.changed = append(u.changed, changed{m.Memory, &embedding})
	if len(embedding.Chunks) > 0 || !m.WithdrawnAt.IsZero() {
		return nil
	}
	return insertEmbedding(ctx, u.tx, m.row, vectorstore.Embedding{})
}

// Release implements vectorstore.Store.
func (s *Store) Release(ctx context.Context, user memory.User, id string, audience memory.Audience, at time.Time) (memory.Memory, error) {
	defer s.writers.lock(user)()
	var released changed
	err := s.db.Write(ctx, func(tx sqldb.Tx) error {
		row, m, err := find(ctx, tx, user, id, audience)
		if err != nil {
			return err
		}
		if m.StatusAt(at) != memory.StatusQuarantined {
			return fmt.Errorf("memory %q is not quarantined: %w", id, memory.ErrPrecondition)
		}
		known := &stored{row, m}
		a := applier{tx: tx, user: user, fingerprint: s.indexed()}
		embedding, err := a.release(ctx, known, revision{at: at.Truncate(time.Microsecond).UTC()})
		released = changed{known.Memory, embedding}
		return err
	})
	if err != nil {
		return memory.Memory{}, err
	}
	s.reindex(ctx, user, []changed{released})
	return released.memory, nil
}
