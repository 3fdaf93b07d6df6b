package queuetest

import (
	"errors"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// testMaxPendingTotal: The pending considerations of all users are limited, in number and in bytes. However one ends, it makes room.
func testMaxPendingTotal(s *suite) {
	accept := func(limit func(*queue.Acceptance), scope memory.Scope, others ...string) error {
		a := s.acceptance(scope, others...)
		limit(&a)
		_, err := s.store.Accept(s.Context(), a)
		return err
	}
	full := func(err error, key string) {
		s.Helper()
		overload, ok := errors.AsType[*memory.OverloadError](err)
		if !ok || overload.RetryAfter <= 0 || !strings.Contains(overload.Limit, key) {
			s.Errorf("got %v, want an OverloadError that names %s", err, key)
		}
	}
	room := func(err error) {
		s.Helper()
		if err != nil {
			s.Errorf("there is room: %v", err)
		}
	}
	two := func(a *queue.Acceptance) { a.MaxPendingTotal = 2 }
	elsewhere := direct("zoe")
	elsewhere.Namespace = "elsewhere"

	room(accept(two, lobby("ann"), "ben")) // two pending ones
	full(accept(two, elsewhere), "queue.max_pending")
	room(accept(func(a *queue.Acceptance) { two(a); a.Skip = map[string]string{"zoe": "paused"} }, elsewhere)) // no pending one
	jobs, _ := s.claim(2)
	full(accept(two, elsewhere), "queue.max_pending") // running ones count
	s.finish(jobs[0], memory.StateFailed)
	room(accept(two, elsewhere))
	full(accept(two, elsewhere), "queue.max_pending")
	if _, err := s.store.Retry(s.Context(), jobs[0].User(), jobs[0].Consideration.ID, memory.Everything(), s.now); err != nil {
		s.Fatal(err)
	}
	for _, person := range []memory.User{{Namespace: "elsewhere", ID: "zoe"}, user("ann")} {
		full(accept(two, direct("eve")), "queue.max_pending")
		if _, err := s.store.Forget(s.Context(), person); err != nil {
			s.Fatal(err)
		}
	}
	room(accept(two, direct("eve")))

	// A dialogue counts once, however many speak in it, until its last consideration ends.
	for _, person := range []string{"ben", "eve"} {
		if _, err := s.store.Forget(s.Context(), user(person)); err != nil {
			s.Fatal(err)
		}
	}
	little := func(a *queue.Acceptance) { a.MaxPendingBytes = 1 }
	a := s.acceptance(lobby("ann"), "ben")
	if _, err := s.store.Accept(s.Context(), a); err != nil {
		s.Fatal(err)
	}
	full(accept(little, elsewhere), "queue.max_pending_bytes")
	plenty := func(a *queue.Acceptance) { a.MaxPendingBytes = 4000 }
	room(accept(plenty, elsewhere))
	if _, err := s.store.Forget(s.Context(), memory.User{Namespace: "elsewhere", ID: "zoe"}); err != nil {
		s.Fatal(err)
	}
	jobs, _ = s.claim(2)
	s.finish(jobs[0], memory.StateRemembered)
	full(accept(little, elsewhere), "queue.max_pending_bytes")
	s.finish(jobs[1], memory.StateRemembered)
	room(accept(little, elsewhere))
}
