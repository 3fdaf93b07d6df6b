package queuetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// testOrder: A user's jobs are claimed one at a time and in order, those of different users simultaneously.
func testOrder(s *suite) {
	a1, a2 := s.add(direct("ann")), s.add(direct("ann"))
	both := s.add(lobby("ben"), "ann")
	b2 := s.add(direct("ben"))
	elsewhere := s.add(memory.Scope{Namespace: "elsewhere", UserID: "ann"}) // another user
	jobs := s.expect("ann "+a1, "ben "+both, "ann "+elsewhere)
	s.expect()
	s.later(time.Hour)
	s.expect()
	s.finish(jobs[0], memory.StateSkipped)
	s.finish(jobs[1], memory.StateFailed)
	jobs = s.expect("ann "+a2, "ben "+b2)
	s.finish(jobs[0], memory.StateRemembered)
	s.expect("ann " + both)
}

func testClaimLimit(s *suite) {
	if jobs, next := s.claim(10); len(jobs) != 0 || !next.IsZero() {
		s.Fatalf("an empty queue gave %v, %s", names(jobs), next)
	}
	early := t0.Add(-time.Hour)
	if jobs, next, err := s.store.Claim(s.Context(), early, 10); err != nil || len(jobs) != 0 || !next.IsZero() {
		s.Fatal(names(jobs), next, err)
	}
	a, b, c := s.add(direct("ann")), s.add(direct("ben")), s.add(direct("eve"))
	if jobs, next, err := s.store.Claim(s.Context(), early, 10); err != nil || len(jobs) != 0 || !next.Equal(t0) {
		s.Fatalf("before anything is due: %v, next %s, %v", names(jobs), next, err)
	}
	jobs, next := s.claim(2)
	if got := names(jobs); !slices.Equal(got, []string{"ann " + a, "ben " + b}) {
		s.Errorf("claimed %q", got)
	}
	if next.IsZero() || next.After(s.now) {
		s.Errorf("another job is due already, but next is %s", next)
	}
	s.expect("eve " + c)
	if _, next := s.claim(2); !next.IsZero() {
		s.Errorf("no job is postponed, but next is %s", next)
	}
}

func testClaimOnce(s *suite) {
	const jobs = 12
	for i := range jobs {
		s.add(direct(fmt.Sprint("user", i)))
	}
	var mu sync.Mutex
	claims := map[int64]int{}
	var tasks sync.WaitGroup
	for range 4 {
		tasks.Go(func() {
			for range jobs {
				claimed, _, err := s.store.Claim(s.Context(), s.now, 1)
				if err != nil {
					s.Error(err)
				}
				mu.Lock()
				for _, job := range claimed {
					claims[job.Seq]++
				}
				mu.Unlock()
			}
		})
	}
	tasks.Wait()
	if len(claims) != jobs {
		s.Errorf("%d of %d jobs were claimed", len(claims), jobs)
	}
	for seq, n := range claims {
		if n != 1 {
			s.Errorf("job %d was claimed %d times", seq, n)
		}
	}
}

func testFinish(s *suite) {
	for i, state := range []memory.State{memory.StateRemembered, memory.StateSkipped, memory.StateFailed} {
		id := s.add(direct("ann"))
		job := s.expect("ann " + id)[0]
		outcome := memory.Outcome{
			Reason: "因为 she said so", Error: fmt.Sprint("number ", i), DecidedBy: "rules",
			Changes: []memory.MemoryChange{{MemoryID: "mem_1", Action: memory.ActionAdded, Text: "likes 茶"}},
		}
		at := s.later(time.Minute)
		if err := s.store.Finish(s.Context(), job.Seq, state, outcome, at); err != nil {
			s.Fatal(err)
		}
		c := s.get(user("ann"), id)
		if c.State != state || !reflect.DeepEqual(c.Outcome, outcome) || !c.UpdatedAt.Equal(at) || c.CreatedAt.Equal(at) ||
			c.Attempts != 1 || !c.NextAttemptAt.IsZero() {
			s.Errorf("got %+v", c)
		}
	}
	s.expect()
}

