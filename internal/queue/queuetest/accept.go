package queuetest

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

func testAccept(s *suite) {
	a := s.acceptance(memory.Scope{
		Namespace: namespace, UserID: "ann", AgentID: "nora", SessionID: "s1",
		Channel: memory.Channel{Kind: memory.ChannelGroup, ID: "lobby"},
	})
	a.At = a.At.In(time.FixedZone("elsewhere", 3600)).Add(789) // a store may drop nanoseconds and zones
	c := s.accept(a)
	want := memory.Consideration{
		ID: a.ID, Scope: a.Dialogue.Scope, State: memory.StatePending, NextAttemptAt: t0, MessageCount: 2, CreatedAt: t0, UpdatedAt: t0,
	}
	if !reflect.DeepEqual(c, want) {
		s.Errorf("accepted %+v, want %+v", c, want)
	}
	if got := s.get(user("ann"), c.ID); !reflect.DeepEqual(got, want) {
		s.Errorf("got %+v, want %+v", got, want)
	}

	second := s.accept(s.acceptance(direct("ann")))
	if !second.NextAttemptAt.IsZero() {
		s.Errorf("the second of a user's jobs is due at %s", second.NextAttemptAt)
	}
	if got := s.get(user("ann"), second.ID); !reflect.DeepEqual(got, second) {
		s.Errorf("got %+v, want %+v", got, second)
	}
}

func testAcceptFansOut(s *suite) {
	id := s.add(lobby("ann"), "ben", "eve")
	for _, speaker := range []string{"ann", "ben", "eve"} {
		c := s.get(user(speaker), id)
		if c.ID != id || c.Scope != lobby(speaker) || c.State != memory.StatePending || c.MessageCount != 4 {
			s.Errorf("%s sees %+v", speaker, c)
		}
	}
	jobs := s.expect("ann "+id, "ben "+id, "eve "+id)
	for _, job := range jobs {
		if job.Dialogue.Scope != lobby("ann") || len(job.Dialogue.Messages) != 4 || job.Consideration.State != memory.StateRunning ||
			job.Consideration.Attempts != 1 || !job.AcceptedAt.Equal(t0) || job.Checkpoint != nil {
			s.Errorf("claimed %+v", job)
		}
	}
	s.finish(jobs[1], memory.StateRemembered)
	if a, b := s.get(user("ann"), id).State, s.get(user("ben"), id).State; a != memory.StateRunning || b != memory.StateRemembered {
		s.Errorf("states %s and %s: each speaker's consideration ends independently", a, b)
	}
}

func testAcceptKeepsEveryByte(s *suite) {
	a := s.acceptance(direct("ann"))
	a.Dialogue.Messages = []memory.Message{
		{
			ID: "m<1>", Role: memory.RoleUser, Speaker: "ann", Time: t0,
			Content:  "我喜欢喝茶 🍵\r\n\t\"quoted\" <b>&amp;</b> \\u0000 \x00 \u2028 end",
			Metadata: `{ "b":1.50,"a":[ ] , "<":"é\u00e9" }`,
		},
		{
			Role: memory.RoleAssistant, AgentID: "nora", Time: t0.Add(time.Minute),
			Tools: []memory.ToolCall{{
				ID: "t1", Name: "search", Arguments: `{"q": 1e3}`, Result: "ok\n", Status: "done", Duration: new(1500 * time.Millisecond),
				Time: t0.Add(time.Second),
			}, {}},
		},
		{Role: memory.RoleTool, Time: time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Role: memory.RoleSystem, Time: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)},
	}
	want := slices.Clone(a.Dialogue.Messages)
	a.Call = trace.Call{TurnID: "turn <1> 茶", OTelTraceID: "0af7651916cd43dd8448eb211c80319c", OTelSpanID: "b7ad6b7169203331"}
	s.accept(a)
	jobs, _ := s.claim(1)
	if got := jobs[0].Call; got != a.Call {
		s.Errorf("the call is %+v", got)
	}
	if got := jobs[0].Dialogue.Messages; !reflect.DeepEqual(got, want) {
		s.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := s.all(user("ann"))[0].Dialogue; !reflect.DeepEqual(got, jobs[0].Dialogue) {
		s.Errorf("List gives %+v", got)
	}
}

