// Package settingstest is the conformance suite of manage.SettingsStore.
package settingstest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Stores are the store under test and another over the same users. They share one storage.
type Stores struct {
	Settings manage.SettingsStore
	Memories vectorstore.Store
	// Reopen returns the settings store as a new process opens it.
	Reopen func() manage.SettingsStore
	Close  func() // makes the storage unavailable
}

// Run runs the suite. Each call of open returns stores that are empty and last until the end of the test.
func Run(t *testing.T, open func(t *testing.T) Stores) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"Update", testUpdate},
		{"KeepsEverything", testKeepsEverything},
		{"Users", testUsers},
		{"UpdateConcurrently", testUpdateConcurrently},
		{"NotStale", testNotStale},
		{"Forget", testForget},
		{"ForgetSettingsOnly", testForgetSettingsOnly},
		{"Unavailable", testUnavailable},
		{"Cancelled", testCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&suite{t, open(t)}) })
	}
}

var (
	ann       = memory.User{Namespace: "tenant/site", ID: "ann"}
	ben       = memory.User{Namespace: "tenant/site", ID: "ben"}
	elsewhere = memory.User{Namespace: "tenant/other", ID: "ann"}
	t0        = time.Date(2026, 11, 20, 8, 30, 0, 123_456_000, time.UTC)
)

type suite struct {
	*testing.T
	Stores
}

// update changes settings at t0, unless change sets another time.
func (s *suite) update(user memory.User, change func(*memory.Settings)) memory.Settings {
	s.Helper()
	settings, err := s.Settings.Update(s.Context(), user, func(x *memory.Settings) {
		change(x)
		if x.UpdatedAt.IsZero() {
			x.UpdatedAt = t0
		}
	})
	if err != nil {
		s.Fatal(err)
	}
	return settings
}

// want checks the settings that this process and a new one return.
func (s *suite) want(user memory.User, want memory.Settings) {
	s.Helper()
	for name, store := range map[string]manage.SettingsStore{"here": s.Settings, "after a start": s.Reopen()} {
		for range 2 { // the second time perhaps from a cache
			if got, err := store.Get(s.Context(), user); err != nil || !reflect.DeepEqual(got, want) {
				s.Errorf("%v %s: %+v, %v, want %+v", user, name, got, err, want)
			}
		}
	}
}

// testUpdate: A change receives the stored settings, and Update returns the new ones.
func testUpdate(s *suite) {
	s.want(ann, memory.Settings{})
	want := memory.Settings{TimeZone: "Asia/Shanghai", Language: "zh", Paused: true, MemorizeEvery: new(int), UpdatedAt: t0}
	if got := s.update(ann, func(x *memory.Settings) { *x = want }); !reflect.DeepEqual(got, want) {
		s.Errorf("updated to %+v, want %+v", got, want)
	}
	s.want(ann, want)
	before := want
	want.Language, want.MemorizeEvery, want.UpdatedAt = "en", new(1<<31-1), t0.Add(time.Hour)
	s.update(ann, func(x *memory.Settings) {
		if !reflect.DeepEqual(*x, before) {
			s.Errorf("change received %+v, want %+v", x, before)
		}
		x.Language, x.MemorizeEvery, x.UpdatedAt = want.Language, want.MemorizeEvery, want.UpdatedAt
	})
	s.want(ann, want)
	s.update(ann, func(x *memory.Settings) { *x = memory.Settings{} })
	s.want(ann, memory.Settings{UpdatedAt: t0})
}

func testKeepsEverything(s *suite) {
	for _, text := range storetest.Texts() {
		s.update(ann, func(x *memory.Settings) { x.TimeZone, x.Language, x.UpdatedAt = text, text, t0 })
		s.want(ann, memory.Settings{TimeZone: text, Language: text, UpdatedAt: t0})
	}
	for _, at := range []time.Time{time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)} {
		s.update(ben, func(x *memory.Settings) { x.UpdatedAt = at })
		s.want(ben, memory.Settings{UpdatedAt: at})
	}
}

// testUsers: Ids and namespaces of users are compared byte by byte.
func testUsers(s *suite) {
	users := []memory.User{
		ann,
		ben,
		elsewhere,
		{Namespace: "tenant/site", ID: "Ann"},
		{Namespace: "tenant/site", ID: "ann "},
		{Namespace: "tenant", ID: "site/ann"},
		{Namespace: "tenant/site/ann", ID: "ann"},
		{Namespace: "tenant/site", ID: "e\u0301"},
		{Namespace: "tenant/site", ID: "\u00e9"},
		{Namespace: "租户", ID: "小林"},
	}
	for i, user := range users {
		s.update(user, func(x *memory.Settings) {
			if *x != (memory.Settings{}) {
				s.Errorf("%v has %+v", user, x)
			}
			x.Language = fmt.Sprint(i)
		})
	}
	for i, user := range users {
		s.want(user, memory.Settings{Language: fmt.Sprint(i), UpdatedAt: t0})
	}
}

