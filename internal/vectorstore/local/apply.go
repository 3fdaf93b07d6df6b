package local

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// applier applies entries of one user in one transaction.
type applier struct {
	tx          sqldb.Tx
	user        memory.User
	userRow     int64
	fingerprint string // of the vectors in the index
	changed     []changed
}

// stored is a memory with its row.
type stored struct {
	row int64
	memory.Memory
}

// apply applies one entry, once.
func (a *applier) apply(ctx context.Context, entry *vectorstore.Entry) (vectorstore.Applied, error) {
	before, err := a.appliedBefore(ctx, entry)
	if err != nil {
		return vectorstore.Applied{}, err
	}
	if before != nil {
		return *before, nil
	}
	m := entry.Memory
	m.User = a.user
	// Use the database's precision, so that the index and the rows never differ.
	for _, t := range []*time.Time{&m.CreatedAt, &m.UpdatedAt, &m.ObservedAt, &m.LastSaidAt, &m.ValidFrom, &m.ValidTo, &m.WithdrawnAt} {
		*t = t.Truncate(time.Microsecond).UTC()
	}
	applied, err := a.carryOut(ctx, entry, &m)
	if err != nil {
		return applied, err
	}
	if len(entry.Withdraws) == 0 && m.Provenance.Source == memory.SourceDialogue && applied.Memory.WithdrawnAt.IsZero() {
		if err := sqlstore.RestMemory(ctx, a.tx, a.userRow, applied.Memory.ID, &m); err != nil {
			return applied, err
		}
	}
	if entry.StatementID == "" {
		return applied, nil
	}
	payload := entry.PayloadHash
	if payload == nil {
		payload = []byte{}
	}
	related := []byte{}
	if len(applied.Related) > 0 {
		if related, err = json.Marshal(applied.Related); err != nil {
			return applied, err
		}
	}
	_, err = a.tx.Exec(ctx, `INSERT INTO applied_statements (user_row, statement_id, memory_id, action, payload_hash, related)
		VALUES (?, ?, ?, ?, ?, ?)`, a.userRow, entry.StatementID, applied.Memory.ID, string(applied.Action), payload, string(related))
	return applied, err
}

// appliedBefore returns the result of an entry that was applied before, or nil.
func (a *applier) appliedBefore(ctx context.Context, entry *vectorstore.Entry) (*vectorstore.Applied, error) {
	if entry.StatementID == "" {
		return nil, nil
	}
	var applied vectorstore.Applied
	var id string
	var payload, related []byte
	err := a.tx.QueryRow(ctx, `SELECT memory_id, action, payload_hash, related FROM applied_statements
		WHERE user_row = ? AND statement_id = ?`, a.userRow, entry.StatementID).Scan(&id, &applied.Action, &payload, &related)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case len(entry.PayloadHash) > 0 && !bytes.Equal(payload, entry.PayloadHash):
		return nil, memory.Invalid("request_id", "was used before for something else: use a new one")
	}
	if len(related) > 0 {
		sqldb.Skip(a.tx, sqldb.DecodeJSON("applied_statements", entry.StatementID, related, &applied.Related))
	}
	_, applied.Memory, err = find(ctx, a.tx, a.user, id, memory.Everything())
	if sqldb.Skip(a.tx, err) { // it was applied nevertheless
		applied.Memory = memory.Memory{ID: id, User: a.user}
		return &applied, nil
	}
	if errors.Is(err, memory.ErrNotFound) {
		if applied.Action != memory.ActionWithdrawn {
			applied.Action, applied.Related = memory.ActionLeftDeleted, nil
		}
		applied.Memory = memory.Memory{ID: id, User: a.user}
		return &applied, nil
	}
	return &applied, err
}

func (a *applier) carryOut(ctx context.Context, entry *vectorstore.Entry, m *memory.Memory) (vectorstore.Applied, error) {
	if len(entry.Withdraws) > 0 {
		return a.withdraw(ctx, entry, m)
	}
	known, err := a.existing(ctx, entry, m)
	if err != nil {
		return vectorstore.Applied{}, err
	}
	if known != nil {
		return a.repeat(ctx, entry, m, known)
	}
	return a.add(ctx, entry, m)
}

