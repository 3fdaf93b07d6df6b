package liststest

import (
	"time"

	"github.com/memsidecar/memsidecar/internal/lists"
)

// testTooMany: Above the limit the oldest items are evicted, even if a list shows them.
func testTooMany(s *suite) {
	me := ann(direct)
	registry := s.view(me, lists.KindUser, "")
	s.limits.MaxItems = 4
	s.manual(me, lists.KindUser, films("a", "b")...)
	s.later(time.Minute)
	if done := s.scheduled(me, lists.KindUser, films("c", "d")...); done.Evicted != 0 {
		s.Errorf("evicts %d", done.Evicted)
	}
	s.later(time.Minute)
	done := s.scheduled(me, lists.KindUser, films("e", "f")...)
	s.want("kept", s.items(registry), "e! f! c! d!")
	if done.Evicted != 2 {
		s.Errorf("evicts %d", done.Evicted)
	}
	s.want("a list keeps what the registry dropped", s.shown(me, ""), "a b")
	s.later(time.Minute)
	s.scheduled(me, lists.KindUser, films("c", "g")...)
	s.want("what was seen again stays", s.items(registry), "g! e! f! c!")
}

// testLargerThanLimit: All items of a Put stay, even above the limit, so that repeating it finds no new items.
func testLargerThanLimit(s *suite) {
	me := ann(direct)
	registry := s.view(me, lists.KindUser, "")
	s.limits.MaxItems = 4
	s.scheduled(me, lists.KindUser, films("old")...)
	for range 3 {
		s.later(time.Minute)
		s.scheduled(me, lists.KindUser, films("1", "2", "3", "4", "5", "6")...)
		s.want("kept", s.items(registry), "1! 2! 3! 4! 5! 6!")
	}
	s.want("nothing new", rendered(s.scheduled(me, lists.KindUser, films("1", "6")...).Items), "1:1 notified +1, 2:6 notified +1")
}

// testTooOld: An item's age counts from when it was last seen.
func testTooOld(s *suite) {
	me := ann(direct)
	registry := s.view(me, lists.KindUser, "")
	s.scheduled(me, lists.KindUser, films("old", "listed")...)
	s.manual(me, lists.KindUser, films("shown")...)
	other := of("bob", direct)
	s.scheduled(other, lists.KindUser, films("bobs")...)
	s.later(24 * time.Hour)
	s.scheduled(me, lists.KindUser, films("listed")...)
	s.limits.SeenAfter = s.now.Add(-time.Hour)
	done := s.scheduled(me, lists.KindUser, films("new", "listed")...)
	s.want("kept", s.items(registry), "new! listed!")
	if done.Evicted != 2 || done.Items[1].New {
		s.Errorf("put %+v", done)
	}
	s.want("another's is not touched", s.items(s.view(other, lists.KindUser, "")), "bobs!")
	s.want("a list keeps what the registry dropped", s.shown(me, ""), "shown")
	s.limits.ShownAfter = s.now // lists shown earlier have expired
	s.want("expired", s.shown(me, ""), "none")
}

// testRefreshed: Reading an item counts as seeing it, in the parts of the registry that the caller sees.
func testRefreshed(s *suite) {
	me := ann(direct)
	everything := func() string {
		s.Helper()
		return s.items(s.view(me, lists.KindUser, ""))
	}
	s.scheduled(me, lists.KindUser, films("asked", "looked", "checked", "forgotten")...)
	s.manual(ann(lobby), lists.KindUser, films("group")...)
	s.later(48 * time.Hour)
	if _, _, err := s.store.Unseen(s.Context(), s.view(me, lists.KindUser, ""), []string{"asked", "unknown"}, s.now); err != nil {
		s.Fatal(err)
	}
	s.manual(me, lists.KindUser, films("looked")...)
	s.scheduled(me, lists.KindUser, films("checked", "group")...)
	s.limits.SeenAfter = s.now.Add(-24 * time.Hour)
	s.scheduled(me, lists.KindUser)
	s.scheduled(ann(lobby), lists.KindUser)
	s.want("kept", everything(), "asked! looked! checked! group")
}

// testClockSetBack: Items that are put while the clock is behind are not evicted before older ones.
func testClockSetBack(s *suite) {
	me := ann(direct)
	s.limits.MaxItems = 2
	s.scheduled(me, lists.KindUser, films("a", "b")...)
	s.later(-time.Hour)
	s.scheduled(me, lists.KindUser, films("c")...)
	s.want("again", rendered(s.scheduled(me, lists.KindUser, films("c")...).Items), "1:c notified -60")
}

func testSweep(s *suite) {
	me, other := ann(direct), of("bob", lobby)
	s.scheduled(me, lists.KindUser, films("a", "b", "c")...)
	s.manual(other, lists.KindUser, films("shown")...)
	s.scheduled(other, lists.KindUser, films("bobs")...)
	s.later(time.Hour)
	s.scheduled(me, lists.KindUser, films("new")...)
	sweep := func(l lists.Limits) (total int64) {
		s.Helper()
		for {
			deleted, err := s.store.Sweep(s.Context(), l, 2)
			if err != nil {
				s.Fatal(err)
			}
			if deleted == 0 {
				return total
			}
			total += deleted
		}
	}
	if n := sweep(lists.Limits{}); n != 0 {
		s.Errorf("without limits deletes %d", n)
	}
	if n := sweep(lists.Limits{SeenAfter: s.now}); n != 5 {
		s.Errorf("deletes %d", n)
	}
	s.want("new ones stay", s.items(s.view(me, lists.KindUser, "")), "new!")
	s.want("lists stay", s.shown(other, ""), "shown")
	if n := sweep(lists.Limits{SeenAfter: s.now, ShownAfter: s.now}); n != 1 {
		s.Errorf("deletes %d", n)
	}
	s.want("expired", s.shown(other, "")+s.items(s.view(other, lists.KindUser, "")), "none")
}
