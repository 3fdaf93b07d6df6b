package sessiontest

import (
	"reflect"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

func testUpdate(s *suite) {
	scope := direct("ann", "s1")
	s.add(scope, said("ann", "one"))
	before := s.get(scope)
	s.later(time.Minute)
	title, metadata, three := "about tea", `{"n": 9007199254740993}`, 3
	every := &three
	got, err := s.store.Update(s.Context(), viewer(scope), "s1", session.Patch{Title: &title, Metadata: &metadata, MemorizeEvery: &every, At: s.now})
	want := before
	want.Title, want.Metadata, want.MemorizeEvery, want.UpdatedAt = title, metadata, every, s.now
	if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(s.get(scope), want) {
		s.Errorf("updated %+v, %v, want %+v", got, err, want)
	}
	s.later(time.Minute)
	none := ""
	got, err = s.store.Update(s.Context(), viewer(scope), "s1", session.Patch{Title: &none, At: s.now})
	want.Title, want.UpdatedAt = "", s.now
	if err != nil || !reflect.DeepEqual(got, want) {
		s.Errorf("updated %+v, %v, want %+v", got, err, want)
	}

	// A new number applies immediately.
	set := func(n *int) {
		s.Helper()
		if _, err := s.store.Update(s.Context(), viewer(scope), "s1", session.Patch{MemorizeEvery: &n, At: s.now}); err != nil {
			s.Fatal(err)
		}
	}
	s.expectDue(58 * time.Minute)
	one, zero := 1, 0
	set(&one)
	s.expectDue(0, "consider s1")
	set(&zero)
	s.expectDue(0)
	set(nil) // as the policy says
	s.expectDue(58 * time.Minute)

	if _, err := s.store.Update(s.Context(), viewer(lobby("ann", "s1")), "s1", session.Patch{Title: &title, At: s.now}); err == nil {
		s.Error("it was changed from a group")
	}
	s.add(lobby("ann", "s2"), said("ann", "one"))
	if _, err := s.store.Update(s.Context(), viewer(direct("ann", "s2")), "s2", session.Patch{Title: &title, At: s.now}); !refused(err) {
		s.Errorf("a group's session was changed from a direct chat: %v", err)
	}
}

func testSwitch(s *suite) {
	first := s.add(direct("ann", ""), said("ann", "one")).Session.ID
	current := func(scope memory.Scope) string {
		s.Helper()
		id, err := s.store.Current(s.Context(), viewer(scope))
		if err != nil {
			s.Fatal(err)
		}
		return id
	}
	to := func(scope memory.Scope, id string, wantCreated bool) session.Session {
		s.Helper()
		got, created, err := s.store.Switch(s.Context(), viewer(scope), id, s.now)
		if err != nil || created != wantCreated || got.ID != id || current(scope) != id && id != "" {
			s.Fatalf("switched to %+v, %t, %v; the current one is %q", got, created, err, current(scope))
		}
		return got
	}
	made := to(direct("ann", ""), "holiday", true)
	if !slices.Equal(made.Participants, []string{"ann"}) || !made.CreatedAt.Equal(t0) || made.Messages != 0 {
		s.Errorf("created %+v", made)
	}
	if done := s.add(direct("ann", ""), said("ann", "two")); done.Session.ID != "holiday" || done.Created {
		s.Errorf("appended to %+v", done)
	}
	if back := to(direct("ann", ""), first, false); back.Messages != 1 {
		s.Errorf("back in %+v", back)
	}
	otherChat := direct("ann", "")
	otherChat.Channel.ID = "another bot"
	if got := current(otherChat); got != "" {
		s.Errorf("in another chat it is %q", got)
	}
	to(direct("ann", ""), "", false)
	if got := current(direct("ann", "")); got != "" {
		s.Errorf("without one it is %q", got)
	}
	to(direct("eve", ""), "", false) // she never had one

	// In a group, the user's own current session comes before the group's.
	all := s.add(lobby("ann", ""), said("ann", "hello")).Session.ID
	to(lobby("ben", ""), "quest", true)
	if a, b := current(lobby("ann", "")), current(lobby("ben", "")); a != all || b != "quest" {
		s.Errorf("the current ones are %q and %q", a, b)
	}
	to(lobby("ben", ""), "", false)
	if got := current(lobby("ben", "")); got != all {
		s.Errorf("without his own it is %q", got)
	}

	for _, scope := range []memory.Scope{direct("ben", ""), lobby("ann", "")} {
		if _, created, err := s.store.Switch(s.Context(), viewer(scope), "holiday", s.now); err != nil || !created {
			s.Errorf("%+v switched to ann's session: %t, %v", scope, created, err)
		}
		to(scope, "", false)
	}
	if _, _, err := s.store.Switch(s.Context(), viewer(memory.Scope{Namespace: namespace}), "x", s.now); !invalid(err, "scope.user_id") {
		s.Errorf("switching without a user: %v", err)
	}
	// A deleted session is not current any more.
	to(direct("ann", ""), first, false)
	if _, err := s.store.Delete(s.Context(), viewer(direct("ann", "")), first); err != nil {
		s.Fatal(err)
	}
	if got := current(direct("ann", "")); got != "" {
		s.Errorf("after its deletion it is %q", got)
	}
}