// like returns a memory of the same visibility, or nil.
func (a *applier) like(ctx context.Context, m *memory.Memory, id string) (*stored, error) {
	row, other, err := find(ctx, a.tx, a.user, id, memory.Everything())
	if errors.Is(err, memory.ErrNotFound) || err == nil && other.Channel.VisibilityKey() != m.Channel.VisibilityKey() || sqldb.Skip(a.tx, err) {
		return nil, nil //nolint:nilnil // a deleted memory is not an error
	}
	return &stored{row, other}, err
}

// existing returns the memory that the entry repeats, or nil.
func (a *applier) existing(ctx context.Context, entry *vectorstore.Entry, m *memory.Memory) (*stored, error) {
	if entry.SameAs != "" {
		same, err := a.like(ctx, m, entry.SameAs)
		if err != nil || same != nil && same.StatusAt(m.CreatedAt) == memory.StatusActive {
			return same, err
		}
	}
	// The id is looked up first, then text and visibility. Two queries, because with an OR SQLite reads all of the user's memories.
	// Superseded memories are only found for entries that are history themselves; imports never match them.
	key := textKey(m.Text)
	if entry.ForceNew || entry.Restore && (m.SupersededBy != "" || !m.WithdrawnAt.IsZero()) {
		key = nil
	}
	row, known, err := scanMemory(a.tx.QueryRow(ctx, `SELECT `+memoryColumns+` FROM memories m WHERE m.row = coalesce(
		(SELECT row FROM memories WHERE user_row = ?1 AND id = ?2),
		(SELECT row FROM memories WHERE user_row = ?1 AND text_key = ?3 AND visibility = ?4 AND withdrawn_at IS NULL
			AND superseded_by IN ('', ?5) ORDER BY superseded_by LIMIT 1))`,
		a.userRow, m.ID, key, m.Channel.VisibilityKey(), m.SupersededBy).Scan, a.user)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // no match is not an error
	}
	if known.ID != m.ID && sqldb.Skip(a.tx, err) {
		return nil, nil //nolint:nilnil // an unreadable memory is stored again
	}
	return &stored{row, known}, err
}

// repeat records another mention of an existing memory.
func (a *applier) repeat(ctx context.Context, entry *vectorstore.Entry, m *memory.Memory, known *stored) (vectorstore.Applied, error) {
	status := known.StatusAt(m.CreatedAt)
	if entry.Restore || m.Quarantine != "" || status == memory.StatusWithdrawn ||
		status == memory.StatusSuperseded && known.SupersededBy != m.SupersededBy {
		return vectorstore.Applied{Action: memory.ActionUnchanged, Memory: known.Memory}, nil
	}
	action := memory.ActionUnchanged
	var embedding *vectorstore.Embedding
	if known.Quarantine != "" {
		released, err := a.release(ctx, known, revision{
			reason: "said again", considerationID: m.Provenance.ConsiderationID, at: m.CreatedAt,
		})
		if err != nil {
			return vectorstore.Applied{}, err
		}
		action, embedding = memory.ActionReinforced, released
	}
	if later := m.ValidTo.After(known.ValidTo); !known.ValidTo.IsZero() && (later || m.ValidTo.IsZero() && status == memory.StatusExpired) {
		known.ValidTo = m.ValidTo
		action = memory.ActionReinforced
	}
	if mention(entry, m, known) {
		action = memory.ActionReinforced
	}
	if action == memory.ActionReinforced {
		if err := save(ctx, a.tx, known.row, &known.Memory); err != nil {
			return vectorstore.Applied{}, err
		}
		a.changed = append(a.changed, changed{known.Memory, embedding})
	}
	applied := vectorstore.Applied{Action: action, Memory: known.Memory}
	if known.StatusAt(m.CreatedAt) != memory.StatusActive {
		return applied, nil
	}
	outdated, later, err := a.outdated(ctx, entry, m, known.ID)
	if err != nil || later != nil || len(outdated) == 0 {
		return applied, err
	}
	if inherit(&known.Memory, outdated) {
		if err := save(ctx, a.tx, known.row, &known.Memory); err != nil {
			return applied, err
		}
		a.changed = append(a.changed, changed{known.Memory, nil})
		applied.Memory = known.Memory
	}
	applied.Action = memory.ActionUpdated
	applied.Related, err = a.retire(ctx, entry, m, outdated, known.ID, false)
	return applied, err
}

