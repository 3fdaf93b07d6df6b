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

// Run runs the suite. Each call of factory returns an empty store that lasts until the end of the test.
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
		{"RegistryParts", testRegistryParts},
		{"SeparateRegistries", testSeparateRegistries},
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

// ann returns ann's scope in the channel.
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

// later advances the clock.
func (s *suite) later(d time.Duration) { s.now = s.now.Add(d) }

func audience(scope memory.Scope) memory.Audience {
	return memory.VisibilityChannel.AudienceOf(scope.Channel)
}

// view returns the registry that a scope refers to.
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

// films returns items by key. The title is the key in capitals.
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

// manual puts items at the user's request, into the default registry of the kind.
func (s *suite) manual(scope memory.Scope, kind lists.Kind, items ...lists.Item) lists.PutResult {
	s.Helper()
	return s.named(scope, kind, "", items...)
}

func (s *suite) named(scope memory.Scope, kind lists.Kind, list string, items ...lists.Item) lists.PutResult {
	s.Helper()
	p := place(scope)
	done := s.put(lists.Put{View: s.view(scope, kind, list), Mode: lists.Manual, Items: items, Place: &p})
	if !done.Shown {
		s.Error("the list is not shown")
	}
	return done
}

func (s *suite) scheduled(scope memory.Scope, kind lists.Kind, items ...lists.Item) lists.PutResult {
	s.Helper()
	p := place(scope) // must have no effect
	done := s.put(lists.Put{View: s.view(scope, kind, ""), Mode: lists.Scheduled, Items: items, Place: &p})
	if done.Shown {
		s.Error("the list is shown")
	}
	return done
}

// rendered renders Put's items: number and key, "new", "notified", and how many minutes after t0 each was first seen.
func rendered(items []lists.Numbered) string {
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

// items returns the keys of a registry, in order, with a mark for notified ones.
func (s *suite) items(v lists.View) string {
	s.Helper()
	page, err := s.store.Items(s.Context(), v, "", 1000)
	if err != nil || page.Next != "" || int(page.Total) != len(page.Items) {
		s.Fatalf("%d of %d items, next page %q, %v", len(page.Items), page.Total, page.Next, err)
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

// shown returns the keys of the list being shown, or "none".
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
