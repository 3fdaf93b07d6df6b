package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
)

func testDueByNumber(s *suite) {
	s.rules.MemorizeEvery, s.rules.SummarizeAfter = 3, 0
	scope := direct("ann", "s1")
	s.add(scope, many("ann", 2)...)
	s.expectDue(time.Hour)
	s.later(time.Minute)
	if got := s.add(scope, said("ann", "three")).Session.Unconsidered; got != 3 {
		s.Errorf("%d wait", got)
	}
	s.expectDue(0, "consider s1")
	s.later(time.Minute)
	s.add(direct("ben", "s2"), many("ben", 3)...)
	s.later(time.Minute)
	s.add(scope, said("ann", "four"))
	s.expectDue(0, "consider s1", "consider s2") // due work keeps its position

	if due, next, err := s.store.Due(s.Context(), s.now, 1); err != nil || len(due) != 1 || next.IsZero() || next.After(s.now) {
		s.Errorf("of two one is %+v, the next at %s, %v", due, next, err)
	}
	if c, ok := s.take(scope); !ok || c.MessageCount != 6 {
		s.Errorf("taken: %+v", c)
	}
	s.expectDue(0, "consider s2")

	// The session's own number counts before that of the rules.
	one := 1
	p := &one
	for id, want := range map[string]bool{"s3": true, "s4": false} {
		scope := direct("ann", id)
		s.add(scope)
		if want {
			if _, err := s.store.Update(s.Context(), viewer(scope), id, session.Patch{MemorizeEvery: &p, At: s.now}); err != nil {
				s.Fatal(err)
			}
		}
		s.add(scope, said("ann", "one"))
		if list, _ := s.due(); slices.Contains(list, "consider "+id) != want {
			s.Errorf("due are %q", list)
		}
	}
}

func testDueByPause(s *suite) {
	scope := direct("ann", "s1")
	s.add(scope, said("ann", "one"))
	s.expectDue(time.Hour)
	s.later(time.Minute)
	s.add(scope, answered("two"))
	s.expectDue(time.Hour)
	s.later(time.Hour)
	s.expectDue(0, "consider s1")
	s.add(scope, answered("three")) // the pause is over
	s.expectDue(time.Hour)

	s.rules.TTL = time.Minute // the window expires before
	s.add(direct("ben", "s2"), said("ben", "one"))
	s.expectDue(time.Minute)
	s.rules.TTL, s.rules.Idle = 0, 0
	s.add(direct("ben", "s2"), said("ben", "two"))
	s.expectDue(time.Hour)
	s.rules.TTL = 2 * time.Hour
	s.later(time.Second)
	s.add(scope, said("ann", "four"))
	s.expectDue(2 * time.Hour)
}

func testNotDue(s *suite) {
	s.rules.MemorizeEvery, s.rules.SummarizeAfter = 1, 0
	s.add(direct("ann", "bot"), answered("good morning"))
	nobody := memory.Scope{Namespace: namespace, SessionID: "nobody"}
	s.add(nobody, said("", "one"), answered("two"))
	a := s.request(direct("ann", "history"), said("ann", "one"), answered("two"))
	a.Settled = true
	s.do(a)
	a = s.request(direct("ann", "paused"), said("ann", "one"), answered("two"))
	a.Paused = map[string]bool{"ann": true}
	s.do(a)
	a = s.request(direct("ann", "withheld"), said("ann", "one"))
	a.Excluded = []session.Exclusion{session.WithheldFailure}
	s.do(a)
	s.rules.MemorizeEvery = 0
	s.add(direct("ann", "off"), many("ann", 3)...)
	s.expectDue(0)
	for id, want := range map[string]int64{"bot": 0, "history": 0, "paused": 0, "withheld": 0, "off": 3} {
		if got := s.get(direct("ann", id)); got.Unconsidered != want {
			s.Errorf("in %s %d wait", id, got.Unconsidered)
		}
		p := s.pending(direct("ann", id))
		if waits := len(p.Speakers) > 0; waits != (want > 0) || p.Session.ID != id {
			s.Errorf("in %s waits %+v", id, p)
		}
		if _, ok := s.take(direct("ann", id)); ok != (want > 0) {
			s.Errorf("of %s something was taken: %t", id, ok)
		}
	}
	// Messages from during the pause are not considered later either.
	s.rules.MemorizeEvery = 1
	s.add(direct("ann", "paused"), said("ann", "three"))
	c, _ := s.take(direct("ann", "paused"))
	if got := s.dialogue("ann", c.ID); !slices.Equal(got, []string{"three"}) {
		s.Errorf("considered is %q", got)
	}
	// A paused user does not block the others.
	a = s.request(lobby("ann", "group"), said("ann", "secret"), said("ben", "hello"), answered("hi"))
	a.Paused = map[string]bool{"ann": true}
	s.do(a)
	c, _ = s.take(lobby("ann", "group"))
	if got := s.dialogue("ben", c.ID); !slices.Equal(got, []string{"hello", "hi"}) {
		s.Errorf("considered is %q", got)
	}
}

