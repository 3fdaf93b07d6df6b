package retention_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
	"github.com/memsidecar/memsidecar/internal/testkit/leftover"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

func TestMain(m *testing.M) { leaks.Main(m) }

//nolint:gochecknoglobals // constants
var (
	ann = memory.User{Namespace: "site", ID: "ann"}
	ben = memory.User{Namespace: "site", ID: "ben"}
)

// system is a store with its sweeper.
type system struct {
	*testing.T
	dir     string
	storage *sqlite.Storage
	store   *storelocal.Store
	sweeper *retention.Sweeper
	log     logstest.Log
	stop    func()
}

// start opens the store in the folder and starts a sweeper with these options.
func start(t *testing.T, dir string, options retention.Options) *system {
	t.Helper()
	s := &system{T: t, dir: dir}
	var err error
	if s.storage, err = sqlite.Open(t.Context(), sqlite.Options{Dir: dir, CheckEvery: 24 * time.Hour, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	s.store = storelocal.New(s.storage, storelocal.Options{IndexBudget: 1 << 20})
	s.sweep(s.store, s.storage, options)
	s.stop = sync.OnceFunc(func() {
		s.sweeper.Stop()
		if err := s.storage.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *system) sweep(store vectorstore.Sweep, purger retention.Purger, options retention.Options) {
	options.Curve, options.Log = retention.NewCurve(nil), s.log.Logger()
	s.sweeper = retention.NewSweeper(store, purger, options)
	s.sweeper.Start()
}

// said returns a memory that was last mentioned now.
func said(id string, change func(*memory.Memory)) vectorstore.Entry {
	at := time.Now()
	m := memory.Memory{
		ID: id, Text: "Text of " + id, Language: "en", Kind: memory.KindFact, Importance: 0.5, Mentions: 1,
		CreatedAt: at, UpdatedAt: at, ObservedAt: at, LastSaidAt: at,
	}
	if change != nil {
		change(&m)
	}
	return vectorstore.Entry{StatementID: "statement of " + id, Memory: m, Reason: "because of " + id}
}

func explicit(m *memory.Memory) { m.Explicit = true }

// old returns a memory that was last mentioned so many days ago.
func old(days int) func(*memory.Memory) {
	return func(m *memory.Memory) { m.LastSaidAt = m.LastSaidAt.Add(-time.Duration(days) * day) }
}

func (s *system) apply(user memory.User, entries ...vectorstore.Entry) {
	s.Helper()
	if _, err := s.store.Apply(s.Context(), user, entries); err != nil {
		s.Fatal(err)
	}
}

// withdraw withdraws memories as a user does who asks to forget them.
func (s *system) withdraw(user memory.User, ids ...string) {
	s.Helper()
	e := said("request to forget "+ids[0], nil)
	e.Withdraws = ids
	s.apply(user, e)
}

// left returns the sorted ids of all of a user's memories, of any status.
func (s *system) left(user memory.User) []string {
	s.Helper()
	page, err := s.store.List(s.Context(), user, vectorstore.ListQuery{
		Filter: vectorstore.Filter{Audience: memory.Everything(), Statuses: memory.Statuses()}, Limit: 100_000,
	})
	if err != nil {
		s.Fatal(err)
	}
	ids := []string{}
	for _, m := range page.Memories {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

func (s *system) want(user memory.User, ids ...string) {
	s.Helper()
	if got := s.left(user); !slices.Equal(got, ids) {
		s.Errorf("%s has %v, want %v", user.ID, got, ids)
	}
}

// settle waits until the sweeper has done all due work, and advances the clock.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestWithdrawnMemoryIsPurgedAfterItsGracePeriod: A withdrawn memory can be restored during its grace period. After it no byte of the
// memory is on the disk.
func TestWithdrawnMemoryIsPurgedAfterItsGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mark = "Zyxwvutsrq" // a word that occurs nowhere else
		s := start(t, t.TempDir(), retention.Options{WithdrawnGrace: day})
		s.apply(ann, said("a", func(m *memory.Memory) { m.Text, m.Provenance.Quote = "Loves "+mark, "I love "+mark }), said("b", nil), said("c", nil))
		s.apply(ben, said("a", nil))
		kind, text := memory.KindPreference, "Loves "+mark+" dearly"
		if _, err := s.store.Update(t.Context(), ann, "a", memory.Everything(), vectorstore.Patch{Kind: &kind, Text: &text, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		taken := said("d", nil)
		taken.Supersedes, taken.Reason = []string{"c"}, "not "+mark+" any more"
		s.apply(ann, taken)
		s.withdraw(ann, "a", "b", "d")
		settle(90 * time.Minute)
		if _, _, err := s.store.Revert(t.Context(), ann, "b", "", memory.Everything(), time.Now()); err != nil {
			t.Fatal(err)
		}
		settle(22 * time.Hour)
		if s.want(ann, "a", "b", "c", "d"); leftover.In(t, s.dir, mark) == nil {
			t.Fatal("the word was never on the disk: this test shows nothing")
		}
		settle(30*time.Minute + time.Second)
		s.want(ann, "b", "c")
		s.want(ben, "a")
		if names := leftover.In(t, s.dir, mark+" dearly"); names != nil {
			t.Errorf("the word is still in %v", names)
		}
		if names := leftover.In(t, s.dir, mark); names != nil {
			t.Errorf("part of the memory is still in %v", names)
		}
	})
}

// TestWithdrawnMemoryIsDeletedImmediatelyWithoutGracePeriod: Without a grace period a withdrawn memory is deleted immediately.
func TestWithdrawnMemoryIsDeletedImmediatelyWithoutGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, t.TempDir(), retention.Options{})
		s.apply(ann, said("a", nil), said("b", nil))
		s.withdraw(ann, "a")
		settle(time.Second)
		s.want(ann, "b")
	})
}

// TestEndedIsKept: Ended and superseded memories are kept forever, or as long as configured.
func TestEndedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fill := func(s *system) {
			s.apply(ann, said("dentist", func(m *memory.Memory) { m.Kind, m.ValidTo = memory.KindAppointment, m.ObservedAt.Add(4*day) }), said("lives in Rome", nil))
			settle(10 * day)
			moved := said("lives in Oslo", nil)
			moved.Supersedes = []string{"lives in Rome"}
			s.apply(ann, moved)
		}
		forever := start(t, t.TempDir(), retention.Options{})
		fill(forever)
		settle(200 * day)
		forever.want(ann, "dentist", "lives in Oslo", "lives in Rome")

		s := start(t, t.TempDir(), retention.Options{ExpiredKeep: 30 * day, HistoryKeep: 60 * day})
		fill(s) // the dentist on day 4, the move on day 10
		settle(23 * day)
		s.want(ann, "dentist", "lives in Oslo", "lives in Rome")
		settle(2 * day)
		s.want(ann, "lives in Oslo", "lives in Rome")
		settle(34 * day)
		s.want(ann, "lives in Oslo", "lives in Rome")
		settle(2 * day)
		s.want(ann, "lives in Oslo")
	})
}

