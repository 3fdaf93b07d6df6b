package vectorstoretest

import (
	"errors"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func historyTests() []test {
	return []test{
		{"Supersede", testSupersede},
		{"SupersedeSeveral", testSupersedeSeveral},
		{"SupersededTextIsNotKnown", testSupersededTextIsNotKnown},
		{"KnownTextSupersedes", testKnownTextSupersedes},
		{"SaidAgainMeanwhile", testLastStatementIsActive},
		{"Outdated", testOutdated},
		{"SameAs", testSameAs},
		{"Withdraw", testWithdraw},
		{"Quarantine", testQuarantine},
		{"Expiry", testExpiry},
		{"AsOf", testAsOf},
		{"OtherVisibility", testOtherVisibility},
		{"Restore", testRestore},
	}
}

// statement returns an entry. All entries of these tests have the same vector, so that a search without a limit finds every memory that
// searches can return.
func (s *suite) statement(text string) vectorstore.Entry { return s.entry(s.memory(text), 1, 1, 0) }

func (s *suite) superseding(text string, old ...string) vectorstore.Entry {
	e := s.statement(text)
	e.Supersedes, e.Reason = old, "because"
	return e
}

func withStatuses(statuses ...memory.Status) vectorstore.Filter {
	return vectorstore.Filter{Audience: memory.Everything(), Statuses: statuses}
}

// statuses checks which memories have which status, using Get, List and both searches.
func (s *suite) statuses(user memory.User, want map[memory.Status][]string) {
	s.Helper()
	findable := []memory.Status{memory.StatusActive, memory.StatusSuperseded, memory.StatusExpired}
	var found, all []string
	for _, status := range memory.Statuses() {
		s.is("List of "+string(status), ids(s.list(user, withStatuses(status))), slices.Clone(want[status])...)
		for _, id := range want[status] {
			if got := s.get(user, id); got.StatusAt(time.Now()) != status {
				s.Errorf("%s is %+v, want %s", id, got, status)
			}
		}
		var hits []string
		if slices.Contains(findable, status) {
			hits = want[status]
			found = append(found, hits...)
		}
		all = append(all, want[status]...)
		s.is("SearchVector of "+string(status), idsOf(s.byVector(user, withStatuses(status), 1, 0, 0)), slices.Clone(hits)...)
		s.is("SearchKeyword of "+string(status), idsOf(s.byKeyword(user, withStatuses(status), "lives")), slices.Clone(hits)...)
	}
	active := want[memory.StatusActive]
	s.is("List", ids(s.list(user, everything())), slices.Clone(active)...)
	s.is("SearchVector", idsOf(s.byVector(user, everything(), 1, 0, 0)), slices.Clone(active)...)
	s.is("SearchKeyword", idsOf(s.byKeyword(user, everything(), "lives")), slices.Clone(active)...)
	s.is("List of all", ids(s.list(user, withStatuses(memory.Statuses()...))), all...)
	s.is("SearchVector of all", idsOf(s.byVector(user, withStatuses(memory.Statuses()...), 1, 0, 0)), slices.Clone(found)...)
	s.is("SearchKeyword with history", idsOf(s.byKeyword(user, withStatuses(findable...), "lives")), found...)
	for _, h := range s.byVector(user, withStatuses(memory.Statuses()...), 1, 0, 0) {
		if d := diffOne(*h.Memory, s.get(user, h.Memory.ID)); d != "" {
			s.Errorf("a search does not agree with Get: %s", d)
		}
	}
}

// each runs a test for a user whose index is not loaded, and for one whose index is.
func (s *suite) each(run func(user memory.User)) {
	run(ann)
	s.warm(ben)
	run(ben)
}

func testSupersede(s *suite) {
	s.each(func(user memory.User) {
		old := s.add(user, s.memory("lives in Beijing"), 1, 1, 0)
		e := s.superseding("lives in Shanghai", old.ID, "mem_none", old.ID)
		moved := s.apply(user, e)[0]
		s.is("superseded", moved.Related, old.ID)
		if d := diffOne(moved.Memory, with(e.Memory, func(m *memory.Memory) { m.User = user })); moved.Action != memory.ActionUpdated || d != "" {
			s.Errorf("%s: %s", moved.Action, d)
		}
		want := with(old, func(m *memory.Memory) { m.SupersededBy, m.ValidTo = e.Memory.ID, e.Memory.ObservedAt })
		if d := diffOne(s.get(user, old.ID), want); d != "" {
			s.Error(d)
		}
		statuses := map[memory.Status][]string{memory.StatusActive: {e.Memory.ID}, memory.StatusSuperseded: {old.ID}}
		s.statuses(user, statuses)

		again := s.apply(user, e)[0]
		s.is("superseded, applied again", again.Related, old.ID)
		if d := diffOne(again.Memory, moved.Memory); again.Action != memory.ActionUpdated || d != "" {
			s.Errorf("again: %s, %s", again.Action, d)
		}
		if n := len(s.revisions(user, old.ID)); n != 3 {
			s.Errorf("%d revisions", n)
		}
		s.statuses(user, statuses)
	})
}

func with(m memory.Memory, change func(*memory.Memory)) memory.Memory {
	change(&m)
	return m
}

// testSupersedeSeveral: A memory that ends earlier keeps its end, and none ends before its beginning.
func testSupersedeSeveral(s *suite) {
	one, two, three := s.memory("lives in Beijing"), s.memory("lives in a hotel"), s.memory("lives with Bo")
	three.ValidFrom = t0.Add(24 * time.Hour)
	for _, m := range []memory.Memory{one, two, three} {
		s.add(ann, m, 1, 1, 0)
	}
	expired := with(s.memory("lives on a boat"), func(m *memory.Memory) { m.ValidTo = t0.Add(-time.Hour) })
	s.add(ann, expired, 1, 1, 0)
	e := s.superseding("lives in Shanghai", one.ID, two.ID, three.ID, expired.ID)
	e.Memory.ValidFrom = t0.Add(2 * time.Hour)
	a := s.apply(ann, e)[0]
	if !slices.Equal(a.Related, []string{one.ID, two.ID, three.ID}) {
		s.Errorf("superseded %q", a.Related)
	}
	if got := s.get(ann, one.ID).ValidTo; !got.Equal(e.Memory.ValidFrom) {
		s.Errorf("it was valid until %v", got)
	}
	if got := s.get(ann, three.ID).ValidTo; !got.Equal(three.ValidFrom) {
		s.Errorf("the memory that began later was valid until %v", got)
	}
	if got := s.get(ann, expired.ID); got.SupersededBy != "" || !got.ValidTo.Equal(expired.ValidTo) {
		s.Errorf("the expired memory is %+v", got)
	}
	s.statuses(ann, map[memory.Status][]string{
		memory.StatusActive: {e.Memory.ID}, memory.StatusSuperseded: {one.ID, two.ID, three.ID}, memory.StatusExpired: {expired.ID},
	})
}

// testSupersededTextIsNotKnown: If the text of a superseded memory is said again, it is stored as a new memory.
func testSupersededTextIsNotKnown(s *suite) {
	s.each(func(user memory.User) {
		first := s.add(user, s.memory("lives in Beijing"), 1, 1, 0)
		second := s.apply(user, s.superseding("lives in Shanghai", first.ID))[0].Memory
		e := s.superseding("lives in Beijing", second.ID)
		e.Reinforce = true
		if a := s.apply(user, e)[0]; a.Action != memory.ActionUpdated || a.Memory.ID != e.Memory.ID {
			s.Errorf("back again: %+v", a)
		}
		s.statuses(user, map[memory.Status][]string{
			memory.StatusActive: {e.Memory.ID}, memory.StatusSuperseded: {first.ID, second.ID},
		})
	})
}

// testKnownTextSupersedes: An existing memory can supersede one that contradicts it.
func testKnownTextSupersedes(s *suite) {
	known, wrong := s.add(ann, s.memory("lives in Beijing"), 1, 1, 0), s.add(ann, s.memory("lives in Shanghai"), 1, 1, 0)
	e := s.superseding("Lives in Beijing.", wrong.ID, known.ID)
	e.Reinforce = true
	a := s.apply(ann, e)[0]
	s.is("superseded", a.Related, wrong.ID)
	if a.Action != memory.ActionUpdated || a.Memory.ID != known.ID || a.Memory.Mentions != 2 {
		s.Errorf("got %+v", a)
	}
	s.statuses(ann, map[memory.Status][]string{memory.StatusActive: {known.ID}, memory.StatusSuperseded: {wrong.ID}})
	s.revert(ann, known.ID)
	s.statuses(ann, map[memory.Status][]string{memory.StatusActive: {known.ID, wrong.ID}})
}

// testLastStatementIsActive: The statement said last is active, in whatever order the statements are applied.
func testLastStatementIsActive(s *suite) {
	s.each(func(user memory.User) {
		known := s.add(user, s.memory("lives in Beijing"), 1, 1, 0)
		e := s.superseding("lives in Shanghai", known.ID)
		mention := s.statement("lives in Beijing")
		mention.Reinforce = true
		s.apply(user, mention)
		a := s.apply(user, e)[0]
		s.is("related", a.Related, known.ID)
		if a.Action != memory.ActionOutdated || a.Memory.SupersededBy != known.ID || !a.Memory.ValidTo.Equal(mention.Memory.LastSaidAt) {
			s.Errorf("got %+v", a)
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {known.ID}, memory.StatusSuperseded: {e.Memory.ID}})
	})
}