func testPostpone(s *suite) {
	s.rules.MemorizeEvery, s.rules.SummarizeAfter = 2, 0
	scope := direct("ann", "s1")
	s.add(scope, many("ann", 2)...)
	due, _, err := s.store.Due(s.Context(), s.now, 10)
	if err != nil || len(due) != 1 {
		s.Fatal(due, err)
	}
	if err := s.store.Postpone(s.Context(), due[0], s.now.Add(10*time.Minute)); err != nil {
		s.Fatal(err)
	}
	s.expectDue(10 * time.Minute)
	s.later(time.Minute)
	s.add(scope, said("ann", "more")) // does not call for it at once
	s.expectDue(9 * time.Minute)
	s.later(9 * time.Minute)
	s.expectDue(0, "consider s1")
	s.take(scope)
	s.expectDue(0)
	// What is not due any more does not become it.
	if err := s.store.Postpone(s.Context(), due[0], s.now.Add(time.Minute)); err != nil {
		s.Fatal(err)
	}
	s.expectDue(0)
	s.add(scope, many("ann", 2)...)
	s.expectDue(0, "consider s1")
}

func testTake(s *suite) {
	scope := lobby("ann", "s1")
	scope.AgentID = "nora"
	s.add(scope, said("ben", "hello"), answered("hi ben"), said("ann", "hello too"))
	p := s.pending(scope)
	want := lobby("ben", "s1")
	want.AgentID = "nora"
	if p.Last != 3 || p.Scope != want || !slices.Equal(p.Speakers, []string{"ben", "ann"}) || p.Session.Unconsidered != 2 {
		s.Errorf("pending is %+v", p)
	}
	s.add(scope, said("ann", "meanwhile"))
	acceptance := s.acceptance(p.Scope, p.Speakers...)
	c, ok, err := s.store.Take(s.Context(), session.Take{Namespace: namespace, SessionID: "s1", Last: p.Last, Acceptance: acceptance})
	if err != nil || !ok || c.ID != acceptance.ID || c.Scope != want || c.State != memory.StatePending || c.MessageCount != 3 {
		s.Fatalf("taken %+v, %t, %v", c, ok, err)
	}
	for _, who := range []string{"ben", "ann"} {
		if got := s.dialogue(who, c.ID); !slices.Equal(got, []string{"hello", "hi ben", "hello too"}) {
			s.Errorf("%s's dialogue is %q", who, got)
		}
	}
	for _, m := range s.all(scope) {
		if want := map[bool]string{true: c.ID}[m.Position <= 3]; m.ConsiderationID != want {
			s.Errorf("message %d is in %q", m.Position, m.ConsiderationID)
		}
	}
	if got := s.get(scope); got.Unconsidered != 1 {
		s.Errorf("%d wait", got.Unconsidered)
	}
	s.expectDue(time.Hour) // new messages wait for a pause
	// The next begins where this one ended. Who asks need not have spoken.
	p = s.pending(scope)
	c, ok, err = s.store.Take(s.Context(), session.Take{
		Namespace: namespace, SessionID: "s1", Last: p.Last, Acceptance: s.acceptance(lobby("eve", "s1"), "eve", "ann"),
	})
	if err != nil || !ok || c.Scope.UserID != "eve" || s.consideration("ann", c.ID).State != memory.StatePending {
		s.Errorf("taken %+v, %t, %v", c, ok, err)
	}
	if _, ok := s.take(scope); ok {
		s.Error("something was taken twice")
	}
}

