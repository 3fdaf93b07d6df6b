package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// TestQueueDepthsAreCounted: Pending, running and failed jobs are counted over all namespaces, with the oldest of each state. Finished ones are not.
func TestQueueDepthsAreCounted(t *testing.T) {
	ctx := t.Context()
	q := sqlstore.NewQueue(dbtest.Open(t, sqlite.Options{Dir: t.TempDir()}))
	want := func(depths ...queue.Depth) {
		t.Helper()
		got, err := q.Depths(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range depths {
			if i >= len(got) || got[i].State != d.State || got[i].Count != d.Count || got[i].Delayed != d.Delayed || !got[i].Oldest.Equal(d.Oldest) {
				t.Errorf("got %v, want %v", got, depths)
			}
		}
	}
	want(queue.Depth{State: memory.StatePending}, queue.Depth{State: memory.StateRunning}, queue.Depth{State: memory.StateFailed})
	at := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for i := range 6 {
		scope := memory.Scope{Namespace: fmt.Sprint("site", i%2), UserID: fmt.Sprint("u", i)}
		_, err := q.Accept(ctx, queue.Acceptance{
			ID: fmt.Sprint("con_", i), Speakers: []string{scope.UserID}, At: at.Add(time.Duration(i) * time.Hour), MaxPending: 10,
			Delay:    time.Duration(i/5) * 48 * time.Hour,
			Dialogue: memory.Dialogue{Scope: scope, Messages: []memory.Message{{Role: memory.RoleUser, Speaker: scope.UserID, Content: "hi", Time: at}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	jobs, _, err := q.Claim(ctx, at.Add(24*time.Hour), 4)
	if err != nil || len(jobs) != 4 {
		t.Fatal(jobs, err)
	}
	for i, state := range []memory.State{memory.StateRemembered, memory.StateFailed, memory.StateFailed} {
		if err := q.Finish(ctx, jobs[i].Seq, state, memory.Outcome{}, at); err != nil {
			t.Fatal(err)
		}
	}
	want(
		queue.Depth{State: memory.StatePending, Count: 2, Delayed: 1, Oldest: at.Add(4 * time.Hour)},
		queue.Depth{State: memory.StateRunning, Count: 1, Oldest: at.Add(3 * time.Hour)},
		queue.Depth{State: memory.StateFailed, Count: 2, Oldest: at.Add(time.Hour)},
	)
}

// TestCommitsAreReported: Every committed write is reported, also if several share a commit. Failed ones are not.
func TestCommitsAreReported(t *testing.T) {
	var mu sync.Mutex
	writes := 0
	dir := t.TempDir()
	s := dbtest.Open(t, sqlite.Options{Dir: dir, OnCommit: func(n int, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		writes += n
		if n < 1 || took <= 0 {
			t.Errorf("%d writes in %s", n, took)
		}
	}})
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return writes
	}
	before := count()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := s.Write(t.Context(), func(tx sqldb.Tx) error {
				_, err := tx.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS some (x)")
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := count() - before; got != 50 {
		t.Errorf("%d writes are reported, want 50", got)
	}
	before = count()
	if err := s.Write(t.Context(), func(sqldb.Tx) error { return os.ErrInvalid }); err == nil {
		t.Error("a write that fails does not")
	}
	if got := count() - before; got != 0 {
		t.Errorf("a failed write is reported as %d", got)
	}
	database, log := s.Sizes()
	if info, err := os.Stat(filepath.Join(dir, "memsidecar.db")); err != nil || database != info.Size() || database == 0 || log == 0 {
		t.Errorf("sizes are %d and %d, %v", database, log, err)
	}
}
