package sessiontest

import (
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/session"
)

// dueOf lists the sessions with due work of these kinds.
func (s *suite) dueOf(kinds ...session.DueKind) (list []string) {
	s.Helper()
	due, _, err := s.store.Due(s.Context(), s.now, 100, kinds...)
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range due {
		list = append(list, string(d.Kind)+" "+d.SessionID)
	}
	return list
}

// testMakeDue: Summaries due after a time become due now. Considerations that need more messages or a pause do not.
func testMakeDue(s *suite) {
	s.rules.MemorizeEvery, s.rules.SummarizeAfter = 10, 3
	s.rules.Idle = time.Hour
	s.add(direct("ann", "s1"), many("ann", 5)...)
	if got := s.dueOf(session.DueConsider); len(got) != 0 {
		s.Errorf("to be considered: %q", got)
	}
	if got := s.dueOf(session.DueSummarize); !slices.Equal(got, []string{"summarize s1"}) {
		s.Errorf("to be summarized: %q", got)
	}
	d := session.Due{Namespace: namespace, SessionID: "s1", Kind: session.DueSummarize, At: s.now}
	if err := s.store.Postpone(s.Context(), d, s.now.Add(30*time.Minute)); err != nil {
		s.Fatal(err)
	}
	makeDue := func(after time.Duration) {
		s.Helper()
		if err := s.store.MakeDue(s.Context(), s.now.Add(after), s.now); err != nil {
			s.Fatal(err)
		}
	}
	makeDue(30 * time.Minute)
	if got := s.dueOf(); len(got) != 0 {
		s.Errorf("due is %q", got)
	}
	makeDue(0)
	if got := s.dueOf(); !slices.Equal(got, []string{"summarize s1"}) {
		s.Errorf("made due: %q", got)
	}
}

// testResetClock: A consideration becomes due if its pause began in the future, and not if it began in the past.
func testResetClock(s *suite) {
	s.rules.MemorizeEvery, s.rules.SummarizeAfter = 10, 0
	s.rules.Idle = time.Hour
	s.add(direct("ann", "ahead"), said("ann", "hello"))
	s.now = s.now.Add(-365 * 24 * time.Hour)
	s.add(direct("ben", "right"), said("ben", "hello"))
	if err := s.store.ResetClock(s.Context(), s.now.Add(10*time.Minute), s.now); err != nil {
		s.Fatal(err)
	}
	if got := s.dueOf(); !slices.Equal(got, []string{"consider ahead"}) {
		s.Errorf("due is %q", got)
	}
	s.add(direct("ann", "ahead"), said("ann", "more")) // the pause begins again, by the corrected clock
	s.take(direct("ann", "ahead"))
	s.later(2 * time.Hour)
	if got := s.dueOf(); !slices.Equal(got, []string{"consider right"}) {
		s.Errorf("due is %q", got)
	}
}
