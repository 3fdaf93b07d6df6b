package vectorstoretest

import (
	"context"
	"errors"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func applyTests() []test {
	return []test{
		{"ApplyKeepsEverything", testApplyKeepsEverything},
		{"ApplyOnce", testApplyOnce},
		{"ApplyWithoutStatementID", testApplyWithoutStatementID},
		{"LeftDeleted", testLeftDeleted},
		{"Reinforce", testReinforce},
		{"Unchanged", testUnchanged},
		{"KnownText", testKnownText},
		{"KnownPerVisibility", testKnownPerVisibility},
		{"KnownWithinABatch", testKnownWithinABatch},
		{"PayloadHash", testPayloadHash},
		{"AllOrNone", testAllOrNone},
		{"ApplyCancelled", testApplyCancelled},
	}
}

func testApplyKeepsEverything(s *suite) {
	full := s.memory("likes green tea")
	full.Channel = memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	full.Explicit, full.Importance, full.Mentions = true, 0.123456789012345, 3
	bare := memory.Memory{
		ID: "#odd id/1%", Text: "用户喜欢喝茶", Kind: memory.KindPreference, Mentions: 1,
		CreatedAt: time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), UpdatedAt: t0, ObservedAt: t0,
		LastSaidAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	}
	entries := []vectorstore.Entry{s.entry(full, 1, 0, 0), s.entry(bare, 0, 1, 0)}
	// A store may drop nanoseconds and zones, but it must return what it stores.
	entries[0].Memory.ObservedAt = full.ObservedAt.Add(789).In(time.FixedZone("elsewhere", 3600))
	full.User, bare.User = ann, ann
	for i, a := range s.apply(ann, entries...) {
		want := []memory.Memory{full, bare}[i]
		if d := diffOne(a.Memory, want); a.Action != memory.ActionAdded || d != "" {
			s.Errorf("%s: %s", a.Action, d)
		}
		if d := diffOne(s.get(ann, want.ID), want); d != "" {
			s.Error(d)
		}
	}
	if seen := s.snapshot(ann); len(seen) != 2 {
		s.Errorf("listed %+v", seen)
	}
	if applied := s.apply(ann); len(applied) != 0 {
		s.Errorf("an empty batch returned %+v", applied)
	}
}

func testApplyOnce(s *suite) {
	known := s.add(ann, s.memory("likes green tea"), 1, 0, 0)
	added := s.entry(s.memory("plays the cello"), 0, 1, 0)
	reinforced := s.entry(s.memory("Likes green tea."), 1, 0, 0)
	reinforced.Reinforce = true
	unchanged := s.entry(s.memory("likes  green tea"), 1, 0, 0)
	entries := []vectorstore.Entry{added, reinforced, unchanged}
	first := s.apply(ann, entries...)
	before := s.snapshot(ann)
	for i, want := range []memory.Action{memory.ActionAdded, memory.ActionReinforced, memory.ActionUnchanged} {
		if first[i].Action != want {
			s.Errorf("%d was %s, want %s", i, first[i].Action, want)
		}
	}
	if first[1].Memory.ID != known.ID || first[1].Memory.Mentions != 2 {
		s.Errorf("reinforced %+v", first[1].Memory)
	}

	for i := range entries { // a repeated job may have found other words
		entries[i].Memory.ID = "mem_other"
		entries[i].Memory.Text = "something else"
	}
	for range 2 {
		again := s.apply(ann, entries...)
		for i := range again {
			if again[i].Action != first[i].Action || again[i].Memory.ID != first[i].Memory.ID {
				s.Errorf("again %d: %+v, want %+v", i, again[i], first[i])
			}
		}
		if d := diff(s.snapshot(ann), before); d != "" {
			s.Errorf("applying again changed: %s", d)
		}
	}

	// The result shows the memory's current state.
	if _, err := s.store.Update(s.Context(), ann, added.Memory.ID, memory.Everything(), vectorstore.Patch{Importance: new(1.0), At: t0}); err != nil {
		s.Fatal(err)
	}
	if again := s.apply(ann, added)[0]; again.Action != memory.ActionAdded || again.Memory.Importance != 1 {
		s.Errorf("after a change: %+v", again)
	}
}

func testApplyWithoutStatementID(s *suite) {
	e := s.entry(s.memory("likes green tea"), 1, 0, 0)
	e.StatementID, e.Reinforce = "", true
	for i, want := range []memory.Action{memory.ActionAdded, memory.ActionReinforced, memory.ActionReinforced} {
		if a := s.apply(ann, e)[0]; a.Action != want || a.Memory.Mentions != i+1 {
			s.Errorf("time %d: %+v, want %s", i, a, want)
		}
	}
	s.remove(ann, e.Memory.ID)
	if a := s.apply(ann, e)[0]; a.Action != memory.ActionAdded {
		s.Errorf("after it was deleted: %+v", a)
	}
}

