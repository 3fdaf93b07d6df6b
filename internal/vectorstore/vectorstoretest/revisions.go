package vectorstoretest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func revisionTests() []test {
	return []test{
		{"RevisionsOfAChain", testRevisionsOfAChain},
		{"RevertAChain", testRevertAChain},
		{"RevertSeveral", testRevertSeveral},
		{"RevertEdit", testRevertEdit},
		{"RevertWithdrawal", testRevertWithdrawal},
		{"RevertByRevisionID", testRevertByRevisionID},
		{"EditedBeforeSuperseded", testEditedBeforeSuperseded},
		{"HistoryIsNotEdited", testHistoryIsNotEdited},
		{"RevisionsPerVisibility", testRevisionsPerVisibility},
		{"RevisionsOfDeleted", testRevisionsOfDeleted},
		{"RevisionsForgotten", testRevisionsForgotten},
		{"RevisionsInACircle", testRevisionsInACircle},
	}
}

func (s *suite) revisions(user memory.User, id string) []vectorstore.Revision {
	s.Helper()
	list, err := s.store.Revisions(s.Context(), user, id, memory.Everything())
	if err != nil {
		s.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range list {
		if r.ID == "" || seen[r.ID] || r.At.IsZero() || (r.Previous == nil) != (r.Change == vectorstore.ChangeAdded) {
			s.Errorf("revision %+v", r)
		}
		seen[r.ID] = true
	}
	return list
}

// rendered renders revisions: the change, the memory before and after it, and whether it was undone.
func rendered(list []vectorstore.Revision) (short []string) {
	for _, r := range list {
		line := string(r.Change) + ": "
		if r.Previous != nil {
			line += r.Previous.Text + " > "
		}
		line += r.Memory.Text
		if r.Reverted {
			line += " (undone)"
		}
		short = append(short, line)
	}
	return short
}

func (s *suite) wantRevisions(user memory.User, id string, want ...string) {
	s.Helper()
	if got := rendered(s.revisions(user, id)); !slices.Equal(got, want) {
		s.Errorf("the revisions of %s are\n%q, want\n%q", id, got, want)
	}
}

func (s *suite) revert(user memory.User, id string) (memory.Memory, vectorstore.Revision) {
	s.Helper()
	m, r, err := s.store.Revert(s.Context(), user, id, "", memory.Everything(), t0.Add(48*time.Hour))
	if err != nil {
		s.Fatal(err)
	}
	if !r.Reverted {
		s.Errorf("undone %+v", r)
	}
	return m, r
}

func (s *suite) cannotRevert(user memory.User, id, revisionID string) {
	s.Helper()
	if m, r, err := s.store.Revert(s.Context(), user, id, revisionID, memory.Everything(), t0); !errors.Is(err, memory.ErrPrecondition) {
		s.Errorf("undone %+v, %+v, %v", m, r, err)
	}
}

// update changes a text a day and some hours after t0, each time later.
func (s *suite) update(user memory.User, id, text string) memory.Memory {
	s.Helper()
	s.count += 100
	m, err := s.store.Update(s.Context(), user, id, memory.Everything(), vectorstore.Patch{
		Text: &text, Embedding: embedding([]float32{1, 1, 0}), At: t0.Add(24*time.Hour + time.Duration(s.count)*time.Minute),
	})
	if err != nil {
		s.Fatal(err)
	}
	return m
}

// chain makes a < b < c of a user who moved twice.
func (s *suite) chain(user memory.User) (a, b, c memory.Memory) {
	a = s.add(user, s.memory("lives in A"), 1, 1, 0)
	b = s.apply(user, s.superseding("lives in B", a.ID))[0].Memory
	c = s.apply(user, s.superseding("lives in C", b.ID))[0].Memory
	return s.get(user, a.ID), s.get(user, b.ID), c
}

func testRevisionsOfAChain(s *suite) {
	a, b, c := s.chain(ann)
	for _, id := range []string{a.ID, b.ID, c.ID} {
		s.wantRevisions(ann, id, "superseded: lives in B > lives in C", "added: lives in C",
			"superseded: lives in A > lives in B", "added: lives in B", "added: lives in A")
	}
	list := s.revisions(ann, a.ID)
	first := list[2]
	if first.Reason != "because" || first.ConsiderationID != "con_1" || !first.At.Equal(b.CreatedAt) ||
		first.Previous.SupersededBy != "" || !first.Previous.ValidTo.IsZero() || first.Memory.SupersededBy != "" {
		s.Errorf("got %+v", first)
	}
	if d := diffOne(list[1].Memory, c); d != "" {
		s.Error(d)
	}
	s.wantRevisions(ann, s.add(ann, s.memory("plays the cello")).ID, "added: plays the cello")
	if _, err := s.store.Revisions(s.Context(), ann, "mem_none", memory.Everything()); !isNotFound(err) {
		s.Errorf("without revisions: %v", err)
	}
}

func testRevertAChain(s *suite) {
	s.each(func(user memory.User) {
		a, b, c := s.chain(user)
		m, r := s.revert(user, a.ID) // by any of the three
		if m.ID != b.ID || m.SupersededBy != "" || !m.ValidTo.IsZero() || r.Change != vectorstore.ChangeSuperseded ||
			r.Memory.ID != c.ID || r.Previous.ID != b.ID {
			s.Errorf("undone %+v; %+v", m, r)
		}
		s.statuses(user, map[memory.Status][]string{
			memory.StatusActive: {b.ID}, memory.StatusSuperseded: {a.ID}, memory.StatusWithdrawn: {c.ID},
		})
		if m, _ := s.revert(user, b.ID); m.ID != a.ID {
			s.Errorf("then undone %+v", m)
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {a.ID}, memory.StatusWithdrawn: {b.ID, c.ID}})
		for _, id := range []string{a.ID, b.ID, c.ID} {
			s.cannotRevert(user, id, "")
		}
		s.wantRevisions(user, a.ID, "reverted: lives in B > lives in B", "reverted: lives in A > lives in A",
			"reverted: lives in C > lives in C", "reverted: lives in B > lives in B",
			"superseded: lives in B > lives in C (undone)", "added: lives in C",
			"superseded: lives in A > lives in B (undone)", "added: lives in B", "added: lives in A")
		// An undone change stays undone. The next revert undoes an earlier change.
		d := s.apply(user, s.superseding("lives in D", a.ID))[0].Memory
		s.statuses(user, map[memory.Status][]string{
			memory.StatusActive: {d.ID}, memory.StatusSuperseded: {a.ID}, memory.StatusWithdrawn: {b.ID, c.ID},
		})
		s.cannotRevert(user, c.ID, "") // no longer linked
		if m, _ := s.revert(user, d.ID); m.ID != a.ID {
			s.Errorf("the last change undone: %+v", m)
		}
	})
}