func testOutdated(s *suite) {
	s.each(func(user memory.User) {
		early := s.statement("lives in Beijing")
		holds := s.add(user, s.memory("lives in Shanghai"), 1, 1, 0)
		early.Memory.SupersededBy, early.Reason = holds.ID, "said before"
		for range 2 {
			a := s.apply(user, early)[0]
			s.is("related", a.Related, holds.ID)
			if a.Action != memory.ActionOutdated || a.Memory.SupersededBy != holds.ID || !a.Memory.ValidTo.Equal(holds.ObservedAt) {
				s.Errorf("got %+v", a)
			}
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {holds.ID}, memory.StatusSuperseded: {early.Memory.ID}})

		repeated := early
		repeated.StatementID, repeated.Memory.ID, repeated.Reinforce = "once more", "mem_more", true
		if a := s.apply(user, repeated)[0]; a.Action != memory.ActionReinforced || a.Memory.ID != early.Memory.ID {
			s.Errorf("again: %+v", a)
		}
		// After a revert both memories are active, because the other one existed before.
		s.revert(user, early.Memory.ID)
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {holds.ID, early.Memory.ID}})

		orphan := s.statement("lives in Tianjin")
		orphan.Memory.SupersededBy = "mem_none"
		if a := s.apply(user, orphan)[0]; a.Action != memory.ActionAdded || a.Memory.SupersededBy != "" {
			s.Errorf("superseded by an unknown memory: %+v", a)
		}
	})
}