// testTakeInParts: a dialogue holds so much; the rest stays due.
func testTakeInParts(s *suite) {
	scope := direct("ann", "s1")
	s.rules.MemorizeEvery = 2
	large := strings.Repeat("x", memory.MaxContentBytes)
	for i := range 18 { // 16 of them fill a dialogue
		s.add(scope, said("ann", fmt.Sprint(i%10)+large[1:]))
	}
	s.later(time.Minute)
	counts := []int{}
	for c, ok := s.take(scope); ok; c, ok = s.take(scope) {
		counts = append(counts, c.MessageCount)
		if len(counts) == 1 {
			s.expectDue(0, "summarize s1", "consider s1")
		}
	}
	if !slices.Equal(counts, []int{16, 2}) {
		s.Errorf("taken in parts of %v", counts)
	}
	if got := s.get(scope); got.Unconsidered != 0 {
		s.Errorf("%d are left", got.Unconsidered)
	}
	s.expectDue(0, "summarize s1")
}

// testTakeOnce: concurrent calls take each message once.
func testTakeOnce(s *suite) {
	scope := direct("ann", "s1")
	s.add(scope, many("ann", 3)...)
	p := s.pending(scope)
	const takers = 6
	takes := make([]session.Take, takers)
	for i := range takes {
		takes[i] = session.Take{Namespace: namespace, SessionID: "s1", Last: p.Last, Acceptance: s.acceptance(scope)}
	}
	var mu sync.Mutex
	var taken []string
	var tasks sync.WaitGroup
	for _, take := range takes {
		tasks.Go(func() {
			c, ok, err := s.store.Take(s.Context(), take)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.Error(err)
			}
			if ok {
				taken = append(taken, c.ID)
			}
		})
	}
	tasks.Wait()
	if len(taken) != 1 || len(s.dialogue("ann", taken[0])) != 6 {
		s.Errorf("taken by %q", taken)
	}
}

func testTakeSkips(s *suite) {
	scope := lobby("ann", "s1")
	s.add(scope, said("ann", "secret"), said("ben", "hello"), answered("hi"))
	p := s.pending(scope)
	a := s.acceptance(p.Scope, p.Speakers...)
	a.Skip = map[string]string{"ann": "paused"}
	c, ok, err := s.store.Take(s.Context(), session.Take{Namespace: namespace, SessionID: "s1", Last: p.Last, Acceptance: a})
	if err != nil || !ok || c.State != memory.StateSkipped || c.Outcome.Reason != "paused" {
		s.Errorf("taken %+v, %t, %v", c, ok, err)
	}
	if got := s.dialogue("ben", c.ID); !slices.Equal(got, []string{"", "hello", "hi"}) {
		s.Errorf("the dialogue is %q", got)
	}
	if ids := s.considerationIDs(scope); !slices.Equal(ids, []string{"", c.ID, c.ID}) || s.get(scope).Unconsidered != 0 {
		s.Errorf("the messages are in %q, %d wait", ids, s.get(scope).Unconsidered)
	}
	if _, ok := s.take(scope); ok {
		s.Error("what was skipped is taken later")
	}
	s.add(direct("ann", "s2"), said("ann", "secret"), answered("noted"))
	p = s.pending(direct("ann", "s2"))
	a = s.acceptance(p.Scope)
	a.Skip = map[string]string{"ann": "paused"}
	c, ok, err = s.store.Take(s.Context(), session.Take{Namespace: namespace, SessionID: "s2", Last: p.Last, Acceptance: a})
	if err != nil || !ok || c.State != memory.StateSkipped {
		s.Errorf("taken %+v, %t, %v", c, ok, err)
	}
	if got := s.dialogue("ann", c.ID); !slices.Equal(got, []string{"", ""}) {
		s.Errorf("the dialogue of nobody is %q", got)
	}
	s.expect(direct("ann", "s2"), "secret", "noted")
}

func (s *suite) considerationIDs(scope memory.Scope) (ids []string) {
	s.Helper()
	for _, m := range s.all(scope) {
		ids = append(ids, m.ConsiderationID)
	}
	return ids
}

func overloaded(err error) bool {
	var overload *memory.OverloadError
	return errors.As(err, &overload)
}