func testRevertSeveral(s *suite) {
	s.each(func(user memory.User) {
		end := time.Now().Add(1000 * time.Hour).Truncate(time.Microsecond).UTC()
		one := s.add(user, with(s.memory("lives in A"), func(m *memory.Memory) { m.ValidTo = end }), 1, 1, 0)
		two := s.add(user, s.memory("lives with Bo"), 1, 1, 0)
		taker := s.apply(user, s.superseding("lives alone in B", one.ID, two.ID))[0].Memory
		if n := len(s.revisions(user, one.ID)); n != 3 { // not those that changed only the other
			s.Errorf("%d revisions", n)
		}
		if m, _ := s.revert(user, two.ID); diffOne(m, two) != "" {
			s.Errorf("undone %s", diffOne(m, two))
		}
		if d := diffOne(s.get(user, one.ID), one); d != "" {
			s.Errorf("the other one: %s", d)
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {one.ID, two.ID}, memory.StatusWithdrawn: {taker.ID}})
	})
}

// testRevertEdit: A restored text has no vectors until SetEmbeddings stores them.
func testRevertEdit(s *suite) {
	s.each(func(user memory.User) {
		m := s.add(user, s.memory("lives in A"), 1, 1, 0)
		s.update(user, m.ID, "lives in B")
		if _, err := s.store.Update(s.Context(), user, m.ID, memory.Everything(), vectorstore.Patch{Importance: new(0.9), At: t0.Add(25 * time.Hour)}); err != nil {
			s.Fatal(err)
		}
		if _, err := s.store.Update(s.Context(), user, m.ID, memory.Everything(), vectorstore.Patch{Importance: new(0.9), At: t0}); err != nil {
			s.Fatal(err) // which changes nothing
		}
		s.wantRevisions(user, m.ID, "edited: lives in B > lives in B", "edited: lives in A > lives in B", "added: lives in A")
		if got, _ := s.revert(user, m.ID); got.Importance != m.Importance || got.Text != "lives in B" {
			s.Errorf("undone %+v", got)
		}
		got, r := s.revert(user, m.ID)
		if d := diffOne(got, m); d != "" || r.Change != vectorstore.ChangeEdited || r.Memory.Text != "lives in B" {
			s.Errorf("undone %s; %+v", d, r)
		}
		s.is("by the new words", idsOf(s.byKeyword(user, everything(), "B")))
		s.is("by the old words", idsOf(s.byKeyword(user, everything(), "A")), m.ID)
		s.is("by the new vector", idsOf(s.byVector(user, everything(), 1, 1, 0)))
		s.cannotRevert(user, m.ID, "")
	})
}

