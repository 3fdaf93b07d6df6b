package vectorstoretest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// sweepSuite is one test of vectorstore.Sweep.
type sweepSuite struct {
	*suite

	sweep vectorstore.Sweep
	close func()
}

// RunSweep runs the suite of vectorstore.Sweep. Each call of open returns stores as Run needs them.
func RunSweep(t *testing.T, open func(t *testing.T) Stores) {
	for _, c := range []struct {
		name string
		run  func(*sweepSuite)
	}{
		{"Ended", testEnded},
		{"ResetClock", testSweepResetClock},
		{"Drop", testDrop},
		{"Crowded", testCrowded},
		{"Evictable", testEvictable},
		{"Evict", testEvict},
		{"EvictConcurrently", testEvictConcurrently},
		{"Full", testFull},
		{"CountsFollowChanges", testCountsFollowChanges},
		{"OnWrite", testOnWrite},
		{"Unavailable", testSweepUnavailable},
		{"Cancelled", testSweepCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			stores := open(t)
			c.run(&sweepSuite{&suite{T: t, store: stores.Store}, stores.Sweep, stores.Close})
		})
	}
}

func minutes(n int) time.Time { return t0.Add(time.Duration(n) * time.Minute) }

// restore stores a memory in the state that change gives it. Its id is its text.
func (s *sweepSuite) restore(user memory.User, id string, change func(*memory.Memory)) {
	s.Helper()
	e := s.entry(s.memory(id), 1, 0, 0)
	e.StatementID, e.Memory.ID, e.Restore = "", id, true
	if change != nil {
		change(&e.Memory)
	}
	s.apply(user, e)
}

func explicit(m *memory.Memory) { m.Explicit = true }

// left returns the ids of a user's memories of any status.
func (s *sweepSuite) left(user memory.User) string {
	s.Helper()
	filter := everything()
	filter.Statuses = memory.Statuses()
	return strings.Join(ids(s.list(user, filter)), " ")
}

func (s *sweepSuite) wantLeft(user memory.User, want string) {
	s.Helper()
	if got := s.left(user); got != want {
		s.Errorf("%s has %q, want %q", user.ID, got, want)
	}
	found := strings.Join(idsOf(s.byVector(user, everything(), 1, 0, 0)), " ")
	for id := range strings.FieldsSeq(found) {
		if !slices.Contains(strings.Fields(want), id) {
			s.Errorf("a search of %s finds %q", user.ID, found)
		}
	}
}

// wantEnded checks which memories ended by the time, in minutes after t0, and when the next one does; -1 means never.
func (s *sweepSuite) wantEnded(how memory.Status, before, limit int, want string, wantNext int) {
	s.Helper()
	refs, next, err := s.sweep.Ended(s.Context(), how, minutes(before), limit)
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, ref := range refs {
		got = append(got, ref.User.ID+"/"+ref.ID)
	}
	nextAt := -1
	if !next.IsZero() {
		nextAt = int(next.Sub(t0).Minutes())
	}
	if g := strings.Join(got, " "); g != want || nextAt != wantNext {
		s.Errorf("%s by %d, limit %d: %q, the next at %d; want %q, %d", how, before, limit, g, nextAt, want, wantNext)
	}
}

