package local

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// maxHistory limits the memories, and the revisions, of a history.
const maxHistory = 1000

// history holds the changes of memories that superseded each other.
type history struct {
	memories  map[string]*stored
	revisions []kept // newest first
}

// kept is a stored revision.
type kept struct {
	revision
	row      int64
	id       string
	memoryID string
	reverted bool
}

// Revisions implements vectorstore.Store.
func (s *Store) Revisions(ctx context.Context, user memory.User, id string, audience memory.Audience) (list []vectorstore.Revision, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		h, err := readHistory(ctx, q, user, id, audience, true)
		if err == nil {
			list = h.list()
		}
		return err
	})
	return list, err
}

// readHistory reads the changes of a memory that the audience may see, of the memories that it superseded, directly or indirectly, and
// of those that superseded it. Reverted changes are included only if all is set.
func readHistory(ctx context.Context, q sqldb.Querier, user memory.User, id string, audience memory.Audience, all bool) (*history, error) {
	row, first, err := find(ctx, q, user, id, audience)
	if err != nil {
		return nil, err
	}
	h := &history{memories: map[string]*stored{id: {row, first}}}
	for _, links := range []string{earlierIDs, laterIDs} {
		if err := h.follow(ctx, q, links, h.memories[id], audience, all); err != nil {
			return nil, err
		}
	}
	for _, m := range h.memories {
		if err := h.read(ctx, q, m); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(h.revisions, func(a, b kept) int { return cmp.Compare(b.row, a.row) })
	h.revisions = h.revisions[:min(len(h.revisions), maxHistory)]
	return h, nil
}

// The memories that one superseded, and those that superseded it, with duplicates. Imported memories have no revisions.
const (
	earlierIDs = `SELECT id FROM memories WHERE user_row = (SELECT user_row FROM memories WHERE row = ?1)
			AND superseded_by = ?2 AND superseded_by <> ''
		UNION ALL SELECT m.id FROM memory_revisions r JOIN memories m ON m.row = r.memory_row
			WHERE r.user_row = (SELECT user_row FROM memories WHERE row = ?1) AND r.other_id = ?2 AND r.other_id <> ''
				AND (?3 OR r.reverted = 0)
		LIMIT ?4`
	laterIDs = `SELECT superseded_by FROM memories WHERE row = ?1 AND superseded_by NOT IN ('', ?2)
		UNION ALL SELECT other_id FROM memory_revisions WHERE memory_row = ?1 AND other_id NOT IN ('', ?2) AND (?3 OR reverted = 0)
		LIMIT ?4`
)

// follow adds the memories that links lead to, recursively. Links may be circular.
func (h *history) follow(ctx context.Context, q sqldb.Querier, links string, from *stored, audience memory.Audience, all bool) error {
	for left := []*stored{from}; len(left) > 0 && len(h.memories) < maxHistory; left = left[1:] {
		ids, err := queryIDs(ctx, q, links, left[0].row, left[0].ID, all, maxHistory)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if h.memories[id] != nil || len(h.memories) == maxHistory {
				continue
			}
			row, m, err := find(ctx, q, from.User, id, audience)
			if errors.Is(err, memory.ErrNotFound) || sqldb.Skip(q, err) {
				continue
			}
			if err != nil {
				return err
			}
			h.memories[id] = &stored{row, m}
			left = append(left, h.memories[id])
		}
	}
	return nil
}

