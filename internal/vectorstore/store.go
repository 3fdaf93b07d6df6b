// Package vectorstore declares the store of memories: rows that are the truth, and the vector and keyword search over
// one user's rows. vectorstoretest holds what every implementation must keep to; local/ is SQLite with a chromem index.
package vectorstore

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Store keeps memories. All methods are safe for concurrent use. Every method takes one user and touches nobody
// else's data: there is no query across users. An error wraps memory.ErrUnavailable when storage is down.
type Store interface {
	// Apply stores the entries of one user, all or none, and returns what was done to each, in order. It is durable when
	// it returns, and a search started afterwards sees it. An entry whose StatementID was applied before changes
	// nothing: its first result is returned, with ActionLeftDeleted when that memory was deleted since. A text that is
	// already known with the same visibility (see TextKey) is not stored twice; what is superseded or withdrawn is not known.
	// A known text that is given without quarantine ends the quarantine of what is known, and what has expired holds again if
	// the entry ends later or not at all. An entry whose Memory has SupersededBy is stored as history of that memory, which
	// must have the same visibility; if it is gone or withdrawn, the entry is stored as if SupersededBy was empty. The changes
	// happen at the Memory's CreatedAt.
	Apply(ctx context.Context, user memory.User, entries []Entry) ([]Applied, error)
	// Get returns a memory that the audience sees, else memory.ErrNotFound.
	Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Memory, error)
	// List returns a page of the memories that match.
	List(ctx context.Context, user memory.User, query ListQuery) (Page, error)
	// Update changes a memory that the audience sees, else memory.ErrNotFound, and returns it; memory.ErrPrecondition when it
	// is superseded or withdrawn. An embedding replaces the memory's; a text without one is found by its words only.
	Update(ctx context.Context, user memory.User, id string, audience memory.Audience, patch Patch) (memory.Memory, error)
	// Delete deletes a memory that the audience sees, else memory.ErrNotFound, with what its revisions say of it. What it
	// superseded stays history.
	Delete(ctx context.Context, user memory.User, id string, audience memory.Audience) error
	// Forget deletes everything of a user and returns how many memories that were.
	Forget(ctx context.Context, user memory.User) (int64, error)
	// SearchVector returns up to limit matching memories, most similar first, at most one hit a memory (its best
	// chunk). Memories without a vector of this fingerprint are not found; a store that does not index the fingerprint at
	// all says so with an error. Scores are cosine similarities, -1 to 1.
	SearchVector(ctx context.Context, user memory.User, fingerprint string, vector []float32, filter Filter, limit int) ([]Hit, error)
	// SearchKeyword returns up to limit matching memories that share a term with the query, best first. Scores are 0 to
	// 1: the share of the query's terms, weighted by their rarity among this user's memories, that the memory holds.
	SearchKeyword(ctx context.Context, user memory.User, query string, filter Filter, limit int) ([]Hit, error)
	// MarkUsed counts that memories were retrieved. Those that are gone are passed over.
	MarkUsed(ctx context.Context, uses []Use) error
	// Revisions returns what was done to a memory that the audience sees (else memory.ErrNotFound), to those whose place it
	// took and to those that took its place, as far as the audience sees them, newest first.
	Revisions(ctx context.Context, user memory.User, id string, audience memory.Audience) ([]Revision, error)
	// Revert undoes the newest change of the memory's revisions that can be undone and was not: it must be revisionID, unless
	// that is empty; else the error wraps memory.ErrPrecondition. It returns the memory that holds again and what was undone.
	// A memory superseded together with others holds again together with them, and the one that took their place is withdrawn
	// if it was stored with that change. A text that is as it was before an edit has no vectors: SetEmbeddings gives it some.
	Revert(ctx context.Context, user memory.User, id, revisionID string, audience memory.Audience, at time.Time) (memory.Memory, Revision, error)
	// Release ends a memory's quarantine; memory.ErrPrecondition when it has none.
	Release(ctx context.Context, user memory.User, id string, audience memory.Audience, at time.Time) (memory.Memory, error)
}

// Embedding is a text's vectors by one model: one for a text embedded whole, else one a chunk. The zero value is no
// embedding.
type Embedding struct {
	Fingerprint string
	Chunks      [][]float32
}

// Entry is one memory to store.
type Entry struct {
	// StatementID makes the effect happen once. It is derived from what caused the entry, never random. Without one the
	// entry is applied whenever it is given.
	StatementID string
	// PayloadHash, when not empty, must be the same whenever the StatementID is used again; else Apply returns a
	// *memory.InvalidError about request_id.
	PayloadHash []byte
	// Memory is complete, its ID included.
	Memory    memory.Memory
	Embedding Embedding
	// Reinforce counts a mention when the text is already known. Without it a known text is left as it is.
	Reinforce bool
	// SameAs names the memory of the same visibility that says the same in other words: it is reinforced, and nothing is
	// stored. When it does not hold any more the entry is stored as if SameAs was empty.
	SameAs string
	// ForceNew stores the memory although its text is known.
	ForceNew bool
	// Supersedes names memories of the same visibility whose place this one takes: once it is stored they are history, valid
	// until this one's ValidFrom. Those that are gone, or did not hold any more when this one was said, are passed over. When one of them was said again after
	// this one was, this one is history and not that one. A quarantined entry takes nobody's place.
	Supersedes []string
	// Withdraws names memories of the same visibility that the user asked to forget, history included; nothing is stored when
	// there is one. Those that are gone are passed over.
	Withdraws []string
	// Reason says why SameAs, Supersedes or Withdraws, in words; it is kept in the revisions.
	Reason string
	// Restore stores the memory in the state that it has, without looking at the memories it names, which may come later. What
	// is known is left as it is. For imports.
	Restore bool
}

