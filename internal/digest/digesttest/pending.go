package digesttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// testPending: the messages are of one session, that of the oldest one, and in order.
func testPending(s *suite) {
	s.say(chat(ann, "one"), 10, "a1", "a2")
	s.say(chat(ann, "two"), 10, "b1")
	s.append(request(chat(ann, "one"), 10, answered("a3"), said(ann, "a4")))
	w := s.waiting(ann)
	s.want("waiting", contents(w), "a1 a2 a3 a4")
	want := chat(ann, "one")
	want.AgentID = "nora"
	if w.Scope != want {
		s.Errorf("the scope is %+v, want %+v", w.Scope, want)
	}
	for i, m := range w.Messages {
		if m.Position != int64(i+1) || m.Considered || i > 0 && m.Ref <= w.Messages[i-1].Ref || !m.Time.Equal(t0) {
			s.Errorf("message %d is %+v", i, m)
		}
	}
	if m := w.Messages[2]; m.Role != memory.RoleAssistant || m.AgentID != "nora" {
		s.Errorf("the answer is %+v", m)
	}
	s.want("limited", contents(s.query(ann, digest.PendingQuery{ByItself: true, Limit: 2})), "a1 a2")

	c := s.contribution(chat(ann, "one"))
	c.Covers = refs(w)
	s.save(c)
	w = s.waiting(ann)
	s.want("the next session", contents(w)+" "+w.Scope.SessionID, "b1 two")
}

// testPendingByOwner: a message is pending only for its owner; messages of tools, paused or excluded ones are never pending.
func testPendingByOwner(s *suite) {
	a := request(scope(ann, lobby, "s"), 10, said(ann, "ann1"), said(ben, "ben1"), answered("to-ann"),
		memory.Message{Role: memory.RoleTool, Content: "tool", Time: t0}, memory.Message{Role: memory.RoleSystem, Content: "system", Time: t0},
		said(ann, "withheld"))
	a.Excluded = make([]session.Exclusion, len(a.Messages))
	a.Excluded[len(a.Messages)-1] = session.WithheldFailure
	a.Digests[ben.ID] = rule(10)
	s.append(a)
	s.append(session.Append{
		Scope: scope(ann, lobby, "s"), Audience: memory.Everything(), At: t0, Paused: map[string]bool{ann.ID: true},
		Digests:  map[string]session.DigestRule{ann.ID: rule(10), ben.ID: rule(10)},
		Messages: []memory.Message{said(ann, "paused"), answered("to-paused"), said(ben, "ben2")},
	})
	s.want("ann", contents(s.waiting(ann)), "ann1 to-ann")
	w := s.waiting(ben)
	s.want("ben", contents(w), "ben1 ben2")
	if w.Scope.User() != ben || w.Scope.Channel != lobby || w.Scope.SessionID != "s" {
		s.Errorf("the scope is %+v", w.Scope)
	}
	s.want("the other namespace", contents(s.waiting(elsewhere)), "")
}

// testPendingWhenAsked: messages received while digests were off, or imported as history, stay pending until a digest is requested.
func testPendingWhenAsked(s *suite) {
	s.say(chat(ann, "s"), 0, "off")
	settled := request(chat(ann, "s"), 10, said(ann, "history"))
	settled.Settled = true
	s.append(settled)
	s.want("without being asked", contents(s.waiting(ann)), "")
	asked := s.query(ann, digest.PendingQuery{Limit: 10})
	s.want("asked", contents(asked), "off history")
	if got, next := s.due(t0.Add(24 * time.Hour)); got != "" || next != 0 {
		s.Errorf("%q is due, the next after %s", got, next)
	}
	s.say(chat(ann, "s"), 10, "on")
	s.want("without being asked", contents(s.waiting(ann)), "on")
	c := s.contribution(chat(ann, "s"))
	c.Covers = refs(asked)
	s.save(c)
	s.want("asked", contents(s.query(ann, digest.PendingQuery{Limit: 10})), "on")
}

// testPendingPeriod: a period includes its beginning and not its end. A time that is zero sets no bound.
func testPendingPeriod(s *suite) {
	a := request(chat(ann, "s"), 10)
	for i := range 4 {
		m := said(ann, fmt.Sprint("m", i))
		m.Time = t0.Add(time.Duration(i) * time.Hour)
		a.Messages = append(a.Messages, m)
	}
	s.append(a)
	at := func(hour int) time.Time { return t0.Add(time.Duration(hour) * time.Hour) }
	for _, test := range []struct {
		from, before time.Time
		want         string
	}{
		{time.Time{}, time.Time{}, "m0 m1 m2 m3"},
		{at(1), at(3), "m1 m2"},
		{at(1).Add(time.Microsecond), at(3).Add(time.Microsecond), "m2 m3"},
		{at(2), time.Time{}, "m2 m3"},
		{time.Time{}, at(2), "m0 m1"},
		{at(4), time.Time{}, ""},
		{at(2), at(2), ""},
	} {
		w := s.query(ann, digest.PendingQuery{From: test.from, Before: test.before, Limit: 10})
		s.want(fmt.Sprintf("from %s before %s", test.from, test.before), contents(w), test.want)
		s.wantCount(ann, everything, test.from, test.before, int64(len(w.Messages)))
	}
}

func (s *suite) wantCount(user memory.User, seen digest.Seen, from, before time.Time, want int64) {
	s.Helper()
	if n, err := s.Digests.CountPending(s.Context(), user, seen, from, before); err != nil || n != want {
		s.Errorf("%d messages of %v wait, %v, want %d", n, user, err, want)
	}
}

func testCountPending(s *suite) {
	s.append(request(chat(ann, "dm"), 10, said(ann, "d1"), answered("d2")))
	s.append(request(scope(ann, lobby, "g"), 10, said(ann, "g1"), said(ben, "of ben")))
	s.say(scope(ann, memory.Channel{}, "u"), 0, "u1") // counts although it is read on request only
	for name, test := range map[string]struct {
		user memory.User
		seen digest.Seen
		want int64
	}{
		"everything":        {ann, everything, 4},
		"nothing":           {ann, digest.Seen{}, 0},
		"direct":            {ann, seenIn(direct), 4},
		"the group":         {ann, seenIn(lobby), 1},
		"another group":     {ann, seenIn(attic), 0},
		"unspecified":       {ann, seenIn(memory.Channel{}), 1},
		"an agent":          {ann, digest.Seen{Audience: memory.Everything(), AgentID: new("nora")}, 1},
		"no agent":          {ann, digest.Seen{Audience: memory.Everything(), AgentID: new("")}, 3},
		"another user":      {ben, everything, 1},
		"another namespace": {elsewhere, everything, 0},
	} {
		s.Run(name, func(t *testing.T) {
			(&suite{T: t, Stores: s.Stores}).wantCount(test.user, test.seen, time.Time{}, time.Time{}, test.want)
		})
	}
}