// testEnded: Each memory ended in one way, at an exact time. Those that ended first are returned first.
func testEnded(s *sweepSuite) {
	for how := range map[memory.Status]bool{memory.StatusWithdrawn: true, memory.StatusExpired: true, memory.StatusSuperseded: true} {
		s.wantEnded(how, 1000, 10, "", -1)
	}
	withdrawn := func(at int) func(*memory.Memory) {
		return func(m *memory.Memory) { m.WithdrawnAt = minutes(at) }
	}
	s.restore(ann, "active", nil)
	s.restore(ann, "quarantined", func(m *memory.Memory) { m.Quarantine = "no" })
	s.restore(ann, "superseded without time", func(m *memory.Memory) { m.SupersededBy = "active" })
	s.restore(ann, "w30", withdrawn(30))
	s.restore(ben, "w10", withdrawn(10))
	s.restore(memory.User{Namespace: "elsewhere", ID: "eve"}, "w20", func(m *memory.Memory) {
		m.WithdrawnAt, m.ValidTo, m.SupersededBy = minutes(20), minutes(5), "other" // in one way only
	})
	s.restore(ann, "e10", func(m *memory.Memory) { m.ValidTo = minutes(10) })
	s.restore(ann, "e20", func(m *memory.Memory) { m.ValidTo, m.Quarantine = minutes(20), "no" })
	s.restore(ann, "s10", func(m *memory.Memory) { m.ValidTo, m.SupersededBy = minutes(10), "active" })

	s.wantEnded(memory.StatusWithdrawn, 9, 10, "", 10)
	s.wantEnded(memory.StatusWithdrawn, 10, 10, "ben/w10", 20)
	s.wantEnded(memory.StatusWithdrawn, 30, 10, "ben/w10 eve/w20 ann/w30", -1)
	s.wantEnded(memory.StatusWithdrawn, 30, 2, "ben/w10 eve/w20", 30)
	s.wantEnded(memory.StatusWithdrawn, 30, 3, "ben/w10 eve/w20 ann/w30", -1)
	s.wantEnded(memory.StatusExpired, 10, 10, "ann/e10", 20)
	s.wantEnded(memory.StatusExpired, 20, 10, "ann/e10 ann/e20", -1)
	s.wantEnded(memory.StatusSuperseded, 10, 10, "ann/s10", -1)
	if refs, next, err := s.sweep.Ended(s.Context(), memory.StatusWithdrawn, minutes(10).Add(-time.Microsecond), 10); len(refs) != 0 ||
		!next.Equal(minutes(10)) || err != nil {
		s.Errorf("a microsecond before: %v, %s, %v", refs, next, err)
	}
	for _, how := range []memory.Status{memory.StatusActive, memory.StatusQuarantined, "", "other"} {
		if _, _, err := s.sweep.Ended(s.Context(), how, t0, 10); err == nil {
			s.Errorf("the invalid status %q is no error", how)
		}
	}
}

// testSweepResetClock: A memory with a future withdrawal time counts as withdrawn now.
func testSweepResetClock(s *sweepSuite) {
	for i, user := range []memory.User{ann, ben, ann} {
		s.restore(user, fmt.Sprint("w", 10*i), func(m *memory.Memory) { m.WithdrawnAt = minutes(10 * i) })
	}
	s.restore(ann, "ends later", func(m *memory.Memory) { m.ValidTo = minutes(100) })
	if err := s.sweep.ResetClock(s.Context(), minutes(20), minutes(5)); err != nil {
		s.Fatal(err)
	}
	s.wantEnded(memory.StatusWithdrawn, 100, 10, "ann/w0 ben/w10 ann/w20", -1) // unchanged
	if err := s.sweep.ResetClock(s.Context(), minutes(9), minutes(5)); err != nil {
		s.Fatal(err)
	}
	s.wantEnded(memory.StatusWithdrawn, 4, 10, "ann/w0", 5)
	if refs, next, err := s.sweep.Ended(s.Context(), memory.StatusWithdrawn, minutes(5), 10); len(refs) != 3 || !next.IsZero() || err != nil {
		s.Errorf("ended %v, the next at %s, %v", refs, next, err)
	}
	s.wantEnded(memory.StatusExpired, 100, 10, "ann/ends later", -1)
}

