// Package vectorstore declares the store of memories: rows, which are authoritative, and the vector and keyword search over the
// rows of one user. vectorstoretest holds the conformance suites; local keeps the index in memory, built from the rows.
package vectorstore

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Store keeps memories. All methods are safe for concurrent use. Every method takes one user and touches the data of no other user.
// Errors wrap memory.ErrUnavailable when storage is unavailable.
type Store interface {
	// Apply stores the entries of one user, atomically, and returns the result of each, in order. The write is durable when Apply
	// returns, and a search that starts later sees it.
	//
	// An entry whose StatementID was applied before changes nothing. Its first result is returned, with ActionLeftDeleted if that
	// memory has been deleted.
	//
	// A text is stored once for each visibility: if an existing memory has the same TextKey, the entry becomes a mention of it.
	// Superseded and withdrawn memories do not count as existing. An entry without quarantine ends the quarantine of the existing
	// memory. An expired one becomes active again if the entry ends later or never.
	//
	// A memory without a standing takes over the one of the memories that it supersedes. A mention adds its own to a memory that has none.
	//
	// An entry whose Memory has SupersededBy is stored as history of that memory, which must have the same visibility. If that memory
	// was deleted or withdrawn, SupersededBy is ignored.
	//
	// The time of the changes is the Memory's CreatedAt.
	Apply(ctx context.Context, user memory.User, entries []Entry) ([]Applied, error)
	// Get returns a memory that the audience may see, or memory.ErrNotFound.
	Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Memory, error)
	// List returns a page of the memories that match.
	List(ctx context.Context, user memory.User, query ListQuery) (Page, error)
	// Update changes a memory and returns it. The error is memory.ErrNotFound if the audience may not see it, and
	// memory.ErrPrecondition if it is superseded or withdrawn. A new text without an embedding is found by keywords only.
	Update(ctx context.Context, user memory.User, id string, audience memory.Audience, patch Patch) (memory.Memory, error)
	// Delete deletes a memory and its text in revisions; memory.ErrNotFound if the audience may not see it. The memories that it
	// superseded remain superseded.
	Delete(ctx context.Context, user memory.User, id string, audience memory.Audience) error
	// Forget deletes everything of a user and returns the number of memories.
	Forget(ctx context.Context, user memory.User) (int64, error)
	// SearchVector returns up to limit matching memories, most similar first. The score of a memory is the cosine similarity of its
	// best chunk, -1 to 1. Memories without a vector of this fingerprint are not found. A fingerprint that the store does not index at
	// all is an error.
	SearchVector(ctx context.Context, user memory.User, fingerprint string, vector []float32, filter Filter, limit int) ([]Hit, error)
	// SearchKeyword returns up to limit matching memories that share a term with the query, best first. The score, 0 to 1, is
	// the share of the query's terms that the memory contains, weighted by their rarity among the user's memories.
	SearchKeyword(ctx context.Context, user memory.User, query string, filter Filter, limit int) ([]Hit, error)
	// Standing returns the matching memories that have a standing, the most important class first, and within a class those that were
	// said last. They are shared: they must not be modified.
	Standing(ctx context.Context, user memory.User, filter Filter) ([]*memory.Memory, error)
	// MarkUsed counts that memories were retrieved. Deleted ones are skipped.
	MarkUsed(ctx context.Context, uses []Use) error
	// Revisions returns the changes of a memory, of those that it superseded and of those that superseded it, as far as the audience
	// may see them, newest first; memory.ErrNotFound if the audience may not see the memory.
	Revisions(ctx context.Context, user memory.User, id string, audience memory.Audience) ([]Revision, error)
	// Revert undoes the newest of the memory's revisions that can be undone and was not yet. If revisionID is not empty, it must name
	// that change; otherwise the error wraps memory.ErrPrecondition. It returns the memory that is active again and the reverted
	// change.
	//
	// Memories that were superseded together become active together. The memory that superseded them is withdrawn if the same change
	// stored it. A text restored by reverting an edit has no vectors until SetEmbeddings stores some.
	Revert(ctx context.Context, user memory.User, id, revisionID string, audience memory.Audience, at time.Time) (memory.Memory, Revision, error)
	// Release ends a memory's quarantine; memory.ErrPrecondition if it is not quarantined.
	Release(ctx context.Context, user memory.User, id string, audience memory.Audience, at time.Time) (memory.Memory, error)
}

// Embedding is a text's vectors by one model: one for a text embedded whole, else one per chunk. The zero value is no embedding.
type Embedding struct {
	Fingerprint string
	Chunks      [][]float32
}