// TestLimitEvictsTheLowestScores: Above the limit history is deleted first, then the memories with the lowest scores, and never explicit
// ones.
func TestLimitEvictsTheLowestScores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, t.TempDir(), retention.Options{MaxPerUser: 6, WithdrawnGrace: 1000 * day})
		taken := said("new home", nil)
		taken.Supersedes = []string{"old home"}
		s.apply(ann,
			said("old home", func(m *memory.Memory) { m.Importance, m.Mentions = 1, 50 }), said("hardly matters", func(m *memory.Memory) { m.Importance = 0 }),
			said("asked for long ago", func(m *memory.Memory) { explicit(m); old(5000)(m) }), taken, said("matters", func(m *memory.Memory) { m.Importance = 0.9 }),
			said("plan of spring", func(m *memory.Memory) { old(200)(m); m.Kind = memory.KindPlan }))
		s.apply(ben, said("x", nil), said("y", nil))
		settle(time.Minute)
		s.want(ann, "asked for long ago", "hardly matters", "matters", "new home", "old home", "plan of spring")

		found := func(word string) bool {
			hits, err := s.store.SearchKeyword(t.Context(), ann, word, vectorstore.Filter{Audience: memory.Everything()}, 10)
			return err == nil && len(hits) > 0
		}
		if !found("hardly") { // this also loads the index
			t.Error("the least important memory is not found")
		}
		s.apply(ann, said("fresh", nil)) // replaces history, whatever its score
		settle(time.Second)
		s.want(ann, "asked for long ago", "fresh", "hardly matters", "matters", "new home", "plan of spring")
		s.apply(ann, said("fresh too", nil))
		settle(time.Second)
		s.want(ann, "asked for long ago", "fresh", "fresh too", "hardly matters", "matters", "new home")
		s.apply(ann, said("fresh as well", nil))
		settle(time.Second)
		s.want(ann, "asked for long ago", "fresh", "fresh as well", "fresh too", "matters", "new home")
		s.want(ben, "x", "y")

		if found("hardly") {
			t.Error("an evicted memory is found")
		}
		s.apply(ann, said("hardly matters", nil)) // applying the same operation again does not restore it
		settle(time.Second)
		s.want(ann, "asked for long ago", "fresh", "fresh as well", "fresh too", "matters", "new home")
	})
}