func testPostpone(s *suite) {
	a1, a2 := s.add(direct("ann")), s.add(direct("ann"))
	job := s.expect("ann " + a1)[0]
	due := s.now.Add(10 * time.Minute)
	if err := s.store.Postpone(s.Context(), job.Seq, due, memory.Outcome{Error: "busy"}, s.now); err != nil {
		s.Fatal(err)
	}
	c := s.get(user("ann"), a1)
	if c.State != memory.StatePending || c.Outcome.Error != "busy" || !c.NextAttemptAt.Equal(due) || !c.UpdatedAt.Equal(s.now) || c.Attempts != 1 {
		s.Errorf("got %+v", c)
	}
	b := s.add(direct("ben"))
	s.expect("ben " + b) // it blocks only its own user's jobs
	if jobs, next := s.claim(10); len(jobs) != 0 || !next.Equal(due) {
		s.Errorf("claimed %q, next %s, want none until %s", names(jobs), next, due)
	}
	s.now = due.Add(-time.Microsecond)
	s.expect()
	s.now = due
	job = s.expect("ann " + a1)[0]
	if job.Consideration.Attempts != 2 || !job.AcceptedAt.Equal(t0) {
		s.Errorf("the second attempt is %+v", job)
	}
	s.finish(job, memory.StateRemembered)
	s.expect("ann " + a2)
}

func testCheckpoint(s *suite) {
	id := s.add(direct("ann"))
	job := s.expect("ann " + id)[0]
	for _, data := range []string{`{"first":1}`, `{"text":"茶 \u0000"}`} { // the last one is kept
		if err := s.store.Checkpoint(s.Context(), job.Seq, []byte(data)); err != nil {
			s.Fatal(err)
		}
	}
	holds := func(job queue.Job, want string) {
		s.Helper()
		if string(job.Checkpoint) != want {
			s.Errorf("the checkpoint is %q, want %q", job.Checkpoint, want)
		}
	}
	if err := s.store.Postpone(s.Context(), job.Seq, s.now, memory.Outcome{}, s.now); err != nil {
		s.Fatal(err)
	}
	job = s.expect("ann " + id)[0]
	holds(job, `{"text":"茶 \u0000"}`)
	if err := s.store.Recover(s.Context(), nil, s.now); err != nil {
		s.Fatal(err)
	}
	job = s.expect("ann " + id)[0]
	holds(job, `{"text":"茶 \u0000"}`)
	s.finish(job, memory.StateFailed)
	if _, err := s.store.Retry(s.Context(), user("ann"), id, memory.Everything(), s.now); err != nil {
		s.Fatal(err)
	}
	job = s.expect("ann " + id)[0]
	holds(job, `{"text":"茶 \u0000"}`) // a retry continues from there
	s.finish(job, memory.StateRemembered)
	holds(s.all(user("ann"))[0], "")
}

func testRecover(s *suite) {
	a1, a2 := s.add(direct("ann")), s.add(direct("ann"))
	b, e := s.add(direct("ben")), s.add(direct("eve"))
	jobs := s.expect("ann "+a1, "ben "+b, "eve "+e)
	s.finish(jobs[2], memory.StateRemembered)
	at := s.later(time.Minute)
	if err := s.store.Recover(s.Context(), []int64{jobs[1].Seq}, at); err != nil {
		s.Fatal(err)
	}
	if c := s.get(user("ann"), a1); c.State != memory.StatePending || !c.NextAttemptAt.Equal(at) {
		s.Errorf("recovered %+v", c)
	}
	again := s.expect("ann " + a1)
	if again[0].Consideration.Attempts != 2 || again[0].Seq != jobs[0].Seq {
		s.Errorf("claimed %+v", again[0])
	}
	if c := s.get(user("ben"), b); c.State != memory.StateRunning {
		s.Errorf("a job that runs in this process became %s", c.State)
	}
	s.finish(again[0], memory.StateRemembered)
	s.finish(jobs[1], memory.StateRemembered)
	s.expect("ann " + a2)
}

