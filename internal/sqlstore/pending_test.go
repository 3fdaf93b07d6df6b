package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
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

// TestPendingIsCountedWhileItChanges: After a start on a database with many pending dialogues the count is exact, although dialogues are
// accepted and considered while it is made. Rolled back changes do not count.
func TestPendingIsCountedWhileItChanges(t *testing.T) {
	dir := t.TempDir()
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	const before = 5000
	accept(t, sqlstore.NewQueue(s), "early", before)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = dbtest.Open(t, sqlite.Options{Dir: dir})
	jobs := sqlstore.NewQueue(&undoingDB{Access: s, next: 1})
	if _, _, err := jobs.Claim(t.Context(), time.Now(), 0); !errors.Is(err, errUndone) {
		t.Fatal(err)
	}
	var busy sync.WaitGroup
	for part := range 4 {
		busy.Go(func() { accept(t, jobs, fmt.Sprint("late", part, "-"), 250) })
	}
	busy.Go(func() {
		for range 20 {
			claimed, _, err := jobs.Claim(t.Context(), time.Now(), 25)
			if err != nil {
				t.Error(err)
			}
			for i, job := range claimed {
				state := memory.StateRemembered
				if i%2 == 0 {
					state = memory.StateFailed
				}
				if err := jobs.Finish(t.Context(), job.Seq, state, memory.Outcome{}, time.Now()); err != nil {
					t.Error(err)
				}
				if i%4 != 0 {
					continue
				}
				_, err := jobs.Retry(t.Context(), job.User(), job.Consideration.ID, memory.Everything(), time.Now())
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	busy.Wait()
	refused := queue.Acceptance{MaxPendingTotal: 1, MaxPending: 10}
	scope := memory.Scope{Namespace: "n", UserID: "too many"}
	refused.ID, refused.Speakers, refused.Dialogue.Scope, refused.At = "con_refused", []string{scope.UserID}, scope, time.Now()
	if _, err := jobs.Accept(t.Context(), refused); err == nil {
		t.Error("it is accepted although too much is pending")
	}
	wantCounted(t, s, jobs)
	if n := jobs.Pending().Considerations; n < before {
		t.Errorf("%d are pending, want at least %d", n, before)
	}
}

// wantCounted compares the queue's count with the rows.
func wantCounted(t *testing.T, db sqldb.Access, jobs *sqlstore.Queue) {
	t.Helper()
	want := sqlstore.Pending{
		Considerations: dbtest.Value[int64](t, db, `SELECT count(*) FROM considerations WHERE state IN ('pending', 'running')`),
		Bytes: dbtest.Value[int64](t, db, `SELECT coalesce(sum(octet_length(messages)), 0) FROM dialogues WHERE row IN
			(SELECT dialogue_row FROM considerations WHERE state IN ('pending', 'running'))`), Counted: true,
	}
	if got := jobs.Pending(); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// accept stores dialogues, each of another user, in shared commits.
func accept(t *testing.T, jobs *sqlstore.Queue, name string, count int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			user := fmt.Sprint(name, i)
			_, err := jobs.Accept(context.WithoutCancel(t.Context()), queue.Acceptance{
				ID: "con_" + user, Speakers: []string{user}, At: time.Now(), MaxPending: 10, Dialogue: memory.Dialogue{
					Scope:    memory.Scope{Namespace: "n", UserID: user},
					Messages: []memory.Message{{Role: memory.RoleUser, Speaker: user, Content: user, Time: time.Now()}},
				},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
