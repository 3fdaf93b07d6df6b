// Package quotatest is the conformance suite of quotas: what each store counts, and what it refuses to store.
package quotatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Stores are the stores that quotas limit. They share one storage.
type Stores struct {
	Memories vectorstore.Store
	Sessions session.Store
	Lists    lists.Store
	// Standings returns the quotas of the user's namespace and, if the user has an id, those of the user.
	Standings func(ctx context.Context, user memory.User) ([]memory.Standing, error)
	Close     func() // makes the storage unavailable
}

// Quotas are the limits and the callback that the stores are opened with.
type Quotas struct {
	// Limit returns how much a namespace may store; 0 is any amount. It may change between two calls of a store.
	Limit func(namespace string, name memory.QuotaName) int64
	// Refused must be called once for each write that a quota refused.
	Refused func(memory.QuotaName)
}

// Run runs the suite. Each call of open returns stores that are empty and last until the end of the test.
func Run(t *testing.T, open func(t *testing.T, q Quotas) Stores) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"Memories", testMemories},
		{"MemoriesAllOrNone", testMemoriesAllOrNone},
		{"MemoriesConcurrently", testMemoriesConcurrently},
		{"UserHistory", testUserHistory},
		{"NamespaceHistory", testNamespaceHistory},
		{"HistoryOfMany", testHistoryOfMany},
		{"HistoryConcurrently", testHistoryConcurrently},
		{"Record", testRecord},
		{"UserLists", testUserLists},
		{"NamespaceLists", testNamespaceLists},
		{"ShownLists", testShownLists},
		{"ListsConcurrently", testListsConcurrently},
		{"Standings", testStandings},
		{"Unavailable", testUnavailable},
		{"Cancelled", testCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, limits: map[memory.QuotaName]int64{}, refused: map[memory.QuotaName]int{}}
			s.Stores = open(t, Quotas{Limit: s.limit, Refused: s.refuse})
			c.run(s)
		})
	}
}

// site is the namespace that limits are set for.
const site = "tenant/site"

var (
	ann       = memory.User{Namespace: site, ID: "ann"}
	ben       = memory.User{Namespace: site, ID: "ben"}
	elsewhere = memory.User{Namespace: "tenant/other", ID: "ann"}
	t0        = time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
)

type suite struct {
	*testing.T
	Stores

	mu      sync.Mutex
	limits  map[memory.QuotaName]int64
	refused map[memory.QuotaName]int
	count   int
}

func (s *suite) limit(namespace string, name memory.QuotaName) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if namespace != site {
		return 0
	}
	return s.limits[name]
}

func (s *suite) refuse(name memory.QuotaName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[name]++
}

// allow sets a limit; 0 is any amount.
func (s *suite) allow(name memory.QuotaName, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[name] = limit
}

// used returns how much of a quota is used, as Standings reports it to the user.
func (s *suite) used(name memory.QuotaName, user memory.User) int64 {
	s.Helper()
	standings, err := s.Standings(s.Context(), user)
	if err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(standings, func(x memory.Standing) bool { return x.Quota == name })
	if i < 0 {
		s.Fatalf("%s is not among %+v", name, standings)
	}
	return standings[i].Used
}

func (s *suite) wantUsed(name memory.QuotaName, user memory.User, want int64) {
	s.Helper()
	if got := s.used(name, user); got != want {
		s.Errorf("%s of %v: %d are used, want %d", name, user, got, want)
	}
}

// wantRefused checks that the quota refused the write, and that this was reported once.
func (s *suite) wantRefused(err error, want memory.Standing, needed int64) {
	s.Helper()
	var over *memory.QuotaError
	if !errors.As(err, &over) {
		s.Errorf("%v, want a QuotaError", err)
		return
	}
	if over.Standing != want || over.Needed != needed {
		s.Errorf("refused with %+v, needed %d; want %+v, %d", over.Standing, over.Needed, want, needed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused[want.Quota] != 1 || len(s.refused) != 1 {
		s.Errorf("reported as refused: %v, want %s once", s.refused, want.Quota)
	}
	clear(s.refused)
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	if len(s.refused) != 0 {
		s.Errorf("reported as refused: %v", s.refused)
	}
}

func testStandings(s *suite) {
	unknown := memory.User{Namespace: site, ID: "unknown"}
	check := func(user memory.User, want ...memory.Standing) {
		s.Helper()
		got, err := s.Standings(s.Context(), user)
		if err != nil || !slices.Equal(got, want) {
			s.Errorf("%v: %+v, %v\nwant %+v", user, got, err, want)
		}
	}
	// Memories and bytes are reported without a limit, too, because they are cheap to count.
	check(unknown, memory.Standing{Quota: memory.QuotaNamespaceMemories}, memory.Standing{Quota: memory.QuotaNamespaceHistory},
		memory.Standing{Quota: memory.QuotaUserHistory, UserID: "unknown"})
	for i, name := range memory.QuotaNames() {
		s.allow(name, int64(1000*(i+1)))
	}
	s.must(s.remember(ann, "likes tea"))
	s.must(s.say(ann, "s", "word"))
	s.must(s.put(ann, lists.KindUser, "films"))
	bytes := s.used(memory.QuotaUserHistory, ann)
	want := []memory.Standing{
		{Quota: memory.QuotaNamespaceMemories, Limit: 1000, Used: 1},
		{Quota: memory.QuotaNamespaceHistory, Limit: 2000, Used: bytes},
		{Quota: memory.QuotaUserHistory, UserID: "ann", Limit: 3000, Used: bytes},
		{Quota: memory.QuotaNamespaceLists, Limit: 4000, Used: 1},
		{Quota: memory.QuotaUserLists, UserID: "ann", Limit: 5000, Used: 1},
	}
	check(ann, want...)
	check(memory.User{Namespace: site}, want[0], want[1], want[3])
	check(elsewhere, memory.Standing{Quota: memory.QuotaNamespaceMemories}, memory.Standing{Quota: memory.QuotaNamespaceHistory},
		memory.Standing{Quota: memory.QuotaUserHistory, UserID: "ann"})
}

func (s *suite) calls() storetest.Calls {
	return storetest.Calls{"Standings": func(ctx context.Context) error { _, err := s.Standings(ctx, ann); return err }}
}

func testUnavailable(s *suite) {
	s.Close()
	storetest.CheckUnavailable(s.T, s.calls())
}

func testCancelled(s *suite) { storetest.CheckCancelled(s.T, s.calls()) }

// concurrently makes so many writes simultaneously. The quota must refuse all but some of them.
func (s *suite) concurrently(name memory.QuotaName, writes int, write func(i int) error) (stored int) {
	errs := make([]error, writes)
	var writers sync.WaitGroup
	for i := range writes {
		writers.Go(func() { errs[i] = write(i) })
	}
	writers.Wait()
	for i, err := range errs {
		var over *memory.QuotaError
		switch {
		case err == nil:
			stored++
		case !errors.As(err, &over) || over.Quota != name:
			s.Errorf("write %d: %v", i, err)
		}
	}
	if s.refused[name] != writes-stored {
		s.Errorf("%d of %d writes were stored; reported as refused: %v", stored, writes, s.refused)
	}
	return stored
}

// name returns a unique name.
func (s *suite) name(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return fmt.Sprint(prefix, s.count)
}
