// Package vectorstoretest holds the conformance suites of vectorstore.Store, Backfill, Sweep and Survey.
package vectorstoretest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Fingerprint is that of the vectors that the stores under test search. The vectors have three dimensions.
const Fingerprint = "test/model/3"

type test struct {
	name string
	run  func(*suite)
}

// Run runs the suite. Each call of factory returns an empty store that lasts until the end of the test and searches vectors of
// Fingerprint.
func Run(t *testing.T, factory func(t *testing.T) vectorstore.Store) {
	tests := slices.Concat(applyTests(), audienceTests(), isolationTests(), listTests(), searchTests(), changeTests(), historyTests(),
		revisionTests(), standingTests(), concurrencyTests())
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) { c.run(&suite{T: t, store: factory(t)}) })
	}
}

// RunReopen runs the tests of data that outlives an instance. Each call of open returns a new instance over the same data, which is empty
// at first, and may close the one before.
func RunReopen(t *testing.T, open func(t *testing.T) vectorstore.Store) {
	s := &suite{T: t, store: open(t)}
	first := s.memory("likes green tea")
	statement := s.entry(first, 1, 0, 0)
	added := s.apply(ann, statement, s.entry(s.memory("plays the cello"), 0, 1, 0))
	removed := s.entry(s.memory("has a dog"), 0, 0, 1)
	s.apply(ann, removed)
	s.remove(ann, removed.Memory.ID)
	before := s.snapshot(ann)

	s.store = open(t)
	if d := diff(s.snapshot(ann), before); d != "" {
		s.Errorf("reopened: %s", d)
	}
	if again := s.apply(ann, statement)[0]; again.Action != added[0].Action || diffOne(again.Memory, added[0].Memory) != "" {
		s.Errorf("applied again: %+v, want %+v", again, added[0])
	}
	if again := s.apply(ann, removed); again[0].Action != memory.ActionLeftDeleted {
		s.Errorf("deleted before: %+v", again[0])
	}
}

var t0 = time.Date(2020, 11, 20, 8, 30, 0, 123_456_000, time.UTC) //nolint:gochecknoglobals // a constant

//nolint:gochecknoglobals // constants
var (
	ann = memory.User{Namespace: "tenant/site", ID: "ann"}
	ben = memory.User{Namespace: "tenant/site", ID: "ben"}
)

// suite is one test with its store.
type suite struct {
	*testing.T
	store vectorstore.Store
	count int
}

// memory returns a memory with every field set, stored a minute after the previous one.
func (s *suite) memory(text string) memory.Memory {
	s.count++
	at := t0.Add(time.Duration(s.count) * time.Minute)
	return memory.Memory{
		ID: fmt.Sprintf("mem_%d", s.count), AgentID: "nora", SessionID: "session", Text: text, Language: "en",
		Kind: memory.KindFact, Importance: 0.5, Mentions: 1,
		Provenance: memory.Provenance{
			Source: memory.SourceDialogue, ConsiderationID: "con_1", SpeakerID: "ann", MessageIDs: []string{"m1", "#2"},
			Quote: "「我说过」 \"so\"", Reason: "a <plain> fact", DecidedBy: "rules",
		},
		CreatedAt: at, UpdatedAt: at, ObservedAt: at.Add(-time.Hour), LastSaidAt: at.Add(-time.Hour),
	}
}

// entry returns an entry of the memory with one vector.
func (s *suite) entry(m memory.Memory, vector ...float32) vectorstore.Entry {
	return vectorstore.Entry{StatementID: "statement of " + m.ID, Memory: m, Embedding: embedding(vector)}
}

func embedding(chunks ...[]float32) vectorstore.Embedding {
	if len(chunks) == 1 && len(chunks[0]) == 0 {
		return vectorstore.Embedding{}
	}
	return vectorstore.Embedding{Fingerprint: Fingerprint, Chunks: chunks}
}

// add stores a new memory with one vector.
func (s *suite) add(user memory.User, m memory.Memory, vector ...float32) memory.Memory {
	s.Helper()
	applied := s.apply(user, s.entry(m, vector...))
	if applied[0].Action != memory.ActionAdded {
		s.Fatalf("%q was %s", m.Text, applied[0].Action)
	}
	return applied[0].Memory
}

func (s *suite) apply(user memory.User, entries ...vectorstore.Entry) []vectorstore.Applied {
	s.Helper()
	applied, err := s.store.Apply(s.Context(), user, entries)
	if err != nil {
		s.Fatal(err)
	}
	if len(applied) != len(entries) {
		s.Fatalf("%d results for %d entries", len(applied), len(entries))
	}
	return applied
}

func (s *suite) get(user memory.User, id string) memory.Memory {
	s.Helper()
	m, err := s.store.Get(s.Context(), user, id, memory.Everything())
	if err != nil {
		s.Fatal(err)
	}
	return m
}

