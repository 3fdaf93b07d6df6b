package sessiontest

import (
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// testExclude: Excluded messages and the answers to them are not summarised, and summaries that cover them are deleted, also one in the
// making. Windows and lists have them. Other people's messages cannot be excluded.
func testExclude(s *suite) {
	scope := lobby("ann", "s")
	first := said("ann", "the first")
	secret, other := said("ann", "a secret"), said("bob", "bob's")
	r := s.record(scope, first, answered("an answer"), secret, answered("an echo"), other, answered("another answer"))
	c, _, err := s.store.Record(s.Context(), r)
	if err != nil {
		s.Fatal(err)
	}
	texts := func() (list []string) {
		for _, m := range s.older(scope).Messages {
			list = append(list, m.Content)
		}
		return list
	}
	exclude := func(refs ...string) {
		s.Helper()
		if err := s.store.Exclude(s.Context(), user("ann"), c.ID, refs); err != nil {
			s.Fatal(err)
		}
	}
	before := s.older(scope).Revision
	summary := session.Summary{Text: "early", Last: 2, Messages: 2, MadeBy: "test", At: t0}
	s.save(scope, before, summary)
	exclude(memory.PositionRef(2), memory.PositionRef(4), memory.PositionRef(9), "unknown", "con_unknown#0")
	if got := s.older(scope); len(got.Summaries) != 1 {
		s.Errorf("a summary of earlier messages is gone: %+v", got.Summaries)
	}
	want := []string{"the first", "an answer", "bob's", "another answer"}
	if got := texts(); !slices.Equal(got, want) {
		s.Errorf("to be summarised: %q", got)
	}
	summary.Text, summary.Last = "in the making", 4
	s.save(scope, before, summary)
	if got := s.older(scope).Summaries; len(got) != 1 || got[0].Text != "early" {
		s.Errorf("a summary made of excluded messages was saved: %+v", got)
	}
	revision := s.older(scope).Revision
	s.save(scope, revision, summary)
	exclude(memory.PositionRef(2))
	if got := s.older(scope); got.Revision != revision || len(got.Summaries) != 1 {
		s.Errorf("repeated, it changed the revision from %d to %d", revision, got.Revision)
	}
	exclude(memory.PositionRef(0))
	if got := s.older(scope).Summaries; len(got) != 0 {
		s.Errorf("a summary of an excluded message is left: %+v", got)
	}
	if got := texts(); !slices.Equal(got, want[2:]) {
		s.Errorf("at last, to be summarised: %q", got)
	}
	w, err := s.store.Window(s.Context(), viewer(scope), "s", session.WindowQuery{Limit: 10})
	if err != nil || len(w.Messages) != 6 {
		s.Errorf("the window has %d messages, %v", len(w.Messages), err)
	}
}

// testMarkRead: The first time counts, and it makes a summary due if there is one of the given maker.
func testMarkRead(s *suite) {
	for _, maker := range []string{"test", "other"} {
		scope := direct("ann", "s-"+maker)
		s.add(scope, said("ann", "hello"), answered("hi"))
		s.save(scope, s.older(scope).Revision, session.Summary{Text: "hello", Last: 1, Messages: 1, MadeBy: "test", At: t0})
		if got := s.older(scope).ReadAt; !got.IsZero() {
			s.Errorf("unread, but at %v", got)
		}
		read := s.now
		for range 2 {
			if err := s.store.MarkRead(s.Context(), namespace, scope.SessionID, maker, s.now); err != nil {
				s.Fatal(err)
			}
			s.later(1000)
		}
		w, err := s.store.Window(s.Context(), viewer(scope), scope.SessionID, session.WindowQuery{Limit: 1})
		if got := s.older(scope).ReadAt; err != nil || !got.Equal(read) || !w.ReadAt.Equal(read) {
			s.Errorf("read at %v, in the window at %v, %v; want %v", got, w.ReadAt, err, read)
		}
		due, _, err := s.store.Due(s.Context(), s.now, 10, session.DueSummarize)
		if has := slices.ContainsFunc(due, func(d session.Due) bool { return d.SessionID == scope.SessionID }); err != nil || has != (maker == "test") {
			s.Errorf("made by %s: due are %v, %v", maker, due, err)
		}
	}
}