// Entry is one memory to store.
type Entry struct {
	// StatementID makes Apply idempotent. It is derived from the cause of the entry, never random. An entry without it is applied every
	// time.
	StatementID string
	// PayloadHash, if not empty, must be the same whenever the StatementID is used again; otherwise Apply returns a
	// *memory.InvalidError about request_id.
	PayloadHash []byte
	// Memory is complete, including its ID.
	Memory    memory.Memory
	Embedding Embedding
	// Reinforce counts a mention if the text exists. Without it the existing memory does not change.
	Reinforce bool
	// SameAs names a memory of the same visibility with the same meaning in other words. It is reinforced, and nothing is
	// stored. If it is no longer active, SameAs is ignored.
	SameAs string
	// ForceNew stores the memory even if its text exists.
	ForceNew bool
	// Supersedes names memories of the same visibility that this one replaces. They become history, valid until this one's
	// ValidFrom. Deleted ones, and those that were no longer active when this one was said, are skipped. If one of them was said
	// again after this one, this one becomes history instead. A quarantined entry supersedes no memory.
	Supersedes []string
	// Withdraws names memories of the same visibility that the user asked to forget, history included. If one exists, nothing
	// is stored. Deleted ones are skipped.
	Withdraws []string
	// Reason explains SameAs, Supersedes or Withdraws in words; it is kept in the revisions.
	Reason string
	// Restore stores the memory in its given state, without a check of the memories it names, which may be stored later. An
	// existing memory does not change. Imports use it.
	Restore bool
}

// Applied is the result of an entry.
type Applied struct {
	Action memory.Action
	// Memory is the stored memory. For memory.ActionLeftDeleted only the ID is set. For memory.ActionWithdrawn it is the first
	// withdrawn one, with an empty ID if no memory was withdrawn.
	Memory memory.Memory
	// Related are the ids of the superseded memories, of all withdrawn ones, or of the one that supersedes this one.
	Related []string
}

// Change is the kind of a revision.
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

// Revision is one change of a memory, or of one that it superseded.
type Revision struct {
	ID              string
	Change          Change
	Memory          memory.Memory  // after the change
	Previous        *memory.Memory // before the change; for ChangeSuperseded the superseded one; nil for ChangeAdded
	Reason          string
	ConsiderationID string
	At              time.Time
	Reverted        bool
}

// Patch is a change of a memory; nil fields do not change.
type Patch struct {
	Text       *string
	Language   *string
	Kind       *memory.Kind
	Standing   *memory.StandingClass
	Importance *float64
	Embedding  Embedding
	At         time.Time
}

// Hit is a memory found by a search. The memory is shared: it must not be modified.
type Hit struct {
	Memory *memory.Memory
	Score  float64
}

// Use records that a memory was retrieved.
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
	After       string // Page.Next of the previous page, empty for the first
	Limit       int    // at least 1
}

// Page is a page of memories. Next is empty on the last one.
type Page struct {
	Memories []memory.Memory
	Next     string
}

// Filter selects memories of a user. The audience has no default: the zero Filter matches nothing.
type Filter struct {
	Audience   memory.Audience
	Kinds      []memory.Kind // empty: all
	AgentID    *string       // nil: all
	Language   *string       // nil: all
	Explicit   *bool         // nil: all
	Standing   bool          // only memories with a standing
	Importance Range         // zero value: all
	Created    Period
	Observed   Period
	// Statuses are the selected statuses; empty: active ones only. Searches never find quarantined or withdrawn memories.
	Statuses []memory.Status
	// At is the time at which a memory has its status, see [memory.Memory.AsOf]; zero: now. What was said later counts, too.
	At time.Time
}

// Range is a closed interval; a nil bound is open.
type Range struct{ Min, Max *float64 }

// Period is the time from From (inclusive) to Before (exclusive); a zero bound is open.
type Period struct{ From, Before time.Time }

// Matches reports whether the filter admits the memory.
func (f *Filter) Matches(m *memory.Memory) bool {
	return f.Audience.Sees(m.Channel) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, m.Kind)) &&
		(f.AgentID == nil || *f.AgentID == m.AgentID) &&
		(f.Language == nil || *f.Language == m.Language) &&
		(f.Explicit == nil || *f.Explicit == m.Explicit) && (!f.Standing || m.Standing != "") &&
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

// MatchesAll reports whether the filter admits every memory that is active now.
func (f *Filter) MatchesAll() bool {
	_, everything := f.Audience.Keys()
	return everything && len(f.Kinds) == 0 && f.AgentID == nil && f.Language == nil && f.Explicit == nil && !f.Standing &&
		f.Importance == Range{} && f.Created == Period{} && f.Observed == Period{} && f.ActiveNow()
}

// ActiveNow reports whether the statuses of the filter admit active memories only, at the present time.
func (f *Filter) ActiveNow() bool { return len(f.Statuses) == 0 && f.At.IsZero() }

func (r Range) contains(v float64) bool {
	return (r.Min == nil || v >= *r.Min) && (r.Max == nil || v <= *r.Max) && !math.IsNaN(v)
}

func (p Period) contains(t time.Time) bool {
	return (p.From.IsZero() || !t.Before(p.From)) && (p.Before.IsZero() || t.Before(p.Before))
}

// CompareStanding orders memories with a standing as Store.Standing does.
func CompareStanding(a, b *memory.Memory) int {
	classes := memory.StandingClasses()
	return cmp.Or(cmp.Compare(slices.Index(classes, a.Standing), slices.Index(classes, b.Standing)),
		b.LastSaidAt.Compare(a.LastSaidAt), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// TextKey returns a key that is equal for texts that differ only in case, surrounding punctuation and white space. Inside a text all
// characters count, so that "1.5" and "15" differ, and so does the # at the end of a name such as C#.
func TextKey(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	key := strings.TrimFunc(text, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
	if _, after, _ := strings.Cut(text, key); key != "" && strings.HasPrefix(after, "#") && key[len(key)-1] < utf8.RuneSelf {
		key += "#"
	}
	return key
}