func testSameAs(s *suite) {
	known := s.add(ann, s.memory("lives in Beijing"), 1, 1, 0)
	e := s.statement("lives in the capital")
	e.SameAs = known.ID
	for range 2 {
		if a := s.apply(ann, e)[0]; a.Action != memory.ActionReinforced || a.Memory.ID != known.ID || a.Memory.Mentions != 2 || a.Memory.Text != known.Text {
			s.Errorf("got %+v", a)
		}
	}
	moved := s.apply(ann, s.superseding("lives in Shanghai", known.ID))[0].Memory
	late := s.statement("lives in the capital")
	late.SameAs = known.ID
	if a := s.apply(ann, late)[0]; a.Action != memory.ActionAdded || a.Memory.ID != late.Memory.ID {
		s.Errorf("the same as a superseded memory: %+v", a)
	}
	s.statuses(ann, map[memory.Status][]string{
		memory.StatusActive: {moved.ID, late.Memory.ID}, memory.StatusSuperseded: {known.ID},
	})
}

func testWithdraw(s *suite) {
	s.each(func(user memory.User) {
		first := s.add(user, s.memory("lives in Beijing"), 1, 1, 0)
		moved := s.apply(user, s.superseding("lives in Shanghai", first.ID))[0].Memory
		other := s.add(user, s.memory("lives with Bo"), 1, 1, 0)
		e := s.statement("wants something forgotten")
		e.Withdraws = []string{moved.ID, "mem_none", first.ID}
		for range 2 {
			a := s.apply(user, e)[0]
			if a.Action != memory.ActionWithdrawn || a.Memory.ID != moved.ID || !slices.Equal(a.Related, []string{moved.ID, first.ID}) {
				s.Errorf("got %+v", a)
			}
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {other.ID}, memory.StatusWithdrawn: {first.ID, moved.ID}})
		nothing := s.statement("wants nothing forgotten")
		nothing.Withdraws = []string{moved.ID}
		for range 2 {
			if a := s.apply(user, nothing)[0]; a.Action != memory.ActionWithdrawn || a.Memory.ID != "" || len(a.Related) != 0 {
				s.Errorf("withdrawn before: %+v", a)
			}
		}
		// A withdrawn text that is said again becomes a new memory.
		back := s.statement("lives in Shanghai")
		back.Reinforce = true
		if a := s.apply(user, back)[0]; a.Action != memory.ActionAdded || a.Memory.ID != back.Memory.ID {
			s.Errorf("said again: %+v", a)
		}
		s.remove(user, moved.ID)
		if a := s.apply(user, e)[0]; a.Action != memory.ActionWithdrawn || a.Memory.ID != moved.ID || a.Memory.Text != "" {
			s.Errorf("when it is deleted: %+v", a)
		}
	})
}