func testRetry(s *suite) {
	id := s.add(lobby("ann"), "ben")
	ann := s.expect("ann "+id, "ben "+id)[0]
	everything := memory.Everything()
	retry := func(u memory.User, audience memory.Audience) error {
		_, err := s.store.Retry(s.Context(), u, id, audience, s.now)
		return err
	}
	if err := retry(user("ann"), everything); err != nil || s.get(user("ann"), id).State != memory.StateRunning {
		s.Errorf("retrying a running one: %v, %+v", err, s.get(user("ann"), id))
	}
	s.finish(ann, memory.StateFailed)
	inside := memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"})
	elsewhere := memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "elsewhere"})
	for name, err := range map[string]error{
		"another group":     retry(user("ann"), elsewhere),
		"no audience":       retry(user("ann"), memory.Audience{}),
		"another person":    retry(user("eve"), everything),
		"another namespace": retry(memory.User{Namespace: "elsewhere", ID: "ann"}, everything),
	} {
		if !errors.Is(err, memory.ErrNotFound) {
			s.Errorf("retrying from %s: %v", name, err)
		}
	}
	if err := retry(user("ben"), everything); err != nil || s.get(user("ann"), id).State != memory.StateFailed {
		s.Errorf("retrying another speaker's running job: %v", err)
	}
	s.expect()

	at := s.later(time.Hour)
	c, err := s.store.Retry(s.Context(), user("ann"), id, inside, at)
	if err != nil || c.State != memory.StatePending || c.Attempts != 0 || !c.UpdatedAt.Equal(at) || !c.NextAttemptAt.Equal(at) {
		s.Errorf("retried %+v, %v", c, err)
	}
	if got := s.get(user("ann"), id); !reflect.DeepEqual(got, c) {
		s.Errorf("got %+v, want %+v", got, c)
	}
	if err := retry(user("ann"), everything); err != nil {
		s.Errorf("retrying a pending one: %v", err)
	}
	job := s.expect("ann " + id)[0]
	if !job.AcceptedAt.Equal(at) || job.Consideration.Attempts != 1 {
		s.Errorf("claimed %+v", job)
	}
	s.finish(job, memory.StateRemembered)
	if err := retry(user("ann"), everything); !errors.Is(err, memory.ErrPrecondition) {
		s.Errorf("retrying a remembered one: %v", err)
	}
}

// testRetryKeepsItsPlace: A retried job comes after the one that is due or running, and before all later ones.
func testRetryKeepsItsPlace(s *suite) {
	retry := func(id string) {
		s.Helper()
		if _, err := s.store.Retry(s.Context(), user("ann"), id, memory.Everything(), s.now); err != nil {
			s.Fatal(err)
		}
	}
	a1, a2, a3, a4 := s.add(direct("ann")), s.add(direct("ann")), s.add(direct("ann")), s.add(direct("ann"))
	s.finish(s.expect("ann " + a1)[0], memory.StateFailed)
	s.finish(s.expect("ann " + a2)[0], memory.StateFailed)
	retry(a2) // while the third is due
	job := s.expect("ann " + a3)[0]
	retry(a1) // while the third runs
	s.expect()
	if err := s.store.Postpone(s.Context(), job.Seq, s.now.Add(time.Minute), memory.Outcome{}, s.now); err != nil {
		s.Fatal(err)
	}
	s.expect() // the third one blocks the others
	s.later(time.Minute)
	for _, id := range []string{a3, a1, a2, a4} {
		s.finish(s.expect("ann " + id)[0], memory.StateRemembered)
	}
	s.expect()
}