func (s *suite) remove(user memory.User, id string) {
	s.Helper()
	if err := s.store.Delete(s.Context(), user, id, memory.Everything()); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) forget(user memory.User) {
	s.Helper()
	if _, err := s.store.Forget(s.Context(), user); err != nil {
		s.Fatal(err)
	}
}

func everything() vectorstore.Filter { return vectorstore.Filter{Audience: memory.Everything()} }

// list returns all matching memories, oldest first.
func (s *suite) list(user memory.User, filter vectorstore.Filter) []memory.Memory {
	s.Helper()
	page, err := s.store.List(s.Context(), user, vectorstore.ListQuery{Filter: filter, OldestFirst: true, Limit: 1000})
	if err != nil || page.Next != "" {
		s.Fatal(page.Next, err)
	}
	return page.Memories
}

func (s *suite) byVector(user memory.User, filter vectorstore.Filter, vector ...float32) []vectorstore.Hit {
	s.Helper()
	hits, err := s.store.SearchVector(s.Context(), user, Fingerprint, vector, filter, 1000)
	if err != nil {
		s.Fatal(err)
	}
	for i, h := range hits {
		if h.Score < -1 || h.Score > 1 || i > 0 && h.Score > hits[i-1].Score {
			s.Errorf("the score of hit %d is %v", i, h.Score)
		}
	}
	return hits
}

func (s *suite) byKeyword(user memory.User, filter vectorstore.Filter, query string) []vectorstore.Hit {
	s.Helper()
	hits, err := s.store.SearchKeyword(s.Context(), user, query, filter, 1000)
	if err != nil {
		s.Fatal(err)
	}
	for i, h := range hits {
		if h.Score <= 0 || h.Score > 1 || i > 0 && h.Score > hits[i-1].Score {
			s.Errorf("the score of hit %d is %v", i, h.Score)
		}
	}
	return hits
}

// warm loads the user's index in a store that loads lazily.
func (s *suite) warm(user memory.User) { s.byVector(user, everything(), 1, 1, 1) }

// idsOf returns the sorted ids of hits.
func idsOf(hits []vectorstore.Hit) []string {
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.Memory.ID
	}
	slices.Sort(ids)
	return ids
}

func ids(memories []memory.Memory) []string {
	ids := make([]string, len(memories))
	for i, m := range memories {
		ids[i] = m.ID
	}
	slices.Sort(ids)
	return ids
}

// is compares lists of ids. Nil equals an empty list.
func (s *suite) is(what string, got []string, want ...string) {
	s.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("%s: %q, want %q", what, got, want)
	}
}

// snapshot returns all that calls can read of a user.
func (s *suite) snapshot(user memory.User) (seen []memory.Memory) {
	s.Helper()
	seen = s.list(user, everything())
	for i := range seen {
		if d := diffOne(s.get(user, seen[i].ID), seen[i]); d != "" {
			s.Errorf("Get does not agree with List: %s", d)
		}
	}
	for name, hits := range map[string][]vectorstore.Hit{
		"vector": s.byVector(user, everything(), 1, 1, 1), "keyword": s.byKeyword(user, everything(), "likes tea cello dog 喝茶"),
	} {
		for _, h := range hits {
			i := slices.IndexFunc(seen, func(m memory.Memory) bool { return m.ID == h.Memory.ID })
			if i < 0 {
				s.Errorf("%s search found %+v, which is not listed", name, h.Memory)
				continue
			}
			found := *h.Memory
			found.UseCount, found.LastUsedAt = seen[i].UseCount, seen[i].LastUsedAt // may lag
			if d := diffOne(found, seen[i]); d != "" {
				s.Errorf("%s search does not agree with List: %s", name, d)
			}
		}
	}
	return seen
}

// diff names the fields in which memories differ. It returns "" if they are equal.
func diff(got, want []memory.Memory) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d memories, want %d: %q, want %q", len(got), len(want), ids(got), ids(want))
	}
	var parts []string
	for i := range got {
		g, w := reflect.ValueOf(got[i]), reflect.ValueOf(want[i])
		for f := range g.NumField() {
			if a, b := g.Field(f).Interface(), w.Field(f).Interface(); !reflect.DeepEqual(a, b) {
				parts = append(parts, fmt.Sprintf("%s of %s is %v, want %v", g.Type().Field(f).Name, want[i].ID, a, b))
			}
		}
	}
	return strings.Join(parts, "; ")
}

func diffOne(got, want memory.Memory) string {
	return diff([]memory.Memory{got}, []memory.Memory{want})
}

func isNotFound(err error) bool { return errors.Is(err, memory.ErrNotFound) }

// isInvalid reports whether the error is an InvalidError about the field.
func isInvalid(err error, field string) bool {
	var invalid *memory.InvalidError
	return errors.As(err, &invalid) && len(invalid.Violations) == 1 && invalid.Violations[0].Field == field
}
