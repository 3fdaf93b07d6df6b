package queuetest

import (
	"errors"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// postpone claims the only due job and postpones it.
func (s *suite) postpone(want string, by time.Duration) {
	s.Helper()
	job := s.expect(want)[0]
	if err := s.store.Postpone(s.Context(), job.Seq, s.now.Add(by), memory.Outcome{Error: "busy"}, s.now); err != nil {
		s.Fatal(err)
	}
}

// testMakeDue: Jobs due after a time become due now, but only the first of each user.
func testMakeDue(s *suite) {
	a1, a2 := s.add(direct("ann")), s.add(direct("ann"))
	s.postpone("ann "+a1, time.Hour)
	b := s.add(direct("ben"))
	s.postpone("ben "+b, 10*time.Minute)
	e := s.add(direct("eve"))
	running := s.expect("eve " + e)[0]
	makeDue := func(after time.Duration) {
		s.Helper()
		if err := s.store.MakeDue(s.Context(), s.now.Add(after), s.now); err != nil {
			s.Fatal(err)
		}
	}
	makeDue(time.Hour)
	s.expect()
	makeDue(30 * time.Minute)
	if c := s.get(user("ann"), a1); !c.NextAttemptAt.Equal(s.now) || c.Outcome.Error != "busy" || c.Attempts != 1 {
		s.Errorf("made due: %+v", c)
	}
	first := s.expect("ann " + a1)[0]
	makeDue(0)
	second := s.expect("ben " + b)[0]
	makeDue(-time.Hour)
	s.expect()
	s.finish(first, memory.StateRemembered)
	s.finish(second, memory.StateRemembered)
	s.finish(running, memory.StateRemembered)
	s.finish(s.expect("ann " + a2)[0], memory.StateRemembered)
	makeDue(-time.Hour)
	s.expect()
}

// testRetryPending: Retrying a pending job makes the user's first job due and restarts the job's age limit.
func testRetryPending(s *suite) {
	a1, a2 := s.add(direct("ann")), s.add(direct("ann"))
	s.postpone("ann "+a1, 24*time.Hour)
	b := s.add(direct("ben"))
	s.postpone("ben "+b, 24*time.Hour)
	at := s.later(time.Hour)
	elsewhere := memory.VisibilityChannel.AudienceOf(memory.Channel{Kind: memory.ChannelGroup, ID: "elsewhere"})
	if _, err := s.store.Retry(s.Context(), user("ann"), a1, elsewhere, at); !errors.Is(err, memory.ErrNotFound) {
		s.Errorf("retrying from another place: %v", err)
	}
	s.expect()
	c, err := s.store.Retry(s.Context(), user("ann"), a2, memory.Everything(), at)
	if err != nil || c.ID != a2 || c.State != memory.StatePending {
		s.Errorf("retried %+v, %v", c, err)
	}
	first := s.expect("ann " + a1)[0]
	if first.Consideration.Attempts != 2 {
		s.Errorf("the first is %+v", first)
	}
	s.finish(first, memory.StateRemembered)
	second := s.expect("ann " + a2)[0]
	if !second.AcceptedAt.Equal(at) {
		s.Errorf("the age limit of the retried job began at %s, want %s", second.AcceptedAt, at)
	}
	s.finish(second, memory.StateRemembered)
	s.expect() // ben's stays postponed
}

// testAcceptedByClockAhead: The age of a job that was accepted by a clock ahead counts from its first attempt.
func testAcceptedByClockAhead(s *suite) {
	id := s.add(direct("ann"))
	accepted := s.now
	s.now = accepted.Add(-365 * 24 * time.Hour)
	if err := s.store.MakeDue(s.Context(), s.now.Add(time.Hour), s.now); err != nil {
		s.Fatal(err)
	}
	now := s.now
	if job := s.expect("ann " + id)[0]; !job.AcceptedAt.Equal(now) {
		s.Errorf("accepted at %s by a clock that says %s", job.AcceptedAt, now)
	}
}