// testUpdateConcurrently: No change is lost.
func testUpdateConcurrently(s *suite) {
	var writers sync.WaitGroup
	const each = 5
	for range 8 {
		writers.Go(func() {
			for range each {
				_, err := s.Settings.Update(s.Context(), ann, func(x *memory.Settings) {
					n := 1
					if x.MemorizeEvery != nil {
						n += *x.MemorizeEvery
					}
					x.MemorizeEvery, x.UpdatedAt = &n, t0
				})
				if err != nil {
					s.Error(err)
				}
			}
		})
	}
	writers.Wait()
	s.want(ann, memory.Settings{MemorizeEvery: new(8 * each), UpdatedAt: t0})
}

// testNotStale: After a change has returned, no caller reads the settings before it.
func testNotStale(s *suite) {
	var stop atomic.Bool
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop.Store(true)
	for range 3 {
		readers.Go(func() {
			for !stop.Load() {
				if _, err := s.Settings.Get(context.WithoutCancel(s.Context()), ann); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	for i := range 60 {
		want := i%2 == 0
		s.update(ann, func(x *memory.Settings) { x.Paused = want })
		for range 3 {
			if got, err := s.Settings.Get(s.Context(), ann); err != nil || got.Paused != want {
				s.Fatalf("after change %d: %+v, %v", i, got, err)
			}
		}
		if i%10 == 9 {
			if _, err := s.Settings.Forget(s.Context(), ann); err != nil {
				s.Fatal(err)
			}
			if got, err := s.Settings.Get(s.Context(), ann); err != nil || got != (memory.Settings{}) {
				s.Fatalf("after they were forgotten: %+v, %v", got, err)
			}
		}
	}
}

func testForget(s *suite) {
	for _, user := range []memory.User{ann, ben, elsewhere} {
		s.update(user, func(x *memory.Settings) { x.Paused = true })
	}
	for _, want := range []bool{true, false} {
		if had, err := s.Settings.Forget(s.Context(), ann); had != want || err != nil {
			s.Errorf("forgot %t, %v, want %t", had, err, want)
		}
	}
	s.want(ann, memory.Settings{})
	s.want(ben, memory.Settings{Paused: true, UpdatedAt: t0})
	s.want(elsewhere, memory.Settings{Paused: true, UpdatedAt: t0})
	s.update(ann, func(x *memory.Settings) { x.Language = "en" })
	s.want(ann, memory.Settings{Language: "en", UpdatedAt: t0})
}

// testForgetSettingsOnly: The user's other data stays, also the record that a deleted statement was applied.
func testForgetSettingsOnly(s *suite) {
	entry := vectorstore.Entry{StatementID: "s1", Memory: memory.Memory{
		ID: "mem_1", Text: "likes tea", Kind: memory.KindFact, Mentions: 1, CreatedAt: t0, UpdatedAt: t0, ObservedAt: t0, LastSaidAt: t0,
	}}
	apply := func(want memory.Action) {
		s.Helper()
		applied, err := s.Memories.Apply(s.Context(), ann, []vectorstore.Entry{entry})
		if err != nil || applied[0].Action != want {
			s.Errorf("applied %+v, %v, want %s", applied, err, want)
		}
	}
	apply(memory.ActionAdded)
	s.update(ann, func(x *memory.Settings) { x.Paused = true })
	if err := s.Memories.Delete(s.Context(), ann, "mem_1", memory.Everything()); err != nil {
		s.Fatal(err)
	}
	if had, err := s.Settings.Forget(s.Context(), ann); !had || err != nil {
		s.Fatal(had, err)
	}
	apply(memory.ActionLeftDeleted)
}

func (s *suite) calls() storetest.Calls {
	return storetest.Calls{
		"Get": func(ctx context.Context) error { _, err := s.Settings.Get(ctx, ben); return err },
		"Update": func(ctx context.Context) error {
			_, err := s.Settings.Update(ctx, ben, func(x *memory.Settings) { x.Language, x.UpdatedAt = "en", t0 })
			return err
		},
		"Forget": func(ctx context.Context) error { _, err := s.Settings.Forget(ctx, ann); return err },
	}
}

func testUnavailable(s *suite) {
	s.Close()
	storetest.CheckUnavailable(s.T, s.calls())
}

func testCancelled(s *suite) {
	storetest.CheckCancelled(s.T, s.calls())
	s.update(ann, func(x *memory.Settings) { x.Paused = true })
	s.want(ann, memory.Settings{Paused: true, UpdatedAt: t0})
}