// TestExplicitMemoriesAreNotEvicted: Explicit memories are not evicted. The log and the metric report users that have reached the limit
// with them.
func TestExplicitMemoriesAreNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, t.TempDir(), retention.Options{MaxPerUser: 3})
		var want []string
		for i := range 5 {
			want = append(want, fmt.Sprintf("asked for %d", i))
			s.apply(ann, said(want[i], explicit))
		}
		s.apply(ann, said("overheard", nil))
		s.apply(ben, said("x", explicit), said("y", nil))
		settle(time.Hour)
		s.want(ann, want...)
		s.want(ben, "x", "y")
		for namespace, want := range map[string]int64{"site": 1, "elsewhere": 0} {
			if n, err := s.sweeper.Full(t.Context(), namespace); n != want || err != nil {
				t.Errorf("namespace %s has %d full users, %v", namespace, n, err)
			}
		}
		if n := len(s.log.About("explicit memories up to the limit")); n != 1 {
			t.Errorf("it was logged %d times", n)
		}
		if err := s.store.Delete(t.Context(), ann, want[0], memory.Everything()); err != nil {
			t.Fatal(err)
		}
		reinforced := said("x2", explicit)
		reinforced.Memory.Text, reinforced.Reinforce = "Text of y", true // becomes explicit
		s.apply(ben, reinforced)
		for _, id := range want[1:4] {
			if err := s.store.Delete(t.Context(), ann, id, memory.Everything()); err != nil {
				t.Fatal(err)
			}
		}
		s.apply(ann, said("overheard again", nil))
		s.apply(ben, said("z", nil), said("z2", nil))
		settle(time.Hour)
		s.want(ann, "asked for 4", "overheard again")
		if got := s.left(ben); len(got) != 3 || !slices.Contains(got, "x") || !slices.Contains(got, "y") {
			t.Errorf("ben has %v", got)
		}
	})
}

// interrupted deletes as the store does until its calls are used up. Then it fails, as if the process had died.
type interrupted struct {
	vectorstore.Sweep
	left int
}

var errKilled = errors.New("killed")

func (i *interrupted) Evict(ctx context.Context, user memory.User, ids []string, keep int) (int, error) {
	if i.left--; i.left < 0 {
		return 0, errKilled
	}
	return i.Sweep.Evict(ctx, user, ids, keep)
}