func testTakeRefused(s *suite) {
	scope := direct("ann", "s1")
	s.add(scope, said("ann", "one"))
	s.take(scope)
	s.add(scope, said("ann", "two"))
	p := s.pending(scope)
	before := s.get(scope)
	a := s.acceptance(p.Scope)
	a.MaxPending = 1
	_, ok, err := s.store.Take(s.Context(), session.Take{Namespace: namespace, SessionID: "s1", Last: p.Last, Acceptance: a})
	if !overloaded(err) || ok {
		s.Fatalf("got %t, %v", ok, err)
	}
	if after := s.get(scope); after.Unconsidered != before.Unconsidered {
		s.Errorf("the session became %+v", after)
	}
	s.expectDue(time.Hour)
	s.finish()
	// A request id names one taking, whatever was said since.
	a.RequestID, a.PayloadHash = "r1", []byte{1}
	t := session.Take{Namespace: namespace, SessionID: "s1", Last: p.Last, Acceptance: a}
	first, ok, err := s.store.Take(s.Context(), t)
	if err != nil || !ok || first.MessageCount != 1 {
		s.Fatal(first, ok, err)
	}
	s.add(scope, said("ann", "three"))
	t.Acceptance.ID, t.Last = "another", 3
	if again, ok, err := s.store.Take(s.Context(), t); err != nil || !ok || again.ID != first.ID || s.get(scope).Unconsidered != 1 {
		s.Errorf("the same request gives %+v, %t, %v", again, ok, err)
	}
}

// testTakeWithLeadingContext: the bot's messages before the first message of a person are included, but only the last ones of a bot
// that talks alone.
// withIDs gives the messages ids.
func withIDs(messages ...memory.Message) []memory.Message {
	for i := range messages {
		messages[i].ID = messages[i].Content
	}
	return messages
}

func testRecord(s *suite) {
	scope := lobby("ann", "")
	r := s.record(scope, said("ann", "one"), answered("two"), said("ben", "three"), answered("failed"))
	r.Excluded = []session.Exclusion{session.NotExcluded, session.NotExcluded, session.NotExcluded, session.WithheldFailure}
	c, done, err := s.store.Record(s.Context(), r)
	if err != nil || !done.Created || done.Added != 4 || !slices.Equal(done.Positions, []int64{1, 2, 3, 4}) || done.Session.Unconsidered != 0 {
		s.Fatalf("recorded %+v, %v", done, err)
	}
	scope.SessionID = done.Session.ID
	if c.ID != r.Acceptance.ID || c.Scope != scope || c.State != memory.StatePending || c.MessageCount != 3 {
		s.Errorf("accepted %+v", c)
	}
	if got := s.dialogue("ben", c.ID); !slices.Equal(got, []string{"one", "two", "three"}) {
		s.Errorf("the dialogue is %q", got)
	}
	if ids := s.considerationIDs(scope); !slices.Equal(ids, []string{c.ID, c.ID, c.ID, ""}) {
		s.Errorf("the messages are in %q", ids)
	}
	s.expect(scope, "one", "two", "three", "failed")
	if id, err := s.store.Current(s.Context(), viewer(lobby("eve", ""))); err != nil || id != scope.SessionID {
		s.Errorf("the current session is %q, %v", id, err)
	}
	s.expectDue(0)
	if _, ok := s.take(scope); ok {
		s.Error("what was considered is taken again")
	}
}

func testRecordAgain(s *suite) {
	scope := lobby("ann", "s1")
	s.add(scope, withIDs(said("ann", "zero"))...) // waits
	first, _, err := s.store.Record(s.Context(), s.record(scope, withIDs(said("ann", "one"), answered("two"))...))
	if err != nil {
		s.Fatal(err)
	}
	// Messages that overlap are neither stored nor considered twice. Pending ones of the session are considered now.
	second, done, err := s.store.Record(s.Context(), s.record(scope, withIDs(said("ann", "zero"), said("ann", "one"), answered("two"), said("ben", "three"))...))
	if err != nil || done.Added != 1 || !slices.Equal(done.Positions, []int64{1, 2, 3, 4}) || second.MessageCount != 2 {
		s.Fatalf("recorded %+v, %+v, %v", second, done, err)
	}
	if got := s.dialogue("ben", second.ID); !slices.Equal(got, []string{"zero", "three"}) || s.get(scope).Unconsidered != 0 {
		s.Errorf("the dialogue is %q", got)
	}
	// A speaker without new messages gets no consideration.
	third, _, err := s.store.Record(s.Context(), s.record(scope, withIDs(said("ann", "one"), said("ben", "four"))...))
	if err != nil || third.State != memory.StateSkipped || !strings.Contains(third.Outcome.Reason, first.ID) {
		s.Errorf("ann's is %+v, %v", third, err)
	}
	if c := s.consideration("ben", third.ID); c.State != memory.StatePending {
		s.Errorf("ben's is %+v", c)
	}
	last, done, err := s.store.Record(s.Context(), s.record(scope, withIDs(said("ben", "three"), answered("two"))...))
	if err != nil || done.Added != 0 || last.State != memory.StateSkipped || last.MessageCount != 0 || last.ID == second.ID ||
		!strings.Contains(last.Outcome.Reason, second.ID) || !strings.Contains(last.Outcome.Reason, first.ID) {
		s.Errorf("all considered before: %+v, %v", last, err)
	}
	if c := s.consideration("ben", last.ID); c.State != memory.StateSkipped {
		s.Errorf("ben's is %+v", c)
	}
	s.expect(scope, "zero", "one", "two", "three", "four")
}