func testQuarantine(s *suite) {
	s.each(func(user memory.User) {
		known := s.add(user, s.memory("lives in Beijing"), 1, 1, 0)
		e := s.superseding("lives in Paris", known.ID)
		e.Memory.Quarantine = "Paris is in none of the messages"
		for range 2 {
			if a := s.apply(user, e)[0]; a.Action != memory.ActionQuarantined || len(a.Related) != 0 {
				s.Errorf("got %+v", a)
			}
		}
		held := map[memory.Status][]string{memory.StatusActive: {known.ID}, memory.StatusQuarantined: {e.Memory.ID}}
		s.statuses(user, held)
		doubtful := s.statement("lives in Paris")
		doubtful.Reinforce, doubtful.Memory.Quarantine = true, "again in none"
		if a := s.apply(user, doubtful)[0]; a.Action != memory.ActionUnchanged || a.Memory.ID != e.Memory.ID {
			s.Errorf("quarantined again: %+v", a)
		}
		doubted := s.statement("lives in Beijing")
		doubted.Reinforce, doubted.Memory.Quarantine = true, "in none"
		if a := s.apply(user, doubted)[0]; a.Action != memory.ActionUnchanged || a.Memory.Mentions != 1 {
			s.Errorf("a quarantined mention of an existing memory: %+v", a)
		}
		s.statuses(user, held)

		said := s.statement("lives in Paris")
		said.Reinforce = true
		if a := s.apply(user, said)[0]; a.Action != memory.ActionReinforced || a.Memory.ID != e.Memory.ID || a.Memory.Quarantine != "" {
			s.Errorf("said by the user: %+v", a)
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {known.ID, e.Memory.ID}})
		s.revert(user, e.Memory.ID)
		s.statuses(user, held)
		released, err := s.store.Release(s.Context(), user, e.Memory.ID, memory.Everything(), t0)
		if err != nil || released.Quarantine != "" {
			s.Errorf("released: %+v, %v", released, err)
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {known.ID, e.Memory.ID}})
		if _, err := s.store.Release(s.Context(), user, known.ID, memory.Everything(), t0); !errors.Is(err, memory.ErrPrecondition) {
			s.Errorf("releasing a memory that is not quarantined: %v", err)
		}
	})
}

func testExpiry(s *suite) {
	s.each(func(user memory.User) {
		past, future := t0.Add(-30*24*time.Hour), time.Now().Add(1000*time.Hour).Truncate(time.Microsecond).UTC()
		over := with(s.memory("lives through the dentist on Friday"), func(m *memory.Memory) { m.ValidTo = past })
		comes := with(s.memory("lives for the concert"), func(m *memory.Memory) { m.ValidTo = future })
		s.add(user, over, 1, 1, 0)
		s.add(user, comes, 1, 1, 0)
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {comes.ID}, memory.StatusExpired: {over.ID}})
		then := everything()
		then.At = past.Add(-time.Hour)
		s.is("before the end", idsOf(s.byVector(user, then, 1, 0, 0)), over.ID, comes.ID)
		s.is("before the end, listed", ids(s.list(user, then)), over.ID, comes.ID)
		then.At = future
		s.is("after the end", idsOf(s.byKeyword(user, then, "lives")))

		earlier := s.entry(with(s.memory(over.Text), func(m *memory.Memory) { m.ValidTo = past.Add(-time.Hour) }), 1, 1, 0)
		earlier.Reinforce = true
		if a := s.apply(user, earlier)[0]; a.Memory.ID != over.ID || !a.Memory.ValidTo.Equal(past) {
			s.Errorf("with an earlier end: %+v", a)
		}
		later := s.entry(with(s.memory(over.Text), func(m *memory.Memory) { m.ValidTo = future }), 1, 1, 0)
		if a := s.apply(user, later)[0]; a.Action != memory.ActionReinforced || a.Memory.ID != over.ID || !a.Memory.ValidTo.Equal(future) {
			s.Errorf("with a later end: %+v", a)
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {comes.ID, over.ID}})
		forever := s.statement(comes.Text)
		if a := s.apply(user, forever)[0]; !a.Memory.ValidTo.Equal(future) {
			s.Errorf("an active memory keeps its end: %+v", a)
		}
		done := with(s.memory("lives for the fair"), func(m *memory.Memory) { m.ValidTo = past })
		s.add(user, done, 1, 1, 0)
		if a := s.apply(user, s.statement(done.Text))[0]; a.Action != memory.ActionReinforced || !a.Memory.ValidTo.IsZero() {
			s.Errorf("without an end: %+v", a)
		}
		s.statuses(user, map[memory.Status][]string{memory.StatusActive: {comes.ID, over.ID, done.ID}})
	})
}