// inherit gives a memory the standing of the memories that it takes the place of, unless it has its own.
func inherit(m *memory.Memory, from []*stored) bool {
	if m.Standing != "" {
		return false
	}
	for _, class := range memory.StandingClasses() {
		if slices.ContainsFunc(from, func(old *stored) bool { return old.Standing == class }) {
			m.Standing = class
			return true
		}
	}
	return false
}

// mention adds what a mention says to an existing memory, and reports whether that changed it.
func mention(entry *vectorstore.Entry, m *memory.Memory, known *stored) (changed bool) {
	if known.Standing == "" && m.Standing != "" {
		known.Standing, known.UpdatedAt = m.Standing, m.UpdatedAt
		changed = true
	}
	if !entry.Reinforce && known.ID != entry.SameAs {
		return changed
	}
	known.Mentions++
	if m.Importance > known.Importance {
		known.Importance, known.UpdatedAt = m.Importance, m.UpdatedAt
	}
	known.Explicit = known.Explicit || m.Explicit
	if m.LastSaidAt.After(known.LastSaidAt) {
		known.LastSaidAt = m.LastSaidAt
	}
	return true
}

// outdated returns the other memories that the entry supersedes. later is one of them that was said again after the entry: then the
// entry itself is outdated.
func (a *applier) outdated(ctx context.Context, entry *vectorstore.Entry, m *memory.Memory, id string) (list []*stored, later *stored, err error) {
	if entry.Restore || m.Quarantine != "" || m.SupersededBy != "" {
		return nil, nil, nil
	}
	for i, old := range entry.Supersedes {
		if old == id || slices.Contains(entry.Supersedes[:i], old) {
			continue
		}
		other, err := a.like(ctx, m, old)
		if err != nil {
			return nil, nil, err
		}
		if other == nil {
			continue
		}
		// An entry that is stored late may have been said before the other memory expired.
		over := other.StatusAt(m.CreatedAt) == memory.StatusExpired && other.ValidTo.After(m.LastSaidAt)
		if !over && other.StatusAt(m.CreatedAt) != memory.StatusActive {
			continue
		}
		if other.LastSaidAt.After(m.LastSaidAt) && (later == nil || other.LastSaidAt.After(later.LastSaidAt)) {
			later = other
		}
		list = append(list, other)
	}
	return list, later, nil
}

// add stores a new memory.
func (a *applier) add(ctx context.Context, entry *vectorstore.Entry, m *memory.Memory) (vectorstore.Applied, error) {
	end := m.ValidTo
	outdated, holder, err := a.outdated(ctx, entry, m, m.ID)
	if err != nil {
		return vectorstore.Applied{}, err
	}
	if m.SupersededBy != "" && !entry.Restore {
		if holder, err = a.like(ctx, m, m.SupersededBy); err != nil {
			return vectorstore.Applied{}, err
		}
		m.SupersededBy = ""
		if holder != nil && !holder.WithdrawnAt.IsZero() {
			holder = nil
		}
	}
	if holder != nil {
		outdated = nil
		since := holder.HoldsSince()
		if since.Before(m.HoldsSince()) { // said before and again after it
			since = holder.LastSaidAt
		}
		m.SupersededBy, m.ValidTo = holder.ID, endOf(m, since)
	}
	inherit(m, outdated)
	row, err := insert(ctx, a.tx, a.userRow, m, entry.Embedding)
	if err != nil {
		return vectorstore.Applied{}, err
	}
	a.changed = append(a.changed, changed{*m, &entry.Embedding})
	applied := vectorstore.Applied{Action: memory.ActionAdded, Memory: *m}
	switch {
	case entry.Restore:
	case m.Quarantine != "":
		applied.Action = memory.ActionQuarantined
	case holder != nil:
		applied.Action, applied.Related = memory.ActionOutdated, []string{holder.ID}
		err = writeRevision(ctx, a.tx, row, superseding(entry, m, end, holder.ID, false))
	case len(outdated) > 0:
		applied.Action = memory.ActionUpdated
		applied.Related, err = a.retire(ctx, entry, m, outdated, m.ID, true)
	}
	return applied, err
}