func testRevertWithdrawal(s *suite) {
	s.each(func(user memory.User) {
		one, two := s.add(user, s.memory("lives in A"), 1, 1, 0), s.add(user, s.memory("lives with Bo"), 1, 1, 0)
		e := s.statement("")
		e.Withdraws = []string{one.ID, two.ID}
		s.apply(user, e)
		s.wantRevisions(user, one.ID, "withdrawn: lives in A > lives in A", "added: lives in A")
		if m, _ := s.revert(user, one.ID); diffOne(m, one) != "" {
			s.Error(diffOne(m, one))
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {one.ID}, memory.StatusWithdrawn: {two.ID}})
	})
}

func testRevertByRevisionID(s *suite) {
	a, b, _ := s.chain(ann)
	list := s.revisions(ann, b.ID)
	newest, before, added := list[0], list[2], list[1]
	for _, id := range []string{before.ID, added.ID, "rev_none"} {
		s.cannotRevert(ann, a.ID, id)
	}
	if _, r, err := s.store.Revert(s.Context(), ann, a.ID, newest.ID, memory.Everything(), t0); err != nil || r.ID != newest.ID {
		s.Errorf("undone %+v, %v", r, err)
	}
	s.cannotRevert(ann, a.ID, newest.ID)
	if _, r, err := s.store.Revert(s.Context(), ann, a.ID, before.ID, memory.Everything(), t0); err != nil || r.ID != before.ID {
		s.Errorf("undone %+v, %v", r, err)
	}
	if _, _, err := s.store.Revert(s.Context(), ann, "mem_none", "", memory.Everything(), t0); !isNotFound(err) {
		s.Errorf("nothing to undo: %v", err)
	}
}

// testEditedBeforeSuperseded: Changes are undone in turn, whichever memory they changed.
func testEditedBeforeSuperseded(s *suite) {
	a := s.add(ann, s.memory("lives in A"), 1, 1, 0)
	edited := s.update(ann, a.ID, "lives in AA")
	b := s.superseding("lives in B", a.ID)
	b.Memory.CreatedAt = edited.UpdatedAt.Add(time.Minute)
	s.apply(ann, b)
	s.update(ann, b.Memory.ID, "lives in BB")
	s.wantRevisions(ann, a.ID, "edited: lives in B > lives in BB", "superseded: lives in AA > lives in B", "added: lives in B",
		"edited: lives in A > lives in AA", "added: lives in A")
	if m, _ := s.revert(ann, a.ID); m.Text != "lives in B" {
		s.Errorf("undone %+v", m)
	}
	if m, _ := s.revert(ann, a.ID); diffOne(m, edited) != "" {
		s.Errorf("undone %+v", m)
	}
	if m, _ := s.revert(ann, a.ID); diffOne(m, a) != "" {
		s.Errorf("undone %+v", m)
	}
	s.cannotRevert(ann, a.ID, "")
}

func testHistoryIsNotEdited(s *suite) {
	_, b, c := s.chain(ann)
	e := s.statement("")
	e.Withdraws = []string{c.ID}
	s.apply(ann, e)
	for _, m := range []memory.Memory{b, c} {
		_, err := s.store.Update(s.Context(), ann, m.ID, memory.Everything(), vectorstore.Patch{Text: new("lives nowhere"), At: t0})
		if !errors.Is(err, memory.ErrPrecondition) || s.get(ann, m.ID).Text != m.Text {
			s.Errorf("changing %q: %v", m.Text, err)
		}
	}
}