// testDrop: Only memories that still ended in this way by the time are deleted, with their revisions.
func testDrop(s *sweepSuite) {
	for _, user := range []memory.User{ann, ben} {
		s.restore(user, "active", nil)
		s.restore(user, "withdrawn", func(m *memory.Memory) { m.WithdrawnAt = minutes(10) })
		s.restore(user, "expired", func(m *memory.Memory) { m.ValidTo = minutes(10) })
		s.restore(user, "superseded", func(m *memory.Memory) { m.ValidTo, m.SupersededBy = minutes(10), "active" })
		s.restore(user, "superseded2", func(m *memory.Memory) { m.SupersededBy = "active" })
	}
	all := []string{"active", "expired", "superseded", "superseded2", "withdrawn", "unknown"}
	for _, test := range []struct {
		how    memory.Status
		before int
		want   int
		left   string
	}{
		{memory.StatusWithdrawn, 9, 0, "active expired superseded superseded2 withdrawn"},
		{memory.StatusExpired, 10, 1, "active superseded superseded2 withdrawn"},
		{memory.StatusWithdrawn, 10, 1, "active superseded superseded2"},
		{memory.StatusWithdrawn, 10, 0, "active superseded superseded2"},
		{memory.StatusSuperseded, 100, 1, "active superseded2"},
	} {
		n, err := s.sweep.Drop(s.Context(), ann, all, test.how, minutes(test.before))
		if n != test.want || err != nil {
			s.Errorf("%s by %d: %d, %v, want %d", test.how, test.before, n, err, test.want)
		}
		s.wantLeft(ann, test.left)
	}
	s.wantLeft(ben, "active expired superseded superseded2 withdrawn")
	if n, err := s.sweep.Drop(s.Context(), memory.User{Namespace: "elsewhere", ID: "ann"}, all, memory.StatusWithdrawn, minutes(100)); n != 0 ||
		err != nil {
		s.Errorf("an unknown user: %d, %v", n, err)
	}
	if _, err := s.store.Revisions(s.Context(), ann, "expired", memory.Everything()); !isNotFound(err) {
		s.Errorf("revisions of a deleted memory: %v", err)
	}
}

func (s *sweepSuite) crowded(most, limit int) string {
	s.Helper()
	crowds, err := s.sweep.Crowded(s.Context(), most, limit)
	if err != nil || len(crowds) > limit {
		s.Fatal(len(crowds), err)
	}
	var got []string
	for _, c := range crowds {
		got = append(got, fmt.Sprintf("%s/%s %d %d", c.User.Namespace, c.User.ID, c.Memories, c.Explicit))
	}
	slices.Sort(got)
	return strings.Join(got, ", ")
}

func (s *sweepSuite) wantCrowded(most int, want string) {
	s.Helper()
	if got := s.crowded(most, 100); got != want {
		s.Errorf("more than %d: %q, want %q", most, got, want)
	}
}

// testCrowded: History counts. A user with only explicit memories has none to evict.
func testCrowded(s *sweepSuite) {
	s.wantCrowded(0, "")
	s.restore(ann, "a", nil)
	s.restore(ann, "b", explicit)
	s.restore(ann, "c", func(m *memory.Memory) { m.WithdrawnAt = t0 })
	s.restore(ben, "a", nil)
	s.restore(ben, "b", func(m *memory.Memory) { m.ValidTo, m.SupersededBy = t0, "a" })
	eve := memory.User{Namespace: "elsewhere", ID: "eve"}
	for _, id := range []string{"a", "b", "c", "d"} {
		s.restore(eve, id, explicit)
	}
	s.wantCrowded(0, "tenant/site/ann 3 1, tenant/site/ben 2 0")
	s.wantCrowded(1, "tenant/site/ann 3 1, tenant/site/ben 2 0")
	s.wantCrowded(2, "tenant/site/ann 3 1")
	s.wantCrowded(3, "")
	if got := s.crowded(1, 1); got != "tenant/site/ann 3 1" && got != "tenant/site/ben 2 0" {
		s.Errorf("one of two: %q", got)
	}
}

