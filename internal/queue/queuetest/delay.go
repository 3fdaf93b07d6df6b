package queuetest

import (
	"fmt"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// delayed accepts a dialogue that is held back for two minutes.
func (s *suite) delayed(scope memory.Scope, change ...func(*queue.Acceptance)) memory.Consideration {
	s.Helper()
	a := s.acceptance(scope)
	a.Delay = 2 * time.Minute
	for _, set := range change {
		set(&a)
	}
	return s.accept(a)
}

func hurry(a *queue.Acceptance) { a.Delay, a.Hurry = 0, true }

// testDelay: what is held back in a conversation is due when nothing was added for the delay, or after five delays, and ends for the whole
// line when something hurries.
func testDelay(s *suite) {
	a1 := s.delayed(direct("ann"))
	due := s.now.Add(2*time.Minute - time.Second) // accepted a second before the clock of the suite
	if a1.NextAttemptAt.IsZero() || a1.NextAttemptAt.Before(due) {
		s.Fatalf("next attempt at %s, want %s", a1.NextAttemptAt, due)
	}
	s.later(time.Minute)
	a2 := s.delayed(direct("ann"))
	due = a2.CreatedAt.Add(2 * time.Minute)
	if _, next := s.claim(10); !next.Equal(due) {
		s.Fatalf("next %s, want %s", next, due)
	}
	if err := s.store.MakeDue(s.Context(), s.now, s.now); err != nil { // a model recovered
		s.Fatal(err)
	}
	s.expect()
	s.now = due
	s.finish(s.expect("ann " + a1.ID)[0], memory.StateSkipped)
	s.finish(s.expect("ann " + a2.ID)[0], memory.StateSkipped) // due with the first

	b1 := s.delayed(direct("ben"))
	group := s.delayed(lobby("ben"))
	s.finish(s.hurried("ben", b1.ID), memory.StateSkipped)
	s.finish(s.expect("ben " + group.ID)[0], memory.StateSkipped)
	s.finish(s.expect("ben con_5")[0], memory.StateSkipped) // the one that hurried

	e := s.delayed(direct("eve"))
	s.expect()
	if _, err := s.store.Retry(s.Context(), user("eve"), e.ID, memory.Everything(), s.now); err != nil {
		s.Fatal(err)
	}
	s.expect("eve " + e.ID)

	ahead := s.delayed(direct("fay"))
	s.now = s.now.Add(-24 * time.Hour) // the clock was ahead
	if err := s.store.MakeDue(s.Context(), s.now.Add(5*time.Minute), s.now); err != nil {
		s.Fatal(err)
	}
	s.expect("fay " + ahead.ID)

	first := s.delayed(direct("dan"))
	for range 7 {
		s.delayed(direct("dan"))
		s.expect()
		s.later(90 * time.Second)
	}
	if end := first.CreatedAt.Add(queue.MaxDelays * 2 * time.Minute); s.now.Before(end) {
		s.Fatalf("the clock is at %s, want %s or later", s.now, end)
	}
	s.finish(s.expect("dan " + first.ID)[0], memory.StateSkipped) // although messages come all the time
}

// hurried accepts a dialogue that hurries and returns the first job of the line.
func (s *suite) hurried(id, first string) queue.Job {
	s.Helper()
	s.expect()
	s.delayed(direct(id), hurry)
	return s.expect(id + " " + first)[0]
}

// testDelayMessages: enough messages of people end the delay.
func testDelayMessages(s *suite) {
	three := func(a *queue.Acceptance) { a.DelayMessages = 3 }
	first := s.delayed(direct("ann"), three)
	s.delayed(direct("ann"), three)
	s.expect()
	s.delayed(direct("ann"), three)
	s.expect("ann " + first.ID)
	one := s.delayed(direct("ben"), func(a *queue.Acceptance) { a.DelayMessages = 1 })
	if !one.NextAttemptAt.Equal(one.CreatedAt) {
		s.Errorf("next attempt at %s, want %s", one.NextAttemptAt, one.CreatedAt)
	}
}

// testFollowing: the jobs of a conversation that follow without a gap can be planned with the first, and are due right after it.
func testFollowing(s *suite) {
	first := s.delayed(direct("ann"))
	second, third := s.delayed(direct("ann")), s.delayed(direct("ann"))
	s.delayed(lobby("ann"))
	s.delayed(direct("ann"))
	s.delayed(direct("ben"))
	s.later(time.Hour)
	job := s.expect("ann "+first.ID, "ben con_6")[0]
	following := func(limit int, want ...string) []queue.Job {
		s.Helper()
		jobs, err := s.store.Following(s.Context(), job.Seq, limit)
		if got := names(jobs); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			s.Fatalf("following: %q, %v, want %q", got, err, want)
		}
		return jobs
	}
	following(1, "ann "+second.ID)
	jobs := following(10, "ann "+second.ID, "ann "+third.ID)
	s.expect() // they stay where they are
	plans := map[int64][]byte{job.Seq: []byte(`{"plan":0}`), jobs[0].Seq: []byte(`{"plan":1}`), jobs[1].Seq: []byte(`{"plan":2}`)}
	if err := s.store.CheckpointAll(s.Context(), plans); err != nil {
		s.Fatal(err)
	}
	following(10) // a job that is planned is not planned again
	s.finish(job, memory.StateSkipped)
	for i, want := range []string{second.ID, third.ID} {
		next := s.expect("ann " + want)[0]
		if got := string(next.Checkpoint); got != fmt.Sprintf(`{"plan":%d}`, i+1) {
			s.Errorf("the checkpoint is %s", got)
		}
		s.finish(next, memory.StateRemembered)
	}
}

// testSameDialogues: the other speakers' jobs of dialogues are found if it is their turn.
func testSameDialogues(s *suite) {
	s.add(lobby("zoe"))
	first := s.add(lobby("ann"), "ben", "zoe", "eve")
	second := s.add(lobby("ann"), "ben", "eve")
	s.add(direct("ben"))
	jobs := s.all(user("ann"))
	seqs := []int64{jobs[0].Seq, jobs[1].Seq}
	lines := func(want ...string) {
		s.Helper()
		found, err := s.store.SameDialogues(s.Context(), seqs)
		var got []string
		for _, line := range found {
			got = append(got, names(line)...)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			s.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
	lines("ben "+first, "ben "+second, "eve "+first, "eve "+second) // zoe has an older one
	eve := s.all(user("eve"))[0]
	if err := s.store.Checkpoint(s.Context(), eve.Seq, []byte("{}")); err != nil {
		s.Fatal(err)
	}
	for seq, want := range map[int64]string{eve.Seq: "{}", seqs[0]: ""} {
		if got, err := s.store.ReadCheckpoint(s.Context(), seq); err != nil || string(got) != want {
			s.Errorf("the checkpoint is %q, %v, want %q", got, err, want)
		}
	}
	lines("ben "+first, "ben "+second)
	for _, job := range s.expect("zoe con_1", "ann "+first, "ben "+first, "eve "+first) {
		if job.User().ID == "zoe" {
			s.finish(job, memory.StateSkipped)
		}
	}
	seqs = seqs[:1]
	lines("ben "+first, "zoe "+first) // running ones too
}
