// Package liststest is the conformance suite of lists.Store.
package liststest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Run runs the suite. The factory returns a store that is empty and lasts as long as its test.
func Run(t *testing.T, factory func(t *testing.T) lists.Store) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"Manual", testManual},
		{"Scheduled", testScheduled},
		{"ManualThenScheduled", testManualThenScheduled},
		{"Import", testImport},
		{"Duplicates", testDuplicates},
		{"Attributes", testAttributes},
		{"Concurrent", testConcurrent},
		{"Parts", testParts},
		{"Apart", testApart},
		{"Places", testPlaces},
		{"ShownLast", testShownLast},
		{"ShownIsCurrent", testShownIsCurrent},
		{"Unseen", testUnseen},
		{"ItemsPages", testItemsPages},
		{"TooMany", testTooMany},
		{"TooOld", testTooOld},
		{"LargerThanLimit", testLargerThanLimit},
		{"Refreshed", testRefreshed},
		{"ClockSetBack", testClockSetBack},
		{"Sweep", testSweep},
		{"Delete", testDelete},
		{"Forget", testForget},
		{"ForgetSession", testForgetSession},
		{"Export", testExport},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(&suite{T: t, store: factory(t), now: t0, limits: lists.Limits{MaxItems: 100}})
		})
	}
}

var t0 = time.Date(2026, 2, 19, 9, 41, 42, 123_456_000, time.UTC)

var (
	direct = memory.Channel{Kind: memory.ChannelDirect}
	lobby  = memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"}
	attic  = memory.Channel{Kind: memory.ChannelGroup, ID: "attic"}
)

// ann is where ann talks.
func ann(c memory.Channel) memory.Scope { return of("ann", c) }

func of(user string, c memory.Channel) memory.Scope {
	return memory.Scope{Namespace: "tenant/site", UserID: user, Channel: c}
}

func inSession(scope memory.Scope, id string) memory.Scope {
	scope.SessionID = id
	return scope
}

type suite struct {
	*testing.T
	store  lists.Store
	now    time.Time
	limits lists.Limits
}

// later moves the clock.
func (s *suite) later(d time.Duration) { s.now = s.now.Add(d) }

func audience(scope memory.Scope) memory.Audience {
	return memory.VisibilityChannel.AudienceOf(scope.Channel)
}

// view is the registry that a scope means.
func (s *suite) view(scope memory.Scope, kind lists.Kind, list string) lists.View {
	s.Helper()
	r, wrong := lists.RegistryOf(scope, kind, list)
	if err := wrong.Err(); err != nil {
		s.Fatal(err)
	}
	return lists.View{Registry: r, Audience: audience(scope)}
}

func place(scope memory.Scope) lists.Place {
	p, _ := lists.PlaceOf(scope, audience(scope))
	return p
}

// films are items by key; the title is the key in capitals.
func films(keys ...string) []lists.Item {
	items := make([]lists.Item, len(keys))
	for i, key := range keys {
		items[i] = lists.Item{Key: key, Title: strings.ToUpper(key)}
	}
	return items
}

func (s *suite) put(p lists.Put) lists.PutResult {
	s.Helper()
	p.At, p.Limits = s.now, s.limits
	done, err := s.store.Put(s.Context(), p)
	if err != nil {
		s.Fatal(err)
	}
	return done
}

// manual puts what the scope's user asked for, into the default registry of the kind.
func (s *suite) manual(scope memory.Scope, kind lists.Kind, items ...lists.Item) lists.PutResult {
	s.Helper()
	return s.named(scope, kind, "", items...)
}

func (s *suite) named(scope memory.Scope, kind lists.Kind, list string, items ...lists.Item) lists.PutResult {
	s.Helper()
	p := place(scope)
	done := s.put(lists.Put{View: s.view(scope, kind, list), Mode: lists.Manual, Items: items, Place: &p})
	if !done.Shown {
		s.Error("is not shown")
	}
	return done
}

func (s *suite) scheduled(scope memory.Scope, kind lists.Kind, items ...lists.Item) lists.PutResult {
	s.Helper()
	p := place(scope) // which must not matter
	done := s.put(lists.Put{View: s.view(scope, kind, ""), Mode: lists.Scheduled, Items: items, Place: &p})
	if done.Shown {
		s.Error("is shown")
	}
	return done
}

// told describes Put's items: number and key, "new", "notified", and after how many minutes it was first seen.
func told(items []lists.Numbered) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = fmt.Sprintf("%d:%s", item.Number, item.Key)
		if item.New {
			parts[i] += " new"
		}
		if item.Notified {
			parts[i] += " notified"
		}
		if d := item.FirstSeen.Sub(t0); d != 0 {
			parts[i] += fmt.Sprintf(" %+d", int(d.Minutes()))
		}
	}
	return strings.Join(parts, ", ")
}

// items are the keys of a registry, in order, with those that are notified marked.
func (s *suite) items(v lists.View) string {
	s.Helper()
	page, err := s.store.Items(s.Context(), v, "", 1000)
	if err != nil || page.Next != "" || int(page.Total) != len(page.Items) {
		s.Fatalf("%d of %d items, another page %q, %v", len(page.Items), page.Total, page.Next, err)
	}
	keys := make([]string, len(page.Items))
	for i, item := range page.Items {
		keys[i] = item.Key
		if item.Notified {
			keys[i] += "!"
		}
	}
	return strings.Join(keys, " ")
}

// shown are the keys of the list being shown, or "none".
func (s *suite) shown(scope memory.Scope, list string) string {
	s.Helper()
	l, err := s.store.Shown(s.Context(), place(scope), list, s.limits.ShownAfter)
	if err != nil {
		if !isNotFound(err) {
			s.Error(err)
		}
		return "none"
	}
	keys := make([]string, len(l.Items))
	for i, item := range l.Items {
		keys[i] = item.Key
		if item.Number != i+1 {
			s.Errorf("item %d is number %d", i, item.Number)
		}
	}
	return strings.Join(keys, " ")
}

func (s *suite) want(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (s *suite) wantTime(what string, got, want time.Time) {
	s.Helper()
	if !got.Equal(want) {
		s.Errorf("%s: %s, want %s", what, got, want)
	}
}