func testEvictable(s *sweepSuite) {
	use := vectorstore.Use{User: ann, MemoryID: "used", Count: 3, At: minutes(7)}
	s.restore(ann, "used", func(m *memory.Memory) {
		m.Kind, m.Importance, m.Mentions, m.ValidTo = memory.KindPlan, 0.123456789, 4, minutes(50)
	})
	if err := s.store.MarkUsed(s.Context(), []vectorstore.Use{use}); err != nil {
		s.Fatal(err)
	}
	s.restore(ann, "asked for", explicit)
	s.restore(ann, "withdrawn", func(m *memory.Memory) { m.WithdrawnAt = minutes(3) })
	s.restore(ann, "superseded", func(m *memory.Memory) { m.ValidTo, m.SupersededBy = minutes(2), "used" })
	s.restore(ann, "quarantined", func(m *memory.Memory) { m.Quarantine = "no such words" })
	s.restore(ben, "of ben", nil)
	var got []memory.Memory
	if err := s.sweep.Evictable(s.Context(), ann, func(m *memory.Memory) { got = append(got, *m) }); err != nil {
		s.Fatal(err)
	}
	slices.SortFunc(got, func(a, b memory.Memory) int { return cmp.Compare(a.ID, b.ID) })
	s.is("visited", ids(got), "quarantined", "superseded", "used", "withdrawn")
	for _, m := range got {
		want := s.get(ann, m.ID)
		if m.Kind != want.Kind || m.Importance != want.Importance || m.Mentions != want.Mentions || !m.LastSaidAt.Equal(want.LastSaidAt) ||
			m.UseCount != want.UseCount || !m.LastUsedAt.Equal(want.LastUsedAt) || m.StatusAt(minutes(10)) != want.StatusAt(minutes(10)) ||
			!m.ValidTo.Equal(want.ValidTo) || !m.WithdrawnAt.Equal(want.WithdrawnAt) {
			s.Errorf("visited %+v, want %+v", m, want)
		}
		if m.ID == "used" && (m.UseCount != 3 || !m.LastUsedAt.Equal(use.At)) {
			s.Errorf("the use is not counted: %+v", m)
		}
	}
	visited := 0
	for _, user := range []memory.User{{Namespace: "elsewhere", ID: "ann"}, {Namespace: ann.Namespace, ID: "stranger"}} {
		if err := s.sweep.Evictable(s.Context(), user, func(*memory.Memory) { visited++ }); err != nil || visited != 0 {
			s.Errorf("%v: %d are visited, %v", user, visited, err)
		}
	}
}

// testEvict: Memories are deleted in the given order, except explicit ones, until only so many are left as are kept.
func testEvict(s *sweepSuite) {
	for _, id := range []string{"a", "b", "c", "d"} {
		s.restore(ann, id, nil)
		s.restore(ben, id, nil)
	}
	s.restore(ann, "asked for", explicit)
	for _, test := range []struct {
		keep, want int
		left       string
	}{
		{6, 0, "a asked for b c d"},
		{5, 0, "a asked for b c d"},
		{3, 2, "a asked for b"},
		{3, 0, "a asked for b"},
		{0, 2, "asked for"},
	} {
		n, err := s.sweep.Evict(s.Context(), ann, []string{"unknown", "asked for", "d", "c", "b", "a"}, test.keep)
		if n != test.want || err != nil {
			s.Errorf("keep %d: %d, %v, want %d", test.keep, n, err, test.want)
		}
		if got := s.left(ann); got != test.left {
			s.Errorf("keep %d: %q remain, want %q", test.keep, got, test.left)
		}
	}
	s.wantLeft(ben, "a b c d")
	if n, err := s.sweep.Evict(s.Context(), memory.User{Namespace: "elsewhere", ID: "ann"}, []string{"a"}, 0); n != 0 || err != nil {
		s.Errorf("an unknown user: %d, %v", n, err)
	}
}

// testEvictConcurrently: However many calls evict, exactly as many memories remain as are kept.
func testEvictConcurrently(s *sweepSuite) {
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprint("m", i))
		s.restore(ann, all[i], nil)
	}
	var evicted atomic.Int64
	var sweepers sync.WaitGroup
	for i := range 8 {
		order := slices.Clone(all[i:])
		sweepers.Go(func() {
			n, err := s.sweep.Evict(s.Context(), ann, order, 5)
			if err != nil {
				s.Error(err)
			}
			evicted.Add(int64(n))
		})
	}
	sweepers.Wait()
	if left := len(strings.Fields(s.left(ann))); left != 5 || evicted.Load() != 15 {
		s.Errorf("%d remain and %d were deleted", left, evicted.Load())
	}
}

func (s *sweepSuite) wantFull(least int, want string) {
	s.Helper()
	full, err := s.sweep.Full(s.Context(), least)
	if err != nil {
		s.Fatal(err)
	}
	if got := strings.TrimPrefix(fmt.Sprint(full), "map"); got != want {
		s.Errorf("%d or more: %s, want %s", least, got, want)
	}
}