func testRevisionsPerVisibility(s *suite) {
	lobby := memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	elsewhere := memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "office"})
	a := s.add(ann, with(s.memory("lives in A"), func(m *memory.Memory) { m.Channel = lobby }), 1, 1, 0)
	b := s.superseding("lives in B", a.ID)
	b.Memory.Channel = lobby
	s.apply(ann, b)
	doubtful := s.add(ann, with(s.memory("lives in C"), func(m *memory.Memory) { m.Channel = lobby }), 1, 1, 0)
	for _, id := range []string{a.ID, b.Memory.ID, doubtful.ID} {
		if _, err := s.store.Revisions(s.Context(), ann, id, elsewhere); !isNotFound(err) {
			s.Errorf("the revisions are visible elsewhere: %v", err)
		}
		if _, _, err := s.store.Revert(s.Context(), ann, id, "", elsewhere, t0); !isNotFound(err) {
			s.Errorf("undone elsewhere: %v", err)
		}
		if _, err := s.store.Release(s.Context(), ann, id, elsewhere, t0); !isNotFound(err) {
			s.Errorf("released elsewhere: %v", err)
		}
		if _, err := s.store.Revisions(s.Context(), ben, id, memory.Everything()); !isNotFound(err) {
			s.Errorf("the revisions are visible to another user: %v", err)
		}
	}
	// An import may link unrelated memories.
	linked := s.statement("lives in D")
	linked.StatementID, linked.Restore, linked.Memory.SupersededBy = "", true, a.ID
	s.apply(ann, linked)
	list, err := s.store.Revisions(s.Context(), ann, a.ID, memory.VisibilityChannel.AudienceOf(lobby))
	if want := []string{"superseded: lives in A > lives in B", "added: lives in B", "added: lives in A"}; err != nil || !slices.Equal(rendered(list), want) {
		s.Errorf("got %q, %v", rendered(list), err)
	}
}

// testRevisionsOfDeleted: Revisions contain nothing of a deleted memory. Memories that it superseded can be restored.
func testRevisionsOfDeleted(s *suite) {
	a, b, c := s.chain(ann)
	s.remove(ann, b.ID)
	s.statuses(ann, map[memory.Status][]string{memory.StatusActive: {c.ID}, memory.StatusSuperseded: {a.ID}})
	s.wantRevisions(ann, c.ID, "added: lives in C")
	list := s.revisions(ann, a.ID)
	if len(list) != 2 || list[0].Memory.Text != "" || list[0].Memory.ID != b.ID || strings.Contains(list[0].Reason, "because") {
		s.Errorf("got %+v", list)
	}
	if m, _ := s.revert(ann, a.ID); m.ID != a.ID || m.SupersededBy != "" {
		s.Errorf("undone %+v", m)
	}
	s.statuses(ann, map[memory.Status][]string{memory.StatusActive: {a.ID, c.ID}})

	one, two := s.add(ann, s.memory("lives in E"), 1, 1, 0), s.add(ann, s.memory("lives in F"), 1, 1, 0)
	e := s.superseding("lives in G", one.ID, two.ID)
	e.Reason = "not in E or F, as was said"
	s.apply(ann, e)
	s.remove(ann, one.ID)
	if list := s.revisions(ann, two.ID); len(list) != 3 || list[0].Reason != "" {
		s.Errorf("the reason may quote the deleted text: %+v", list)
	}
}

func testRevisionsForgotten(s *suite) {
	a, _, _ := s.chain(ann)
	s.update(ann, s.add(ann, s.memory("plays the cello")).ID, "plays the violin")
	s.forget(ann)
	again := s.add(ann, with(s.memory("lives in A"), func(m *memory.Memory) { m.ID = a.ID }), 1, 1, 0)
	s.wantRevisions(ann, again.ID, "added: lives in A")
}

// testRevisionsInACircle: An import may link memories in a circle, or in a very long chain.
func testRevisionsInACircle(s *suite) {
	restored := func(id, supersededBy string) vectorstore.Entry {
		e := s.statement("lives in " + id)
		e.StatementID, e.Restore, e.Embedding = "", true, vectorstore.Embedding{}
		e.Memory.ID, e.Memory.SupersededBy = id, supersededBy
		return e
	}
	s.apply(ann, restored("itself", "itself"), restored("one", "two"), restored("two", "three"), restored("three", "one"))
	for id, want := range map[string]int{"itself": 1, "one": 3} {
		if n := len(s.revisions(ann, id)); n != want {
			s.Errorf("%d revisions, want %d", n, want)
		}
		s.cannotRevert(ann, id, "")
	}
	var long []vectorstore.Entry
	for i := range 1010 {
		long = append(long, restored(fmt.Sprint(i), fmt.Sprint(i+1)))
	}
	s.apply(ben, long...)
	if n := len(s.revisions(ben, "0")); n != 1000 {
		s.Errorf("%d revisions", n)
	}
}