// retire makes memories history, superseded by the one with the id. added says that the same change stored that one.
func (a *applier) retire(ctx context.Context, entry *vectorstore.Entry, m *memory.Memory, old []*stored, id string, added bool) (ids []string, err error) {
	for _, o := range old {
		end := o.ValidTo
		o.SupersededBy, o.ValidTo = id, endOf(&o.Memory, m.HoldsSince())
		if err := save(ctx, a.tx, o.row, &o.Memory); err != nil {
			return nil, err
		}
		if err := writeRevision(ctx, a.tx, o.row, superseding(entry, m, end, id, added)); err != nil {
			return nil, err
		}
		a.changed = append(a.changed, changed{o.Memory, nil})
		ids = append(ids, o.ID)
	}
	return ids, nil
}

// endOf returns when a superseded memory ends: at its own end if that is earlier, and never before it began.
func endOf(m *memory.Memory, since time.Time) time.Time {
	if begun := m.HoldsSince(); since.Before(begun) {
		since = begun
	}
	if !m.ValidTo.IsZero() && m.ValidTo.Before(since) {
		return m.ValidTo
	}
	return since
}

func superseding(entry *vectorstore.Entry, m *memory.Memory, end time.Time, id string, added bool) revision {
	none := ""
	return revision{
		change: vectorstore.ChangeSuperseded, otherID: id, before: overwritten{ValidTo: &end, SupersededBy: &none, Added: added},
		reason: entry.Reason, considerationID: m.Provenance.ConsiderationID, at: m.CreatedAt,
	}
}

// withdraw withdraws the memories that the user asked to forget.
func (a *applier) withdraw(ctx context.Context, entry *vectorstore.Entry, m *memory.Memory) (vectorstore.Applied, error) {
	applied := vectorstore.Applied{Action: memory.ActionWithdrawn}
	for _, id := range entry.Withdraws {
		old, err := a.like(ctx, m, id)
		if err != nil {
			return applied, err
		}
		if old == nil || !old.WithdrawnAt.IsZero() {
			continue
		}
		if old.WithdrawnAt = m.CreatedAt; old.WithdrawnAt.IsZero() {
			return applied, fmt.Errorf("withdrawing %q: the entry's memory has no time", id)
		}
		if err := save(ctx, a.tx, old.row, &old.Memory); err != nil {
			return applied, err
		}
		err = writeRevision(ctx, a.tx, old.row, revision{
			change: vectorstore.ChangeWithdrawn, before: overwritten{WithdrawnAt: &time.Time{}},
			reason: entry.Reason, considerationID: m.Provenance.ConsiderationID, at: m.CreatedAt,
		})
		if err != nil {
			return applied, err
		}
		if err := sqlstore.ExcludeMemory(ctx, a.tx, a.userRow, &old.Memory, m); err != nil {
			return applied, err
		}
		a.changed = append(a.changed, changed{old.Memory, nil})
		if applied.Related == nil {
			applied.Memory = old.Memory
		}
		applied.Related = append(applied.Related, id)
	}
	return applied, nil
}

// release ends the quarantine of a memory. It returns its vectors for the index, which does not hold quarantined memories.
func (a *applier) release(ctx context.Context, known *stored, r revision) (*vectorstore.Embedding, error) {
	r.change, r.before = vectorstore.ChangeReleased, overwritten{Quarantine: new(known.Quarantine)}
	known.Quarantine = ""
	if err := save(ctx, a.tx, known.row, &known.Memory); err != nil {
		return nil, err
	}
	if err := writeRevision(ctx, a.tx, known.row, r); err != nil {
		return nil, err
	}
	embedding, err := readEmbedding(ctx, a.tx, known.row, a.fingerprint)
	return &embedding, err
}
