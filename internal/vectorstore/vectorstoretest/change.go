package vectorstoretest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func changeTests() []test {
	return []test{
		{"Update", testUpdate},
		{"UpdateText", testUpdateText},
		{"DeleteOne", testDeleteOne},
		{"Forget", testForget},
		{"MarkUsed", testMarkUsed},
	}
}

func testUpdate(s *suite) {
	for i, warm := range []bool{false, true} {
		user := []memory.User{ann, ben}[i]
		want := s.add(user, s.memory("likes green tea"), 1, 0, 0)
		if warm {
			s.warm(user)
		}
		for name, c := range map[string]struct {
			patch vectorstore.Patch
			apply func(*memory.Memory)
		}{
			"kind":       {vectorstore.Patch{Kind: new(memory.KindPlan)}, func(m *memory.Memory) { m.Kind = memory.KindPlan }},
			"importance": {vectorstore.Patch{Importance: new(0.0)}, func(m *memory.Memory) { m.Importance = 0 }},
			"nothing":    {vectorstore.Patch{}, func(*memory.Memory) {}},
			"language":   {vectorstore.Patch{Language: new("fr")}, func(m *memory.Memory) { m.Language = "fr" }},
			"text": {
				vectorstore.Patch{Text: new("likes black tea"), Embedding: embedding([]float32{1, 0, 0})},
				func(m *memory.Memory) { m.Text = "likes black tea" },
			},
			"embedding": {vectorstore.Patch{Embedding: embedding([]float32{0, 1, 0})}, func(*memory.Memory) {}},
		} {
			c.patch.At = s.memory("").CreatedAt
			c.apply(&want)
			want.UpdatedAt = c.patch.At
			got, err := s.store.Update(s.Context(), user, want.ID, memory.Everything(), c.patch)
			if d := diffOne(got, want); err != nil || d != "" {
				s.Errorf("%s: %s, %v", name, d, err)
			}
			if d := diff(s.snapshot(user), []memory.Memory{want}); d != "" {
				s.Errorf("%s: stored: %s", name, d)
			}
			vector := []float32{1, 0, 0}
			if name == "embedding" {
				vector = []float32{0, 1, 0}
			}
			if hits := s.byVector(user, everything(), vector...); len(hits) != 1 || name == "embedding" && hits[0].Score < 0.999 {
				s.Errorf("%s: found %+v", name, hits)
			}
		}
		if _, err := s.store.Update(s.Context(), user, "mem_none", memory.Everything(), vectorstore.Patch{At: t0}); !isNotFound(err) {
			s.Errorf("an unknown id: %v", err)
		}
	}
}

// testUpdateText: An edited memory is recognised by its new text, and not by the old one.
func testUpdateText(s *suite) {
	m := s.add(ann, s.memory("likes green tea"), 1, 0, 0)
	_, err := s.store.Update(s.Context(), ann, m.ID, memory.Everything(), vectorstore.Patch{
		Text: new("likes black tea"), Language: new("en"), Embedding: embedding([]float32{0, 1, 0}), At: t0,
	})
	if err != nil {
		s.Fatal(err)
	}
	if a := s.apply(ann, s.entry(s.memory("Likes black tea."), 0, 1, 0))[0]; a.Action != memory.ActionUnchanged || a.Memory.ID != m.ID {
		s.Errorf("the new text: %+v", a)
	}
	if a := s.apply(ann, s.entry(s.memory("likes green tea"), 1, 0, 0))[0]; a.Action != memory.ActionAdded {
		s.Errorf("the old text: %+v", a)
	}
}

// testDeleteOne: Delete deletes one memory, also if other ids are similar.
func testDeleteOne(s *suite) {
	for i, warm := range []bool{false, true} {
		user := []memory.User{ann, ben}[i]
		var left []string
		for _, id := range []string{"a", "a#0", "a#1", "#", "a#0#1", "b", "用户"} {
			m := s.memory("likes tea with " + id + "!" + fmt.Sprint(len(left)))
			m.ID = id
			e := s.entry(m)
			e.Embedding = embedding([]float32{1, 0, 0}, []float32{0, 1, 0})
			s.apply(user, e)
			left = append(left, id)
		}
		if warm {
			s.warm(user)
		}
		for len(left) > 0 {
			s.remove(user, left[0])
			if err := s.store.Delete(s.Context(), user, left[0], memory.Everything()); !isNotFound(err) {
				s.Errorf("deleting %q again: %v", left[0], err)
			}
			left = left[1:]
			s.is("List", ids(s.list(user, everything())), slices.Clone(left)...)
			s.is("SearchVector", idsOf(s.byVector(user, everything(), 1, 0, 0)), slices.Clone(left)...)
			s.is("SearchKeyword", idsOf(s.byKeyword(user, everything(), "tea")), slices.Clone(left)...)
		}
	}
}

