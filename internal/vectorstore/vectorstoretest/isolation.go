package vectorstoretest

import (
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func isolationTests() []test {
	return []test{
		{"Isolation", testIsolation},
		{"SimilarIDs", testSimilarIDs},
	}
}

// testIsolation: Users whose memories have the same texts and ids never see each other's.
func testIsolation(s *suite) {
	people := []memory.User{ann, ben, {Namespace: "tenant", ID: "ann"}, {Namespace: "tenant/site/ann", ID: "ann"}, {Namespace: "default", ID: "ben"}}
	shared := []vectorstore.Entry{s.entry(s.memory("likes green tea"), 1, 0, 0), s.entry(s.memory("plays the cello"), 0, 1, 0)}
	for i := range shared {
		shared[i].PayloadHash = []byte{1}
	}
	for _, user := range people {
		for i, a := range s.apply(user, shared...) {
			if a.Action != memory.ActionAdded || a.Memory.User != user {
				s.Errorf("%v: %d was %s for %v", user, i, a.Action, a.Memory.User)
			}
		}
	}
	snapshots := s.separate(people)
	s.changesOfAnn(shared, people[1:], snapshots)

	if seen := s.snapshot(ann); len(seen) != 0 {
		s.Errorf("ann still sees %+v", seen)
	}
	unknown := memory.User{Namespace: "tenant/site", ID: "eve"}
	if seen := s.snapshot(unknown); len(seen) != 0 {
		s.Errorf("an unknown user sees %+v", seen)
	}
	for what, err := range map[string]error{
		"Get": func() error {
			_, err := s.store.Get(s.Context(), unknown, shared[0].Memory.ID, memory.Everything())
			return err
		}(),
		"Delete": s.store.Delete(s.Context(), unknown, shared[0].Memory.ID, memory.Everything()),
	} {
		if !isNotFound(err) {
			s.Errorf("%s by an unknown user: %v", what, err)
		}
	}
}

// separate checks that each user sees exactly their own two memories, and returns them.
func (s *suite) separate(people []memory.User) map[memory.User][]memory.Memory {
	s.Helper()
	snapshots := map[memory.User][]memory.Memory{}
	for _, user := range people {
		seen := s.snapshot(user)
		if len(seen) != 2 || seen[0].User != user || seen[1].User != user {
			s.Errorf("%v sees %+v", user, seen)
		}
		for _, hits := range [][]vectorstore.Hit{s.byVector(user, everything(), 1, 1, 0), s.byKeyword(user, everything(), "tea cello")} {
			if len(hits) != 2 || hits[0].Memory.User != user || hits[1].Memory.User != user {
				s.Errorf("%v finds %+v", user, hits)
			}
		}
		snapshots[user] = seen
	}
	return snapshots
}

// changesOfAnn makes each change to ann's data in turn, and checks that the other users' data stays the same.
func (s *suite) changesOfAnn(shared []vectorstore.Entry, others []memory.User, snapshots map[memory.User][]memory.Memory) {
	s.Helper()
	id := shared[0].Memory.ID
	only := func(what string, change func() error) {
		s.Helper()
		if err := change(); err != nil {
			s.Errorf("%s: %v", what, err)
		}
		for _, user := range others {
			if d := diff(s.snapshot(user), snapshots[user]); d != "" {
				s.Errorf("%s changed what %v sees: %s", what, user, d)
			}
			s.is(what+": search", idsOf(s.byVector(user, everything(), 1, 1, 0)), id, shared[1].Memory.ID)
		}
	}
	only("MarkUsed", func() error {
		return s.store.MarkUsed(s.Context(), []vectorstore.Use{{User: ann, MemoryID: id, Count: 3, At: t0}})
	})
	only("Apply", func() error {
		mention := s.entry(s.memory("likes green tea"), 1, 0, 0)
		mention.Reinforce = true
		_, err := s.store.Apply(s.Context(), ann, []vectorstore.Entry{mention})
		return err
	})
	only("Update", func() error {
		_, err := s.store.Update(s.Context(), ann, id, memory.Everything(), vectorstore.Patch{
			Text: new("has a dog"), Language: new("en"), Embedding: embedding([]float32{0, 0, 1}), At: t0,
		})
		return err
	})
	only("Delete", func() error { return s.store.Delete(s.Context(), ann, id, memory.Everything()) })
	only("Changing what is deleted", func() error {
		_, get := s.store.Get(s.Context(), ann, id, memory.Everything())
		_, update := s.store.Update(s.Context(), ann, id, memory.Everything(), vectorstore.Patch{Importance: new(1.0), At: t0})
		for method, err := range map[string]error{
			"Get": get, "Update": update, "Delete": s.store.Delete(s.Context(), ann, id, memory.Everything()),
		} {
			if !isNotFound(err) {
				s.Errorf("%s of memories that others have: %v", method, err)
			}
		}
		return nil
	})
	only("Forget", func() error {
		if n, err := s.store.Forget(s.Context(), ann); n != 1 {
			s.Errorf("forgot %d, want 1", n)
			return err
		}
		return nil
	})
}

// testSimilarIDs: Ids that look the same, or that a careless query confuses, are different users.
func testSimilarIDs(s *suite) {
	people := []memory.User{
		{Namespace: "a", ID: "ann"},
		{Namespace: "a", ID: "Ann"},
		{Namespace: "a", ID: "ann "},
		{Namespace: "A", ID: "ann"},
		{Namespace: "a", ID: "a%"},
		{Namespace: "a", ID: "a_n"},
		{Namespace: "a", ID: "é"},
		{Namespace: "a", ID: "e\u0301"},
		{Namespace: "a/b", ID: "c"},
		{Namespace: "a", ID: "b/c"},
		{Namespace: "a", ID: "用户"},
		{Namespace: "a", ID: "🦄"},
		{Namespace: "a", ID: `'; DROP TABLE memories; --`},
		{Namespace: "a", ID: "1"},
		{Namespace: "a", ID: "01"},
		{Namespace: "a", ID: "1.0"},
	}
	own := map[memory.User]string{}
	for _, user := range people {
		own[user] = s.add(user, s.memory("likes green tea"), 1, 0, 0).ID
	}
	for _, user := range people {
		s.is("List", ids(s.list(user, everything())), own[user])
		s.is("SearchVector", idsOf(s.byVector(user, everything(), 1, 0, 0)), own[user])
		s.is("SearchKeyword", idsOf(s.byKeyword(user, everything(), "tea")), own[user])
	}
}