func testRecordRequestID(s *suite) {
	r := s.record(direct("ann", ""), said("ann", "one"))
	r.Acceptance.RequestID, r.Acceptance.PayloadHash = "r1", []byte{1}
	first, done, err := s.store.Record(s.Context(), r)
	if err != nil {
		s.Fatal(err)
	}
	r.Acceptance.ID, r.NewID = "another", "another"
	again, nothing, err := s.store.Record(s.Context(), r)
	if err != nil || again.ID != first.ID || again.Scope.SessionID != done.Session.ID || nothing.Added != 0 {
		s.Errorf("repeated: %+v, %+v, %v", again, nothing, err)
	}
	r.Acceptance.PayloadHash = []byte{2}
	if _, _, err := s.store.Record(s.Context(), r); !invalid(err, "request_id") {
		s.Errorf("with another payload: %v", err)
	}
	s.expect(direct("ann", done.Session.ID), "one")
}

func testRecordRefused(s *suite) {
	scope := direct("ann", "s1")
	if _, _, err := s.store.Record(s.Context(), s.record(scope, said("ann", "one"))); err != nil {
		s.Fatal(err)
	}
	r := s.record(scope, said("ann", "two"))
	r.Acceptance.MaxPending = 1
	if _, _, err := s.store.Record(s.Context(), r); !overloaded(err) {
		s.Errorf("with too much waiting: %v", err)
	}
	elsewhere := direct("ann", "s1")
	elsewhere.Channel = memory.Channel{}
	other := s.record(elsewhere, said("ann", "two"))
	if _, _, err := s.store.Record(s.Context(), other); !refused(err) {
		s.Errorf("from another channel: %v", err)
	}
	s.expect(scope, "one")
	if jobs, _, err := s.queue.List(s.Context(), user("ann"), queue.ListQuery{Audience: memory.Everything(), Limit: 10}); err != nil || len(jobs) != 1 {
		s.Errorf("ann has %+v, %v", jobs, err)
	}
}

// testRecordSkips: what a paused user says is neither considered nor kept.
func testRecordSkips(s *suite) {
	scope := lobby("ann", "s1")
	messages := []memory.Message{said("ann", "secret"), said("ben", "hello"), answered("hi")}
	for _, emptied := range []bool{false, true} {
		r := s.record(scope, slices.Clone(messages)...)
		r.Acceptance.Skip = map[string]string{"ann": "paused"}
		if emptied {
			r.Acceptance.Dialogue, _ = r.Acceptance.Dialogue.Without("ann")
		}
		c, done, err := s.store.Record(s.Context(), r)
		if err != nil || c.State != memory.StateSkipped || c.Outcome.Reason != "paused" || done.Added != 2 {
			s.Fatalf("recorded %+v, %+v, %v", c, done, err)
		}
		if got := s.dialogue("ben", c.ID); !slices.Equal(got, []string{"", "hello", "hi"}) {
			s.Errorf("the dialogue is %q", got)
		}
	}
	s.expect(scope, "hello", "hi", "hello", "hi")
	r := s.record(direct("ann", "s2"), said("ann", "secret"), answered("noted"))
	r.Acceptance.Skip = map[string]string{"ann": "paused"}
	c, done, err := s.store.Record(s.Context(), r)
	if err != nil || c.State != memory.StateSkipped || done.Added != 0 || done.Created {
		s.Errorf("recorded %+v, %+v, %v", c, done, err)
	}
	s.gone(direct("ann", "s2"))
}