func testLeftDeleted(s *suite) {
	e := s.entry(s.memory("likes green tea"), 1, 0, 0)
	s.apply(ann, e)
	s.remove(ann, e.Memory.ID)
	a := s.apply(ann, e)[0]
	if a.Action != memory.ActionLeftDeleted || a.Memory.ID != e.Memory.ID || a.Memory.Text != "" {
		s.Errorf("got %+v", a)
	}
	if seen := s.snapshot(ann); len(seen) != 0 {
		s.Errorf("it was restored: %+v", seen)
	}
	e.StatementID = "said once more"
	if a := s.apply(ann, e)[0]; a.Action != memory.ActionAdded {
		s.Errorf("said again: %+v", a)
	}
	s.is("search", idsOf(s.byVector(ann, everything(), 1, 0, 0)), e.Memory.ID)
}

func testReinforce(s *suite) {
	for _, warm := range []bool{false, true} {
		user := map[bool]memory.User{false: ann, true: ben}[warm]
		known := s.add(user, s.memory("likes green tea"), 1, 0, 0)
		if warm {
			s.warm(user)
		}
		e := s.entry(s.memory("Likes green tea!"), 0, 1, 0)
		e.Reinforce = true
		e.Memory.Importance, e.Memory.Explicit, e.Memory.Kind, e.Memory.LastSaidAt = 0.9, true, memory.KindPlan, t0.Add(time.Hour)
		want := known
		want.Mentions, want.Importance, want.Explicit, want.LastSaidAt = 2, 0.9, true, t0.Add(time.Hour)
		want.UpdatedAt = e.Memory.UpdatedAt // because the importance changed
		a := s.apply(user, e)[0]
		if d := diffOne(a.Memory, want); a.Action != memory.ActionReinforced || d != "" {
			s.Errorf("%s: %s", a.Action, d)
		}
		if d := diff(s.snapshot(user), []memory.Memory{want}); d != "" {
			s.Errorf("stored: %s", d)
		}

		weaker := s.entry(s.memory("likes green tea"), 1, 0, 0)
		weaker.Reinforce = true
		weaker.Memory.Importance, weaker.Memory.LastSaidAt = 0.1, t0.Add(-time.Hour) // arrives late
		want.Mentions = 3
		if d := diffOne(s.apply(user, weaker)[0].Memory, want); d != "" {
			s.Errorf("weaker: %s", d)
		}
		if hits := s.byVector(user, everything(), 1, 0, 0); len(hits) != 1 || hits[0].Score < 0.999 || hits[0].Memory.Mentions != 3 {
			s.Errorf("the embedding changed: %+v", hits)
		}
		s.snapshot(user)
	}
}

func testUnchanged(s *suite) {
	known := s.add(ann, s.memory("likes green tea"), 1, 0, 0)
	e := s.entry(s.memory("likes green tea"), 0, 1, 0)
	e.Memory.Importance, e.Memory.Explicit = 1, true
	a := s.apply(ann, e)[0]
	if d := diffOne(a.Memory, known); a.Action != memory.ActionUnchanged || d != "" {
		s.Errorf("%s: %s", a.Action, d)
	}
	if d := diff(s.snapshot(ann), []memory.Memory{known}); d != "" {
		s.Errorf("stored: %s", d)
	}
	sameID := s.entry(s.memory("plays the cello"), 0, 0, 1)
	sameID.Memory.ID = known.ID // for example a repeated import after the text was corrected
	if a := s.apply(ann, sameID)[0]; a.Action != memory.ActionUnchanged || a.Memory.Text != known.Text {
		s.Errorf("the same id with another text: %+v", a)
	}
}

func testKnownText(s *suite) {
	s.add(ann, s.memory("用户喜欢 Green tea（绿茶）, 1.5 cups"), 1, 0, 0)
	for text, known := range map[string]bool{
		"用户喜欢 green TEA（绿茶）, 1.5 cups":    true,
		"用户喜欢  Green\ttea（绿茶）, 1.5 cups":  true,
		"“用户喜欢 Green tea（绿茶）, 1.5 cups。”": true,
		"用户不喜欢 Green tea（绿茶）, 1.5 cups":   false,
		"用户喜欢 Green tea（绿茶）, 15 cups":     false,
		"用户喜欢 Green tea（红茶）, 1.5 cups":    false,
	} {
		e := s.entry(s.memory(text), 1, 0, 0)
		if a := s.apply(ann, e)[0]; (a.Action == memory.ActionUnchanged) != known {
			s.Errorf("%q was %s", text, a.Action)
		}
	}
}