func testForget(s *suite) {
	for i, warm := range []bool{false, true} {
		user := []memory.User{ann, ben}[i]
		entry := s.entry(s.memory("likes green tea"), 1, 0, 0)
		entry.PayloadHash = []byte{1}
		s.apply(user, entry)
		s.add(user, s.memory("plays the cello"), 0, 1, 0)
		if warm {
			s.warm(user)
		}
		for _, want := range []int64{2, 0} {
			if n, err := s.store.Forget(s.Context(), user); n != want || err != nil {
				s.Errorf("forgot %d, %v, want %d", n, err, want)
			}
			if seen := s.snapshot(user); len(seen) != 0 {
				s.Errorf("%+v remains", seen)
			}
		}
		// Nothing remains, not even the record of applied statements.
		entry.PayloadHash = []byte{2}
		if a := s.apply(user, entry)[0]; a.Action != memory.ActionAdded {
			s.Errorf("a forgotten user who returns: %+v", a)
		}
		s.is("search", idsOf(s.byVector(user, everything(), 1, 0, 0)), entry.Memory.ID)
	}
	if n, err := s.store.Forget(s.Context(), memory.User{Namespace: "tenant", ID: "nobody"}); n != 0 || err != nil {
		s.Errorf("an unknown user: %d, %v", n, err)
	}
}

func testMarkUsed(s *suite) {
	tea, cello := s.add(ann, s.memory("likes green tea"), 1, 0, 0), s.add(ann, s.memory("plays the cello"), 0, 1, 0)
	s.warm(ann)
	later := t0.Add(time.Hour)
	err := s.store.MarkUsed(s.Context(), []vectorstore.Use{
		{User: ann, MemoryID: tea.ID, Count: 2, At: t0},
		{User: ann, MemoryID: "mem_none", Count: 1, At: t0},
		{User: memory.User{Namespace: "nowhere", ID: "ann"}, MemoryID: cello.ID, Count: 1, At: t0},
		{User: ann, MemoryID: tea.ID, Count: 3, At: later},
	})
	if err := errors.Join(err, s.store.MarkUsed(s.Context(), nil)); err != nil {
		s.Fatal(err)
	}
	tea.UseCount, tea.LastUsedAt = 5, later
	for _, want := range []memory.Memory{tea, cello} {
		if d := diffOne(s.get(ann, want.ID), want); d != "" {
			s.Error(d)
		}
	}
	s.snapshot(ann)
}

func concurrencyTests() []test { return []test{{"Concurrently", testConcurrently}} }

// testConcurrently: Users write and read concurrently. Each writer sees what it wrote, and no user sees
// another's.
func testConcurrently(s *suite) {
	const rounds, writers = 8, 2
	people := []memory.User{ann, ben, {Namespace: "elsewhere", ID: "ann"}}
	var tasks sync.WaitGroup
	for p, user := range people {
		for w := range writers {
			tasks.Go(func() { s.writeAndSearch(user, fmt.Sprintf("w%dx%d", p, w), rounds) })
		}
		tasks.Go(func() {
			for range rounds {
				hits, err := s.store.SearchVector(s.Context(), user, Fingerprint, []float32{1, 1, 1}, everything(), 100)
				if err != nil {
					s.Error(err)
				}
				for _, h := range hits {
					if h.Memory.User != user {
						s.Errorf("%v found a memory of %v", user, h.Memory.User)
					}
				}
			}
		})
	}
	tasks.Wait()
	for _, user := range people {
		// Every second memory of each writer was deleted.
		if seen := s.snapshot(user); len(seen) != writers*rounds/2 {
			s.Errorf("%v has %d memories, want %d", user, len(seen), writers*rounds/2)
		}
		if hits := s.byVector(user, everything(), 1, 1, 1); len(hits) != writers*rounds/2 {
			s.Errorf("%v finds %d memories, want %d", user, len(hits), writers*rounds/2)
		}
	}
}

func (s *suite) writeAndSearch(user memory.User, name string, rounds int) {
	for i := range rounds {
		word := fmt.Sprintf("%sy%d", name, i) // a unique word
		e := vectorstore.Entry{
			StatementID: word,
			Memory: memory.Memory{
				ID: word, Text: "likes " + word, Language: "en", Kind: memory.KindFact, Mentions: 1,
				CreatedAt: t0, UpdatedAt: t0, ObservedAt: t0, LastSaidAt: t0,
			},
			Embedding: embedding([]float32{1, 1, 1}),
		}
		if _, err := s.store.Apply(s.Context(), user, []vectorstore.Entry{e}); err != nil {
			s.Error(err)
		}
		finds := func() bool {
			byKeyword, err1 := s.store.SearchKeyword(s.Context(), user, word, everything(), 100)
			byVector, err2 := s.store.SearchVector(s.Context(), user, Fingerprint, []float32{1, 1, 1}, everything(), 100)
			if err := errors.Join(err1, err2); err != nil {
				s.Error(err)
			}
			k, v := slices.Contains(idsOf(byKeyword), word), slices.Contains(idsOf(byVector), word)
			if k != v {
				s.Errorf("%s: by keyword %t, by vector %t", word, k, v)
			}
			return k
		}
		if !finds() {
			s.Errorf("%s is not found after it was stored", word)
		}
		if i%2 == 1 {
			if err := s.store.Delete(s.Context(), user, word, memory.Everything()); err != nil {
				s.Error(err)
			}
			if finds() {
				s.Errorf("%s is found after it was deleted", word)
			}
		}
	}
}