// requestIDProblem reports whether the error is an InvalidError about the request id.
func requestIDProblem(err error) bool {
	var invalid *memory.InvalidError
	return errors.As(err, &invalid) && len(invalid.Violations) == 1 && invalid.Violations[0].Field == "request_id"
}

func testRequestID(s *suite) {
	first := s.acceptance(lobby("ann"), "ben")
	first.RequestID, first.PayloadHash = "r1", []byte{1, 2}
	s.accept(first)

	again := s.acceptance(lobby("ann"), "ben")
	again.RequestID, again.PayloadHash = "r1", []byte{1, 2}
	if c := s.accept(again); c.ID != first.ID || c.State != memory.StatePending {
		s.Errorf("repeated: %+v, want that of %s", c, first.ID)
	}
	for _, job := range s.expect("ann "+first.ID, "ben "+first.ID) { // and no repeated job
		s.finish(job, memory.StateRemembered)
	}
	if c := s.accept(again); c.ID != first.ID || c.State != memory.StateRemembered || c.Outcome.Reason == "" {
		s.Errorf("repeated after its end: %+v", c)
	}
	s.expect()

	other := again
	other.PayloadHash = []byte{1, 2, 3}
	if _, err := s.store.Accept(s.Context(), other); !requestIDProblem(err) {
		s.Errorf("the same request id with another payload: %v", err)
	}
	other.PayloadHash = nil
	if _, err := s.store.Accept(s.Context(), other); !requestIDProblem(err) {
		s.Errorf("the same request id without a payload hash: %v", err)
	}
	if got := s.all(user("ann")); len(got) != 1 {
		s.Errorf("%d considerations are stored", len(got))
	}

	// A request id is unique within its user and namespace.
	ben := s.acceptance(direct("ben"))
	ben.RequestID, ben.PayloadHash = "r1", []byte{9}
	elsewhere := s.acceptance(memory.Scope{Namespace: "elsewhere", UserID: "ann"})
	elsewhere.RequestID, elsewhere.PayloadHash = "r1", []byte{9}
	if b, e := s.accept(ben), s.accept(elsewhere); b.ID != ben.ID || e.ID != elsewhere.ID {
		s.Errorf("got %s and %s", b.ID, e.ID)
	}
	s.expect("ben "+ben.ID, "ann "+elsewhere.ID)

	// Without a request id every call is new.
	if one, two := s.add(direct("eve")), s.add(direct("eve")); one == two {
		s.Error("two dialogues without request id became one")
	}
}

func testRequestIDConcurrently(s *suite) {
	const callers = 8
	acceptances := make([]string, callers)
	var tasks sync.WaitGroup
	for i := range callers {
		a := s.acceptance(direct("ann"))
		a.RequestID, a.PayloadHash = "r1", []byte{1}
		tasks.Go(func() {
			c, err := s.store.Accept(s.Context(), a)
			if err != nil {
				s.Error(err)
			}
			acceptances[i] = c.ID
		})
	}
	tasks.Wait()
	if got := slices.Compact(acceptances); len(got) != 1 {
		s.Errorf("one request became %q", got)
	}
	if got := s.all(user("ann")); len(got) != 1 {
		s.Errorf("%d considerations are stored", len(got))
	}
}

