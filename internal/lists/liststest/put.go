package liststest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
)

func isNotFound(err error) bool { return errors.Is(err, memory.ErrNotFound) }

// docs/design/conversations.md has the table of what is written when.

func testManual(s *suite) {
	me := ann(direct)
	registry := s.view(me, lists.KindUser, "")
	done := s.manual(me, lists.KindUser, films("a", "b", "c")...)
	s.want("first", rendered(done.Items), "1:a new, 2:b new, 3:c new")
	s.wantTime("last check", done.LastCheck, time.Time{})
	s.later(time.Minute)
	done = s.manual(me, lists.KindUser, films("d", "b")...)
	s.want("again", rendered(done.Items), "1:d new +1, 2:b")
	s.want("all", s.items(registry), "d a b c")
	s.want("shown", s.shown(me, ""), "d b")
	s.wantTime("last check", done.LastCheck, time.Time{})
}

func testScheduled(s *suite) {
	site := memory.Scope{Namespace: "tenant/site"}
	registry := s.view(site, lists.KindNamespace, "")
	done := s.scheduled(site, "", films("a", "b")...)
	s.want("first", rendered(done.Items), "1:a new notified, 2:b new notified")
	s.wantTime("last check", done.LastCheck, t0)
	s.later(time.Minute)
	done = s.scheduled(site, "", lists.Item{Key: "b", Title: "another", Attributes: `{"x":1}`}, lists.Item{Key: "c"})
	s.want("again", rendered(done.Items), "1:b notified, 2:c new notified +1")
	if b := done.Items[0]; b.Title != "B" || b.Attributes != "" {
		s.Errorf("a scheduled check changes existing items: %+v", b)
	}
	s.want("all", s.items(registry), "c! a! b!")
	s.wantTime("last check", done.LastCheck, s.now)
	s.later(-time.Hour) // a clock that was set back
	done = s.scheduled(site, "")
	s.wantTime("last check does not go back", done.LastCheck, t0.Add(time.Minute))
	page, err := s.store.Items(s.Context(), registry, "", 10)
	if err != nil || !page.LastCheck.Equal(t0.Add(time.Minute)) {
		s.Errorf("last check is %s, %v", page.LastCheck, err)
	}
}

// testManualThenScheduled: A manually put item counts as seen, whatever notified says, and notified stays set.
func testManualThenScheduled(s *suite) {
	me := ann(direct)
	s.manual(me, lists.KindUser, films("a", "b")...)
	done := s.scheduled(me, lists.KindUser, films("a", "b", "c")...)
	s.want("scheduled", rendered(done.Items), "1:a, 2:b, 3:c new notified")
	s.want("still shown", s.shown(me, ""), "a b")
	done = s.manual(me, lists.KindUser, films("c", "a")...)
	s.want("manual", rendered(done.Items), "1:c notified, 2:a")
	s.want("now shown", s.shown(me, ""), "c a")
	s.wantTime("last check", done.LastCheck, t0)
}

func testImport(s *suite) {
	me := ann(direct)
	v, here := s.view(me, lists.KindUser, ""), place(me)
	s.manual(me, lists.KindUser, lists.Item{Key: "a", Title: "mine"})
	put := lists.Put{
		View: v, Mode: lists.Import, Place: &here, ShownKeys: []string{"b", "gone", "b"}, ShownAt: t0.Add(-time.Hour), LastCheck: t0.Add(-time.Minute),
		Items: []lists.Item{
			{Key: "a", Title: "theirs", Notified: true, FirstSeen: t0.Add(-2 * time.Minute)},
			{Key: "b", Title: "B", Notified: true, FirstSeen: t0.Add(-3 * time.Minute)},
			{Key: "c"},
		},
	}
	done := s.put(put)
	s.want("imported", rendered(done.Items), "1:a, 2:b new notified -3, 3:c new")
	s.wantTime("last check", done.LastCheck, put.LastCheck)
	if done.Shown {
		s.Error("the import replaces a list that was shown later")
	}
	s.want("shown", s.shown(me, ""), "a")
	put.ShownAt = t0.Add(time.Hour)
	if done = s.put(put); !done.Shown {
		s.Error("the import does not replace a list that was shown before")
	}
	s.want("twice", rendered(done.Items), "1:a, 2:b notified -3, 3:c")
	s.want("shown", s.shown(me, ""), "b gone b")
	if done = s.put(put); done.Shown {
		s.Error("the import shows the list again")
	}
	s.want("all", s.items(v), "a c b!")
}

func testDuplicates(s *suite) {
	me := ann(direct)
	twice := []lists.Item{{Key: "a", Title: "first"}, {Key: "b"}, {Key: "a", Title: "second"}}
	done := s.manual(me, lists.KindUser, twice...)
	s.want("manual", rendered(done.Items), "1:a new, 2:b new, 3:a")
	if done.Items[0].Title != "second" || done.Items[2].Title != "second" {
		s.Errorf("the items are %+v", done.Items)
	}
	s.want("shown", s.shown(me, ""), "a b a")
	s.want("all", s.items(s.view(me, lists.KindUser, "")), "a b")
	done = s.scheduled(me, lists.KindUser, films("z", "z")...)
	s.want("scheduled", rendered(done.Items), "1:z new notified, 2:z notified")
}

// testAttributes: Attributes are returned byte by byte. An item without a title or attributes keeps the stored ones.
func testAttributes(s *suite) {
	me := ann(direct)
	odd := "{\"id\": 9007199254740993,\t\"b\":\"\\u00e9<>&\", \"a\":1.50}"
	s.manual(me, lists.KindUser, lists.Item{Key: "a", Title: "得闲谨制", Attributes: odd})
	done := s.manual(me, lists.KindUser, lists.Item{Key: "a"})
	if got := done.Items[0]; got.Attributes != odd || got.Title != "得闲谨制" {
		s.Errorf("got %+v", got)
	}
	done = s.manual(me, lists.KindUser, lists.Item{Key: "a", Title: "new", Attributes: "{}"})
	if got := done.Items[0]; got.Attributes != "{}" || got.Title != "new" {
		s.Errorf("updated to %+v", got)
	}
}

// testConcurrent: The items of all writers are stored, each is new for exactly one writer, and the list shown is one writer's.
func testConcurrent(s *suite) {
	const writers, each = 8, 5
	site := memory.Scope{Namespace: "tenant/site", Channel: lobby}
	view, here := s.view(site, lists.KindNamespace, ""), place(site)
	var mu sync.Mutex
	news := map[string]int{}
	put := func(p lists.Put) {
		done, err := s.store.Put(s.Context(), p)
		if err != nil {
			s.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, item := range done.Items {
			if item.New {
				news[item.Key]++
			}
		}
	}
	var wg sync.WaitGroup
	for w := range writers {
		p := lists.Put{View: view, Mode: lists.Scheduled, Items: films("same", fmt.Sprintf("of-%d", w)), At: s.now, Limits: s.limits}
		if w%2 == 0 {
			p.Mode, p.Place = lists.Manual, &here
		}
		wg.Go(func() {
			for range each {
				put(p)
			}
		})
	}
	wg.Wait()
	if len(news) != writers+1 {
		s.Errorf("new were %v", news)
	}
	for key, n := range news {
		if n != 1 {
			s.Errorf("%s was new %d times", key, n)
		}
	}
	if shown := s.shown(site, ""); !strings.HasPrefix(shown, "same of-") || len(strings.Fields(shown)) != 2 {
		s.Errorf("shown is %q", shown)
	}
	if got := len(strings.Fields(s.items(view))); got != writers+1 {
		s.Errorf("%d items", got)
	}
}