// testOtherVisibility: Memories of other channels and users are not superseded, withdrawn or reinforced.
func testOtherVisibility(s *suite) {
	lobby := memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	known := s.add(ann, with(s.memory("lives in Beijing"), func(m *memory.Memory) { m.Channel = lobby }), 1, 1, 0)
	for i, channel := range []memory.Channel{{}, {Kind: memory.ChannelDirect, ID: "lobby"}, {Kind: memory.ChannelGroup, ID: "office"}} {
		supersedes := s.superseding("lives in Shanghai", known.ID)
		same := s.statement("lives in the capital")
		same.SameAs = known.ID
		outdated := s.statement("lives in Tianjin")
		outdated.Memory.SupersededBy = known.ID
		withdraws := s.statement("")
		withdraws.Withdraws = []string{known.ID}
		entries := []vectorstore.Entry{supersedes, same, outdated, withdraws}
		for j := range entries {
			entries[j].Memory.Channel = channel
		}
		for j, a := range s.apply(ann, entries...) {
			want := memory.ActionAdded
			if j == 3 {
				want = memory.ActionWithdrawn
			}
			if a.Action != want || len(a.Related) != 0 || a.Memory.SupersededBy != "" {
				s.Errorf("%d, entry %d: %+v", i, j, a)
			}
		}
		if d := diffOne(s.get(ann, known.ID), known); d != "" {
			s.Errorf("%d: %s", i, d)
		}
	}
	stranger := s.superseding("lives in Shanghai", known.ID)
	stranger.Withdraws = []string{known.ID}
	if a := s.apply(ben, stranger)[0]; len(a.Related) != 0 {
		s.Errorf("another person's: %+v", a)
	}
	if d := diffOne(s.get(ann, known.ID), known); d != "" {
		s.Error(d)
	}
}

// testRestore: Exported memories are restored unchanged, in any order.
func testRestore(s *suite) {
	now := s.memory("lives in Shanghai")
	active := s.statement("lives in Beijing")
	past := s.statement("lives in Beijing")
	past.Memory.SupersededBy, past.Memory.ValidFrom, past.Memory.ValidTo = now.ID, t0.Add(-100*time.Hour), t0.Add(-time.Hour)
	doubtful := s.statement("lives in Paris")
	doubtful.Memory.Quarantine = "in none of the messages"
	current := s.entry(now, 1, 1, 0)
	entries := []vectorstore.Entry{active, past, doubtful, current}
	for i := range entries {
		entries[i].StatementID, entries[i].Restore = "", true
	}
	for _, want := range []memory.Action{memory.ActionAdded, memory.ActionUnchanged} {
		for i, a := range s.apply(ann, entries...) {
			m := with(entries[i].Memory, func(m *memory.Memory) { m.User = ann })
			if d := diffOne(a.Memory, m); a.Action != want || d != "" {
				s.Errorf("%s: %s", a.Action, d)
			}
		}
	}
	s.statuses(ann, map[memory.Status][]string{
		memory.StatusActive: {now.ID, active.Memory.ID}, memory.StatusSuperseded: {past.Memory.ID},
		memory.StatusQuarantined: {doubtful.Memory.ID},
	})
}

// testAsOf: A memory is active until another one supersedes it. The filter Observed excludes later statements.
func testAsOf(s *suite) {
	s.each(func(user memory.User) {
		first := s.statement("lives in Paris")
		first.Memory.ObservedAt = t0.Add(-48 * time.Hour)
		first.Memory.LastSaidAt = first.Memory.ObservedAt
		s.apply(user, first)
		second := s.superseding("lives in Rome", first.Memory.ID)
		second.Memory.ObservedAt = t0.Add(-24 * time.Hour)
		second.Memory.LastSaidAt = second.Memory.ObservedAt
		s.apply(user, second)
		for _, c := range []struct {
			after time.Duration // the second statement's
			want  []string
		}{
			{-time.Microsecond, []string{first.Memory.ID}},
			{0, []string{second.Memory.ID}},
		} {
			at := second.Memory.ObservedAt.Add(c.after)
			then := everything()
			then.At, then.Observed.Before = at, at.Add(time.Microsecond)
			s.is("SearchVector", idsOf(s.byVector(user, then, 1, 0, 0)), c.want...)
			s.is("SearchKeyword", idsOf(s.byKeyword(user, then, "lives")), c.want...)
			s.is("List", ids(s.list(user, then)), c.want...)
		}
	})
}