func queryIDs(ctx context.Context, q sqldb.Querier, query string, args ...any) (ids []string, err error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// read adds a memory's revisions.
func (h *history) read(ctx context.Context, q sqldb.Querier, m *stored) (err error) {
	rows, err := q.Query(ctx, `SELECT row, id, change, other_id, before, reason, consideration_id, at, reverted
		FROM memory_revisions WHERE memory_row = ? ORDER BY row DESC LIMIT ?`, m.row, maxHistory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		k := kept{memoryID: m.ID}
		var before []byte
		var at int64
		err := rows.Scan(&k.row, &k.id, &k.change, &k.otherID, &before, &k.reason, &k.considerationID, &at, &k.reverted)
		if err != nil {
			return err
		}
		if sqldb.Skip(q, sqldb.DecodeJSON("memory_revisions", k.id, before, &k.before)) {
			continue
		}
		k.at = time.UnixMicro(at).UTC()
		h.revisions = append(h.revisions, k)
	}
	return rows.Err()
}

// list returns the history, newest first. It finds former states of memories by undoing the changes one by one.
func (h *history) list() []vectorstore.Revision {
	state := map[string]memory.Memory{}
	for id, m := range h.memories {
		state[id] = m.Memory
	}
	changes := make([]vectorstore.Revision, 0, len(h.revisions)+len(state))
	for i := range h.revisions {
		k := &h.revisions[i]
		after := state[k.memoryID]
		before := after
		k.before.restore(&before)
		state[k.memoryID] = before
		r := vectorstore.Revision{
			ID: k.id, Change: k.change, Memory: after, Previous: &before, Reason: k.reason,
			ConsiderationID: k.considerationID, At: k.at, Reverted: k.reverted,
		}
		if k.change == vectorstore.ChangeSuperseded {
			other, ok := state[k.otherID]
			if !ok {
				other = memory.Memory{ID: k.otherID, User: after.User, Channel: after.Channel}
			}
			r.Memory = other
		}
		changes = append(changes, r)
	}
	var added []vectorstore.Revision
	for id, m := range state {
		added = append(added, vectorstore.Revision{
			ID: "added_" + id, Change: vectorstore.ChangeAdded, Memory: m, Reason: m.Provenance.Reason,
			ConsiderationID: m.Provenance.ConsiderationID, At: m.CreatedAt,
		})
	}
	slices.SortFunc(added, func(a, b vectorstore.Revision) int {
		return cmp.Or(b.At.Compare(a.At), -cmp.Compare(h.memories[a.Memory.ID].row, h.memories[b.Memory.ID].row))
	})
	list := make([]vectorstore.Revision, 0, cap(changes))
	for len(changes)+len(added) > 0 {
		from := &added
		if len(added) == 0 || len(changes) > 0 && !changes[0].At.Before(added[0].At) {
			from = &changes
		}
		list = append(list, (*from)[0])
		*from = (*from)[1:]
	}
	return list[:min(len(list), maxHistory)]
}

// restore restores the overwritten values.
func (o *overwritten) restore(m *memory.Memory) {
	restore(&m.Text, o.Text)
	restore(&m.Language, o.Language)
	restore(&m.Kind, o.Kind)
	restore(&m.Standing, o.Standing)
	restore(&m.Importance, o.Importance)
	restore(&m.UpdatedAt, o.UpdatedAt)
	restore(&m.ValidTo, o.ValidTo)
	restore(&m.SupersededBy, o.SupersededBy)
	restore(&m.Quarantine, o.Quarantine)
	restore(&m.WithdrawnAt, o.WithdrawnAt)
}

func restore[T any](field, old *T) {
	if old != nil {
		*field = *old
	}
}

// of returns the values of a memory that restore would overwrite.
func (o *overwritten) of(m memory.Memory) overwritten {
	return overwritten{
		Text: instead(o.Text, m.Text), Language: instead(o.Language, m.Language), Kind: instead(o.Kind, m.Kind),
		Standing: instead(o.Standing, m.Standing), Importance: instead(o.Importance, m.Importance), UpdatedAt: instead(o.UpdatedAt, m.UpdatedAt),
		ValidTo: instead(o.ValidTo, m.ValidTo), SupersededBy: instead(o.SupersededBy, m.SupersededBy),
		Quarantine: instead(o.Quarantine, m.Quarantine), WithdrawnAt: instead(o.WithdrawnAt, m.WithdrawnAt),
	}
}

func instead[T any](old *T, now T) *T {
	if old == nil {
		return nil
	}
	return &now
}