// Applied is what was done with an entry.
type Applied struct {
	Action memory.Action
	// Memory is as stored: only the ID for memory.ActionLeftDeleted, the first withdrawn one for memory.ActionWithdrawn, which
	// may be none (then the ID is empty).
	Memory memory.Memory
	// Related are the ids of the memories superseded, of all withdrawn ones, or of the one that holds in this one's place.
	Related []string
}

// Change is what was done to a memory.
type Change string

// The changes.
const (
	ChangeAdded      Change = "added"
	ChangeEdited     Change = "edited"
	ChangeSuperseded Change = "superseded"
	ChangeWithdrawn  Change = "withdrawn"
	ChangeReleased   Change = "released"
	ChangeReverted   Change = "reverted"
)

// Revision is one change of a memory, or of one whose place it took.
type Revision struct {
	ID              string
	Change          Change
	Memory          memory.Memory  // as the change left it
	Previous        *memory.Memory // as it was before; of ChangeSuperseded the one whose place was taken; nil for ChangeAdded
	Reason          string
	ConsiderationID string
	At              time.Time
	Reverted        bool
}

// Patch is a change of a memory; nil fields stay as they are.
type Patch struct {
	Text       *string
	Language   *string
	Kind       *memory.Kind
	Importance *float64
	Embedding  Embedding
	At         time.Time
}

// Hit is a memory found by a search. The memory is shared: it must not be modified.
type Hit struct {
	Memory *memory.Memory
	Score  float64
}

// Use says that a memory was retrieved.
type Use struct {
	User     memory.User
	MemoryID string
	Count    int64
	At       time.Time
}

// ListQuery asks for a page.
type ListQuery struct {
	Filter      Filter
	OldestFirst bool   // by the time they were stored; else newest first
	After       string // Page.Next of the page before, empty for the first
	Limit       int    // at least 1
}

// Page is a page of memories. Next is empty on the last one.
type Page struct {
	Memories []memory.Memory
	Next     string
}

// Filter says which of a user's memories count. The audience has no default: the zero Filter matches nothing.
type Filter struct {
	Audience   memory.Audience
	Kinds      []memory.Kind // empty: all
	AgentID    *string       // nil: all
	Language   *string       // nil: all
	Explicit   *bool         // nil: all
	Importance Range         // zero value: all
	Created    Period
	Observed   Period
	// Statuses are those that count; empty: active ones only. Searches never find what is quarantined or withdrawn.
	Statuses []memory.Status
	// At is the time at which a memory has its status, see [memory.Memory.AsOf]; zero: now. What was said later counts, too.
	At time.Time
}

// Range is a closed interval; a nil bound is open.
type Range struct{ Min, Max *float64 }

// Period is the time from From (inclusive) to Before (exclusive); a zero bound is open.
type Period struct{ From, Before time.Time }

// Matches reports whether the filter lets the memory through.
func (f *Filter) Matches(m *memory.Memory) bool {
	return f.Audience.Sees(m.Channel) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, m.Kind)) &&
		(f.AgentID == nil || *f.AgentID == m.AgentID) &&
		(f.Language == nil || *f.Language == m.Language) &&
		(f.Explicit == nil || *f.Explicit == m.Explicit) &&
		f.Importance.contains(m.Importance) && f.Created.contains(m.CreatedAt) && f.Observed.contains(m.ObservedAt) &&
		f.matchesStatus(m)
}

func (f *Filter) matchesStatus(m *memory.Memory) bool {
	if m.ValidTo.IsZero() && m.SupersededBy == "" && m.Quarantine == "" && m.WithdrawnAt.IsZero() {
		return len(f.Statuses) == 0 || slices.Contains(f.Statuses, memory.StatusActive)
	}
	at := f.At
	if at.IsZero() {
		at = time.Now()
	} else {
		m = m.AsOf(at)
	}
	status := m.StatusAt(at)
	if len(f.Statuses) == 0 {
		return status == memory.StatusActive
	}
	return slices.Contains(f.Statuses, status)
}

// MatchesAll reports whether the filter lets every memory through that is active now, so that there is no need to look.
func (f *Filter) MatchesAll() bool {
	_, everything := f.Audience.Keys()
	return everything && len(f.Kinds) == 0 && f.AgentID == nil && f.Language == nil && f.Explicit == nil &&
		f.Importance == Range{} && f.Created == Period{} && f.Observed == Period{} && f.ActiveNow()
}

// ActiveNow reports whether the filter lets through what is active now, and nothing else as far as the status goes.
func (f *Filter) ActiveNow() bool { return len(f.Statuses) == 0 && f.At.IsZero() }

func (r Range) contains(v float64) bool {
	return (r.Min == nil || v >= *r.Min) && (r.Max == nil || v <= *r.Max) && !math.IsNaN(v)
}

func (p Period) contains(t time.Time) bool {
	return (p.From.IsZero() || !t.Before(p.From)) && (p.Before.IsZero() || t.Before(p.Before))
}

// TextKey is equal for texts that say the same to the letter: case, surrounding punctuation and the width of white space
// aside. Nothing inside a text is dropped, so that "1.5" and "15", or a negation, stay apart, nor is the end of a name: C#.
func TextKey(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	key := strings.TrimFunc(text, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
	if _, after, _ := strings.Cut(text, key); key != "" && strings.HasPrefix(after, "#") && key[len(key)-1] < utf8.RuneSelf {
		key += "#"
	}
	return key
}