func testSkip(s *suite) {
	a := s.acceptance(lobby("ann"), "ben", "eve")
	a.Skip = map[string]string{"ann": "paused", "eve": "asleep"}
	c := s.accept(a)
	if c.State != memory.StateSkipped || c.Outcome.Reason != "paused" || !c.NextAttemptAt.IsZero() {
		s.Errorf("accepted %+v", c)
	}
	if got := s.get(user("ann"), a.ID); !reflect.DeepEqual(got, c) {
		s.Errorf("got %+v, want %+v", got, c)
	}
	if got := s.get(user("eve"), a.ID); got.State != memory.StateSkipped || got.Outcome.Reason != "asleep" {
		s.Errorf("eve's is %+v", got)
	}
	next := s.add(direct("ann"))
	s.expect("ben "+a.ID, "ann "+next) // skipped jobs block no other job
}

func testMaxPending(s *suite) {
	limited := func(scope memory.Scope, others ...string) (string, error) {
		a := s.acceptance(scope, others...)
		a.MaxPending = 2
		_, err := s.store.Accept(s.Context(), a)
		return a.ID, err
	}
	overloaded := func(err error) bool {
		var overload *memory.OverloadError
		return errors.As(err, &overload) && overload.RetryAfter > 0
	}
	running, failed := s.add(direct("ann")), s.add(direct("ben"))
	for _, job := range s.expect("ann "+running, "ben "+failed) {
		if job.User().ID == "ben" {
			s.finish(job, memory.StateFailed)
		}
	}
	if _, err := limited(direct("ann")); err != nil {
		s.Fatal(err)
	}
	if _, err := limited(direct("ann")); !overloaded(err) { // one runs and one is pending
		s.Fatalf("got %v, want an OverloadError", err)
	}
	refused, err := limited(lobby("ann"), "eve")
	if !overloaded(err) {
		s.Fatalf("got %v, want an OverloadError", err)
	}
	if _, err := s.store.Get(s.Context(), user("eve"), refused, memory.Everything()); !errors.Is(err, memory.ErrNotFound) {
		s.Errorf("part of a refused dialogue is stored: %v", err)
	}

	paused := s.acceptance(lobby("eve"), "ann") // a skipped speaker's is not pending
	paused.MaxPending, paused.Skip = 2, map[string]string{"ann": "paused"}
	if _, err := s.store.Accept(s.Context(), paused); err != nil {
		s.Errorf("with the other speaker skipped: %v", err)
	}
	for range 2 { // failed ones are not pending
		if _, err := limited(direct("ben")); err != nil {
			s.Error(err)
		}
	}
	job, err := s.store.Get(s.Context(), user("ann"), running, memory.Everything())
	if err != nil || job.State != memory.StateRunning {
		s.Fatal(job, err)
	}
	s.finish(s.all(user("ann"))[0], memory.StateRemembered)
	if _, err := limited(direct("ann")); err != nil {
		s.Errorf("after one had ended: %v", err)
	}
	if _, err := limited(lobby("dan"), "ann"); err != nil {
		s.Errorf("a user with many pending jobs blocks the others: %v", err)
	}
}

func testMaxPendingNamespace(s *suite) {
	limited := func(scope memory.Scope) error {
		a := s.acceptance(scope)
		a.MaxPendingNamespace = 2
		_, err := s.store.Accept(s.Context(), a)
		return err
	}
	wantFull := func(err error) {
		s.Helper()
		if overload, ok := errors.AsType[*memory.OverloadError](err); !ok || overload.RetryAfter <= 0 {
			s.Errorf("got %v, want an OverloadError", err)
		}
	}
	for _, user := range []string{"ann", "ben"} {
		if err := limited(direct(user)); err != nil {
			s.Fatal(err)
		}
	}
	wantFull(limited(direct("eve")))
	wantFull(limited(direct("ann")))
	elsewhere := direct("eve")
	elsewhere.Namespace = "elsewhere"
	if err := limited(elsewhere); err != nil {
		s.Errorf("another namespace: %v", err)
	}
	s.finish(s.all(user("ben"))[0], memory.StateFailed) // failed ones are not pending
	if err := limited(direct("eve")); err != nil {
		s.Errorf("after one had ended: %v", err)
	}
}