func testKnownPerVisibility(s *suite) {
	for i, c := range []struct {
		channel memory.Channel
		want    memory.Action
	}{
		{memory.Channel{}, memory.ActionAdded},
		{memory.Channel{ID: "cli"}, memory.ActionUnchanged},
		{memory.Channel{Kind: memory.ChannelDirect, ID: "a"}, memory.ActionAdded},
		{memory.Channel{Kind: memory.ChannelDirect, ID: "b"}, memory.ActionUnchanged},
		{memory.Channel{Kind: memory.ChannelGroup, ID: "a"}, memory.ActionAdded},
		{memory.Channel{Kind: memory.ChannelGroup, ID: "b"}, memory.ActionAdded},
		{memory.Channel{Kind: memory.ChannelGroup, ID: "a"}, memory.ActionUnchanged},
		{memory.Channel{Kind: memory.ChannelGroup, ID: "direct"}, memory.ActionAdded},
	} {
		m := s.memory("likes green tea")
		m.Channel = c.channel
		a := s.apply(ann, s.entry(m, 1, 0, 0))[0]
		if a.Action != c.want {
			s.Errorf("%d: from %+v it was %s, want %s", i, c.channel, a.Action, c.want)
		}
		if a.Memory.Channel.VisibilityKey() != c.channel.VisibilityKey() {
			s.Errorf("%d: from %+v it became visible in %+v", i, c.channel, a.Memory.Channel)
		}
	}
}

func testKnownWithinABatch(s *suite) {
	for _, warm := range []bool{false, true} {
		user := map[bool]memory.User{false: ann, true: ben}[warm]
		if warm {
			s.warm(user)
		}
		one, two := s.entry(s.memory("likes green tea"), 1, 0, 0), s.entry(s.memory("likes green tea"), 1, 0, 0)
		two.Reinforce = true
		applied := s.apply(user, one, two, one)
		for i, want := range []memory.Action{memory.ActionAdded, memory.ActionReinforced, memory.ActionAdded} {
			if applied[i].Action != want || applied[i].Memory.ID != one.Memory.ID {
				s.Errorf("%d: %+v, want %s", i, applied[i], want)
			}
		}
		if seen := s.snapshot(user); len(seen) != 1 || seen[0].Mentions != 2 {
			s.Errorf("stored %+v", seen)
		}
		if hits := s.byVector(user, everything(), 1, 0, 0); len(hits) != 1 || hits[0].Memory.Mentions != 2 {
			s.Errorf("found %+v", hits)
		}
	}
}

func testPayloadHash(s *suite) {
	e := s.entry(s.memory("likes green tea"), 1, 0, 0)
	e.PayloadHash = []byte{1, 2}
	s.apply(ann, e)
	if a := s.apply(ann, e)[0]; a.Action != memory.ActionAdded || a.Memory.ID != e.Memory.ID {
		s.Errorf("with the same hash: %+v", a)
	}
	for _, hash := range [][]byte{{1, 3}, {1}, {1, 2, 3}} {
		other := e
		other.PayloadHash = hash
		if _, err := s.store.Apply(s.Context(), ann, []vectorstore.Entry{other}); !isInvalid(err, "request_id") {
			s.Errorf("with hash %v: %v", hash, err)
		}
		if a := s.apply(ben, other)[0]; a.Action == memory.ActionLeftDeleted { // a statement's id is unique within its user
			s.Errorf("for another person: %+v", a)
		}
		s.forget(ben)
	}
	s.remove(ann, e.Memory.ID)
	other := e
	other.PayloadHash = []byte{9}
	if _, err := s.store.Apply(s.Context(), ann, []vectorstore.Entry{other}); !isInvalid(err, "request_id") {
		s.Errorf("with another hash after it was deleted: %v", err)
	}
	other.PayloadHash = nil
	if a := s.apply(ann, other)[0]; a.Action != memory.ActionLeftDeleted {
		s.Errorf("without hash after it was deleted: %+v", a)
	}
}

func testAllOrNone(s *suite) {
	for _, warm := range []bool{false, true} {
		user := map[bool]memory.User{false: ann, true: ben}[warm]
		first := s.entry(s.memory("likes green tea"), 1, 0, 0)
		first.PayloadHash = []byte{1}
		s.apply(user, first)
		if warm {
			s.warm(user)
		}
		before := s.snapshot(user)
		conflict := first
		conflict.PayloadHash = []byte{2}
		mention := s.entry(s.memory("likes green tea"), 1, 0, 0)
		mention.Reinforce = true
		added := s.entry(s.memory("plays the cello"), 0, 1, 0)
		if _, err := s.store.Apply(s.Context(), user, []vectorstore.Entry{mention, added, conflict}); !isInvalid(err, "request_id") {
			s.Errorf("got %v", err)
		}
		if d := diff(s.snapshot(user), before); d != "" {
			s.Errorf("part of the batch is stored: %s", d)
		}
		s.is("search", idsOf(s.byKeyword(user, everything(), "cello")))
		if applied := s.apply(user, mention, added); applied[0].Memory.Mentions != 2 || applied[1].Action != memory.ActionAdded {
			s.Errorf("without the conflict: %+v", applied)
		}
	}
}

func testApplyCancelled(s *suite) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	e := s.entry(s.memory("likes green tea"), 1, 0, 0)
	if _, err := s.store.Apply(ctx, ann, []vectorstore.Entry{e}); !errors.Is(err, context.Canceled) {
		s.Errorf("got %v", err)
	}
	if seen := s.snapshot(ann); len(seen) != 0 {
		s.Errorf("stored %+v", seen)
	}
}
