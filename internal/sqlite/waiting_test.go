package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// TestWaitingIsCounted: what waits is known after a start on a database in which much waits, exactly, although it is counted while
// dialogues come and go; and what is undone does not count.
func TestWaitingIsCounted(t *testing.T) {
	dir := t.TempDir()
	s := open(t, sqlite.Options{Dir: dir})
	const before = 5000
	accept(t, s, "early", before)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, sqlite.Options{Dir: dir})
	jobs := sqlite.NewQueue(s)
	var busy sync.WaitGroup
	for part := range 4 {
		busy.Go(func() { accept(t, s, fmt.Sprint("late", part, "-"), 250) })
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
			}
		}
	})
	busy.Wait()
	refused := queue.Acceptance{MaxPendingTotal: 1, MaxPending: 10}
	for deadline := time.Now().Add(5 * time.Minute); !s.Waiting().Counted; {
		if time.Now().After(deadline) {
			t.Fatal("it is still not counted")
		}
		if err := s.Write(t.Context(), func(*sqlite.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	scope := memory.Scope{Namespace: "n", UserID: "too many"}
	refused.ID, refused.Speakers, refused.Dialogue.Scope, refused.At = "con_refused", []string{scope.UserID}, scope, time.Now()
	if _, err := jobs.Accept(t.Context(), refused); err == nil {
		t.Error("it is accepted although too much waits")
	}
	want := sqlite.Waiting{
		Considerations: int64(value[int](t, s, `SELECT count(*) FROM considerations WHERE state IN ('pending', 'running')`)),
		Bytes: int64(value[int](t, s, `SELECT sum(octet_length(messages)) FROM dialogues WHERE row IN
			(SELECT dialogue_row FROM considerations WHERE state IN ('pending', 'running'))`)), Counted: true,
	}
	if got := s.Waiting(); got != want || got.Considerations < before {
		t.Errorf("%+v wait, want %+v", got, want)
	}
}

// accept stores dialogues, each of a user of its own, sharing commits.
func accept(t *testing.T, s *sqlite.Storage, name string, count int) {
	t.Helper()
	jobs := sqlite.NewQueue(s)
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