// TestLoweredLimitDeletesInSteps: After the limit was lowered far, memories are deleted in steps. A kill between them deletes nothing else.
func TestLoweredLimitDeletesInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := start(t, dir, retention.Options{})
		var entries []vectorstore.Entry
		for i := range 500 {
			entries = append(entries, said(fmt.Sprintf("m%03d", i), old(500-i)))
		}
		s.apply(ann, entries...)
		settle(time.Minute)
		if n := len(s.left(ann)); n != 500 {
			t.Fatalf("without a limit %d remain", n)
		}
		s.sweeper.Stop()
		s.sweep(&interrupted{s.store, 2}, s.storage, retention.Options{MaxPerUser: 100})
		settle(100 * time.Millisecond)
		if n := len(s.left(ann)); n != 300 {
			t.Fatalf("after two steps %d remain", n)
		}
		s.stop()

		s = start(t, dir, retention.Options{MaxPerUser: 100})
		settle(time.Minute)
		// Some room is made in advance, so that the next memories need not each evict one.
		if got := s.left(ann); len(got) != 98 || got[0] != "m402" || got[97] != "m499" {
			t.Errorf("%d remain, %s to %s", len(got), got[0], got[len(got)-1])
		}
	})
}

// dying is a purger that copies the folder, as a kill before the purge would leave it.
type dying struct {
	dir, copy string
	t         *testing.T
}

func (d *dying) Purge(context.Context) (bool, error) {
	for _, name := range []string{"memsidecar.db", "memsidecar.db-wal"} {
		data, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil {
			d.t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(d.copy, name), data, 0o600); err != nil {
			d.t.Error(err)
		}
	}
	return true, nil
}

// TestPurgeIsCompletedAfterAKill: If the process dies between deletion and purge, the next one purges at its start.
func TestPurgeIsCompletedAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, t.TempDir(), retention.Options{})
		s.sweeper.Stop()
		crashed := t.TempDir()
		s.sweep(s.store, &dying{s.dir, crashed, t}, retention.Options{})
		s.apply(ann, said("a", nil), said("b", nil))
		s.withdraw(ann, "a")
		settle(time.Second)
		if leftover.In(t, crashed, "Text of a") == nil {
			t.Fatal("the word was gone before the kill: this test shows nothing")
		}
		s = start(t, crashed, retention.Options{})
		settle(time.Second)
		s.want(ann, "b")
		if names := leftover.In(t, crashed, "Text of a"); names != nil {
			t.Errorf("the word is still in %v", names)
		}
	})
}

// outage is a store that is unavailable for a time.
type outage struct {
	vectorstore.Sweep
	mu    sync.Mutex
	back  bool
	asked int
}

func (a *outage) Ended(ctx context.Context, how memory.Status, before time.Time, limit int) ([]vectorstore.MemoryRef, time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked++; !a.back {
		return nil, time.Time{}, memory.ErrUnavailable
	}
	return a.Sweep.Ended(ctx, how, before, limit)
}

// TestSweeperSurvivesStorageOutage: During a storage outage the sweeper retries periodically and logs nothing. After it the sweeper
// continues.
func TestSweeperSurvivesStorageOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, t.TempDir(), retention.Options{})
		s.sweeper.Stop()
		a := &outage{Sweep: s.store}
		s.sweep(a, s.storage, retention.Options{})
		s.apply(ann, said("a", nil), said("b", nil))
		s.withdraw(ann, "a")
		settle(time.Minute)
		s.want(ann, "a", "b")
		a.mu.Lock()
		if a.back = true; a.asked > 20 {
			t.Errorf("asked %d times in a minute", a.asked)
		}
		a.mu.Unlock()
		s.sweeper.Wake()
		settle(time.Second)
		s.want(ann, "b")
		if n := len(s.log.About("level=ERROR")); n != 0 {
			t.Errorf("%d errors were logged", n)
		}
	})
}