func testFull(s *sweepSuite) {
	s.wantFull(1, "[]")
	for i, user := range []memory.User{ann, ben, {Namespace: "elsewhere", ID: "ann"}} {
		for j := range 3 - i {
			s.restore(user, fmt.Sprint("m", j), explicit)
		}
		s.restore(user, "not explicit", nil)
	}
	s.wantFull(1, "[elsewhere:1 tenant/site:2]")
	s.wantFull(2, "[tenant/site:2]")
	s.wantFull(3, "[tenant/site:1]")
	s.wantFull(4, "[]")
}

// testCountsFollowChanges: The counts follow when memories are stored, deleted and forgotten.
func testCountsFollowChanges(s *sweepSuite) {
	m := s.add(ann, s.memory("likes green tea"), 1, 0, 0)
	s.add(ann, s.memory("plays the cello"), 0, 1, 0)
	s.wantCrowded(0, "tenant/site/ann 2 0")
	s.wantFull(1, "[]")
	again := s.entry(s.memory("likes green tea"))
	again.Reinforce = true
	if done := s.apply(ann, again)[0]; done.Memory.ID != m.ID {
		s.Fatalf("%+v", done)
	}
	s.wantCrowded(0, "tenant/site/ann 2 0") // the same memory
	s.restore(ann, "asked for", explicit)
	s.wantCrowded(0, "tenant/site/ann 3 1")
	s.wantFull(1, "[tenant/site:1]")
	s.remove(ann, m.ID)
	s.wantCrowded(0, "tenant/site/ann 2 1")
	s.remove(ann, "asked for")
	s.wantCrowded(0, "tenant/site/ann 1 0")
	s.wantFull(1, "[]")
	s.forget(ann)
	s.wantCrowded(0, "")
}

// testOnWrite: The function is called after a write that leaves memories to delete.
func testOnWrite(s *sweepSuite) {
	var calls atomic.Int64
	s.sweep.OnWrite(func() { calls.Add(1) })
	wrote := func(what string, write func()) {
		s.Helper()
		before := calls.Load()
		write()
		if calls.Load() == before {
			s.Errorf("not called after %s", what)
		}
	}
	var m memory.Memory
	wrote("a new memory", func() { m = s.add(ann, s.memory("likes green tea"), 1, 0, 0) })
	wrote("a withdrawal", func() {
		e := s.entry(s.memory("withdraws"))
		e.Withdraws = []string{m.ID}
		s.apply(ann, e)
	})
	s.sweep.OnWrite(func() {})
	before := calls.Load()
	s.add(ann, s.memory("plays the cello"), 1, 0, 0)
	if calls.Load() != before {
		s.Error("a replaced function is called")
	}
}

func (s *sweepSuite) calls() storetest.Calls {
	w := s.sweep
	return storetest.Calls{
		"Ended": func(ctx context.Context) error { _, _, err := w.Ended(ctx, memory.StatusExpired, t0, 1); return err },
		"ResetClock": func(ctx context.Context) error {
			return w.ResetClock(ctx, minutes(100), minutes(100))
		},
		"Drop": func(ctx context.Context) error {
			_, err := w.Drop(ctx, ann, []string{"x"}, memory.StatusExpired, t0)
			return err
		},
		"Crowded":   func(ctx context.Context) error { _, err := w.Crowded(ctx, 1, 1); return err },
		"Evictable": func(ctx context.Context) error { return w.Evictable(ctx, ann, func(*memory.Memory) {}) },
		"Evict":     func(ctx context.Context) error { _, err := w.Evict(ctx, ann, []string{"x"}, 1); return err },
		"Full":      func(ctx context.Context) error { _, err := w.Full(ctx, 1); return err },
	}
}

func testSweepUnavailable(s *sweepSuite) {
	s.restore(ann, "a", nil)
	s.close()
	storetest.CheckUnavailable(s.T, s.calls())
}

func testSweepCancelled(s *sweepSuite) {
	s.restore(ann, "a", nil)
	storetest.CheckCancelled(s.T, s.calls())
	s.wantLeft(ann, "a")
}
