// Package budgettest is the conformance suite of budget.Store.
package budgettest

import (
	"sync"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
)

// Run runs the suite. Each call of factory returns an empty store that lasts until the end of the test.
func Run(t *testing.T, factory func(t *testing.T) budget.Store) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"AddsUp", testAddsUp},
		{"AddsUpConcurrently", testAddsUpConcurrently},
		{"RefusedUsers", testRefusedUsers},
		{"NewDay", testNewDay},
		{"Forget", testForget},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&suite{t, factory(t)}) })
	}
}

const (
	today    = "2026-11-20"
	tomorrow = "2026-11-21"
)

var (
	site      = memory.User{Namespace: "tenant/site"}
	ann       = memory.User{Namespace: "tenant/site", ID: "ann"}
	ben       = memory.User{Namespace: "tenant/site", ID: "ben"}
	elsewhere = memory.User{Namespace: "tenant/other", ID: "ann"}
)

type suite struct {
	*testing.T
	store budget.Store
}

func entry(day string, user memory.User, tokens, refused int64) budget.Entry {
	return budget.Entry{Day: day, User: user, Count: budget.Count{Tokens: tokens, Refused: refused}}
}

func (s *suite) add(entries ...budget.Entry) {
	s.Helper()
	if err := s.store.Add(s.Context(), entries); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) want(day string, user memory.User, tokens, refused int64) {
	s.Helper()
	got, err := s.store.Get(s.Context(), day, user)
	if want := (budget.Count{Tokens: tokens, Refused: refused}); err != nil || got != want {
		s.Errorf("%v on %s: %+v, %v, want %+v", user, day, got, err, want)
	}
}

func testAddsUp(s *suite) {
	s.want(today, ann, 0, 0)
	s.add()
	s.add(entry(today, ann, 5, 0), entry(today, ann, 0, 1), entry(today, site, 7, 0))
	s.add(entry(today, ann, 6, 1))
	s.want(today, ann, 11, 2)
	s.want(today, site, 7, 0) // counted separately, not as the sum of its users
	s.want(today, ben, 0, 0)
	s.want(today, elsewhere, 0, 0)
	s.want(tomorrow, ann, 0, 0)
}

func testAddsUpConcurrently(s *suite) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				s.add(entry(today, ann, 1, 1))
			}
		})
	}
	all.Wait()
	s.want(today, ann, 40, 40)
}

func testRefusedUsers(s *suite) {
	s.add(entry(today, site, 1, 9), entry(today, ann, 1, 3), entry(today, ben, 9, 0), entry(today, elsewhere, 0, 1))
	for namespace, want := range map[string]int64{"tenant/site": 1, "tenant/other": 1, "tenant": 0} {
		if got, err := s.store.RefusedUsers(s.Context(), today, namespace); got != want || err != nil {
			s.Errorf("%d users of %s were refused, %v, want %d", got, namespace, err, want)
		}
	}
	if got, err := s.store.RefusedUsers(s.Context(), tomorrow, "tenant/site"); got != 0 || err != nil {
		s.Errorf("%d users are refused on the next day, %v", got, err)
	}
}

// testNewDay: Late counts for the previous day are stored and do not affect the new day.
func testNewDay(s *suite) {
	s.add(entry(today, ann, 5, 1))
	s.add(entry(today, ann, 1, 0), entry(tomorrow, ann, 2, 0))
	s.want(today, ann, 6, 1)
	s.want(tomorrow, ann, 2, 0)
	s.add(entry(tomorrow, ann, 3, 0))
	s.want(tomorrow, ann, 5, 0)
}

func testForget(s *suite) {
	s.add(entry(today, site, 9, 1), entry(today, ann, 5, 1), entry(today, ben, 4, 0), entry(today, elsewhere, 3, 0))
	for _, want := range []bool{true, false} {
		if had, err := s.store.Forget(s.Context(), ann); had != want || err != nil {
			s.Errorf("forgot: %t, %v, want %t", had, err, want)
		}
	}
	s.want(today, ann, 0, 0)
	s.want(today, site, 9, 1)
	s.want(today, ben, 4, 0)
	s.want(today, elsewhere, 3, 0)
	if had, err := s.store.Forget(s.Context(), site); had || err != nil {
		s.Errorf("forgot a namespace: %t, %v", had, err)
	}
	s.want(today, site, 9, 1)
}
