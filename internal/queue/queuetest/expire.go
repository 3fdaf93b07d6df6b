package queuetest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

func (s *suite) expire(e queue.Expiry) int64 {
	s.Helper()
	deleted, err := s.store.Expire(s.Context(), e)
	if err != nil {
		s.Fatal(err)
	}
	return deleted
}

// ended adds a consideration for Ann and finishes it with the state.
func (s *suite) ended(state memory.State) (id string) {
	s.Helper()
	id = s.add(direct("ann"))
	jobs, _ := s.claim(1)
	s.finish(jobs[0], state)
	return id
}

// testExpire: Remembered and skipped considerations are deleted after a time, failed ones after another, pending ones never. A group's
// dialogue is kept until all its considerations can be deleted.
func testExpire(s *suite) {
	done, skipped, broken := s.ended(memory.StateRemembered), s.ended(memory.StateSkipped), s.ended(memory.StateFailed)
	a := s.acceptance(lobby("ben"), "eve")
	a.RequestID, a.PayloadHash = "r1", []byte{1}
	shared := s.accept(a).ID
	for range 2 {
		jobs, _ := s.claim(1)
		state := memory.StateRemembered
		if jobs[0].Consideration.Scope.UserID == "eve" {
			state = memory.StateFailed
		}
		s.finish(jobs[0], state)
	}
	s.later(time.Hour)
	late := s.ended(memory.StateRemembered)
	waits := s.add(direct("ann"))
	left := func() string {
		s.Helper()
		var list []string
		for _, u := range []string{"ann", "ben", "eve"} {
			list = append(list, names(s.all(user(u)))...)
		}
		return strings.Join(list, ", ")
	}
	all := left()
	old := s.now.Add(-time.Minute)
	if n := s.expire(queue.Expiry{Limit: 10}); n != 0 || left() != all {
		s.Errorf("without a time %d were deleted, %s remain", n, left())
	}
	if n := s.expire(queue.Expiry{EndedBefore: old, Limit: 1}); n != 1 {
		s.Errorf("%d were deleted, want the limit", n)
	}
	if n := s.expire(queue.Expiry{EndedBefore: old, Limit: 10}); n != 1 {
		s.Errorf("%d were deleted, want 1", n)
	}
	for _, id := range []string{done, skipped} {
		if _, err := s.store.Get(s.Context(), user("ann"), id, memory.Everything()); !errors.Is(err, memory.ErrNotFound) {
			s.Errorf("%s: %v", id, err)
		}
	}
	s.get(user("ann"), broken)
	s.get(user("ben"), shared) // eve's can still be retried
	if n := s.expire(queue.Expiry{EndedBefore: old, FailedBefore: old, Limit: 10}); n != 2 {
		s.Errorf("%d were deleted with failed ones, want 2", n)
	}
	s.get(user("ann"), late)
	s.get(user("ann"), waits)
	if got := s.expire(queue.Expiry{EndedBefore: old, FailedBefore: old, Limit: 10}); got != 0 {
		s.Errorf("%d more were deleted", got)
	}
	again := a
	again.ID, again.PayloadHash = "con_again", []byte{2}
	if c := s.accept(again); c.ID != again.ID {
		s.Errorf("the request id still belongs to %s", c.ID)
	}
}

// testForgetQuotes: The outcomes of other users' considerations may quote the forgotten user.
func testForgetQuotes(s *suite) {
	id := s.accept(s.acceptance(lobby("ann"), "ben")).ID
	for range 2 {
		jobs, _ := s.claim(1)
		outcome := memory.Outcome{Reason: "ben says 1", Changes: []memory.MemoryChange{{MemoryID: "m", Text: "Ann likes tea", Reason: "unlike ben"}}}
		if err := s.store.Finish(s.Context(), jobs[0].Seq, memory.StateRemembered, outcome, s.now); err != nil {
			s.Fatal(err)
		}
	}
	s.forget(user("ben"))
	outcome := s.get(user("ann"), id).Outcome
	text, err := json.Marshal(outcome)
	if err != nil || strings.Contains(string(text), "ben") || len(outcome.Changes) != 1 || outcome.Changes[0].Text != "Ann likes tea" {
		s.Errorf("%s remains, %v", text, err)
	}
	if err := s.store.ForgetMemory(s.Context(), user("ann"), "another"); err != nil {
		s.Error(err)
	}
}
