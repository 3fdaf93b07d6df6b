package digesttest

import (
	"context"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
)

// testDueByNumber: a digest is due at the end of the day, or earlier after enough messages. It waits one minute for the answer to the
// last message.
func testDueByNumber(s *suite) {
	s.say(chat(ann, "one"), 2, "a")
	if got, next := s.due(t0); got != "" || next != time.Hour {
		s.Errorf("after one message %q is due, the next after %s", got, next)
	}
	s.wantDue(time.Hour, "ann")
	s.say(chat(ann, "two"), 2, "b") // sessions count together
	s.wantDue(time.Minute-time.Microsecond, "")
	s.wantDue(time.Minute, "ann")
	s.append(request(chat(ben, "b"), 2, said(ben, "a"), answered("does not count")))
	s.wantDue(time.Minute, "ann")
	s.append(request(chat(ben, "b"), 2, said(ben, "c"), answered("to it")))
	s.wantDue(0, "ben") // it was answered
	s.wantDue(time.Minute, "ben ann")
}

func testDueInOrder(s *suite) {
	for i, user := range []memory.User{ann, ben, elsewhere} {
		a := request(chat(user, "s"), 10, said(user, "a"))
		r := a.Digests[user.ID]
		r.DayEnd = t0.Add(time.Duration(3-i) * time.Hour)
		a.Digests[user.ID] = r
		s.append(a)
	}
	for _, test := range []struct {
		hours, limit int
		want         []memory.User
		next         time.Duration
	}{
		{0, 10, nil, time.Hour},
		{1, 10, []memory.User{elsewhere}, 2 * time.Hour},
		{3, 10, []memory.User{elsewhere, ben, ann}, 0},
		{3, 2, []memory.User{elsewhere, ben}, 3 * time.Hour}, // more are due than the limit
		{3, 1, []memory.User{elsewhere}, 2 * time.Hour},
	} {
		due, next, err := s.Digests.Due(s.Context(), t0.Add(time.Duration(test.hours)*time.Hour), test.limit)
		if err != nil || len(due) != len(test.want) {
			s.Errorf("after %d hours, limit %d: %v, %v", test.hours, test.limit, due, err)
			continue
		}
		for i := range due {
			if due[i] != test.want[i] {
				s.Errorf("after %d hours, limit %d: %v, want %v", test.hours, test.limit, due, test.want)
				break
			}
		}
		if test.next == 0 && !next.IsZero() || test.next > 0 && !next.Equal(t0.Add(test.next)) {
			s.Errorf("after %d hours, limit %d: the next is due at %s", test.hours, test.limit, next)
		}
	}
}

// testDone: without pending messages no digest is due; otherwise the rule decides when the next one is.
func testDone(s *suite) {
	s.append(request(chat(ann, "s"), 2, said(ann, "a"), answered("b"), said(ann, "c"), said(ann, "d")))
	later := digest.Rule{Now: t0.Add(2 * time.Hour), Every: 2, DayEnd: t0.Add(5 * time.Hour)}
	done := func(r digest.Rule) {
		s.Helper()
		if err := s.Digests.Done(s.Context(), ann, r); err != nil {
			s.Fatal(err)
		}
	}
	all := refs(s.waiting(ann))
	done(later)
	if _, next := s.due(t0); next != 2*time.Hour {
		s.Errorf("with three messages the next is due after %s", next)
	}
	c := s.contribution(chat(ann, "s"))
	c.Covers = all[:3]
	s.save(c)
	done(later)
	if _, next := s.due(t0); next != 5*time.Hour {
		s.Errorf("with one message the next is due after %s", next)
	}
	s.say(chat(ann, "s"), 2, "e") // the second pending message
	if _, next := s.due(t0); next != time.Minute {
		s.Errorf("with two messages the next is due after %s", next)
	}
	c = s.contribution(chat(ann, "s"))
	c.Covers = refs(s.waiting(ann))
	s.save(c)
	done(later)
	if got, next := s.due(t0.Add(24 * time.Hour)); got != "" || next != 0 {
		s.Errorf("with no message %q is due, the next after %s", got, next)
	}
	s.say(chat(ann, "s"), 2, "f")
	s.wantDue(time.Hour, "ann")
}

func testPostpone(s *suite) {
	s.say(chat(ann, "s"), 1, "a")
	s.say(chat(ben, "s"), 1, "a")
	postpone := func(d time.Duration) {
		s.Helper()
		if err := s.Digests.Postpone(s.Context(), ann, t0.Add(d)); err != nil {
			s.Fatal(err)
		}
	}
	postpone(10 * time.Minute)
	s.wantDue(10*time.Minute-time.Microsecond, "ben")
	s.wantDue(10*time.Minute, "ben ann")
	postpone(5 * time.Minute) // it does not become due sooner
	s.wantDue(9*time.Minute, "ben")
	if err := s.Digests.Done(s.Context(), ann, digest.Rule{Now: t0, Every: 1, DayEnd: t0.Add(time.Hour)}); err != nil {
		s.Fatal(err)
	}
	s.wantDue(0, "ann")
}

// testMakeDue: a digest becomes due if its due time is later than this clock can have set. One that waits for the end of the day is
// not.
func testMakeDue(s *suite) {
	const longest = 8 * time.Minute
	for name, test := range map[string]struct {
		every    int // messages after which a digest is due; one was said
		postpone time.Duration
		ahead    time.Duration // how far ahead the clock was
		resume   bool          // also what was postponed for less than the longest time
		due      bool
	}{
		"the end of the day":                    {every: 2},
		"the end of the day, at a start":        {every: 2, resume: true},
		"postponed":                             {every: 1, postpone: 5 * time.Minute},
		"postponed, at a start":                 {every: 1, postpone: 5 * time.Minute, resume: true, due: true},
		"postponed at the end of a day":         {every: 2, postpone: 65 * time.Minute, resume: true, due: true},
		"postponed by a clock an hour ahead":    {every: 1, postpone: 5 * time.Minute, ahead: time.Hour, due: true},
		"due by a clock an hour ahead":          {every: 1, ahead: time.Hour, due: true},
		"the end of a day three days ahead":     {every: 2, ahead: 72 * time.Hour, due: true},
		"postponed by a clock two months ahead": {every: 2, postpone: 5 * time.Minute, ahead: 1440 * time.Hour, due: true},
	} {
		s.Run(name, func(t *testing.T) {
			user := memory.User{Namespace: ann.Namespace, ID: name} // of its own
			s := &suite{T: t, Stores: s.Stores}
			s.say(chat(user, name), test.every, "a")
			if test.postpone > 0 {
				if err := s.Digests.Postpone(t.Context(), user, t0.Add(test.postpone)); err != nil {
					t.Fatal(err)
				}
			}
			now := t0.Add(-test.ahead) // by the clock that is right, what was said was said now
			o := digest.Overdue{Now: now, Every: test.every, Longest: longest}
			if test.resume {
				o.Longest = 0
			}
			if err := s.Digests.MakeDue(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			due, _, err := s.Digests.Due(t.Context(), now, 10)
			if got := len(due) == 1 && due[0] == user; got != test.due || err != nil {
				t.Errorf("due are %v, %v, want %t", due, err, test.due)
			}
			if _, err := s.Digests.Forget(t.Context(), user); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// calls are calls of all methods.
func (s *suite) calls() storetest.Calls {
	d := s.Digests
	return storetest.Calls{
		"Pending": func(ctx context.Context) error {
			_, err := d.Pending(ctx, ann, digest.PendingQuery{Limit: 1})
			return err
		},
		"CountPending": func(ctx context.Context) error { _, err := d.CountPending(ctx, ann, everything, t0, t0); return err },
		"Save":         func(ctx context.Context) error { return d.Save(ctx, s.contribution(chat(ann, "s"), finding("x", 0))) },
		"Find":         func(ctx context.Context) error { _, err := d.Find(ctx, ann, everything, t0, t0); return err },
		"Newest":       func(ctx context.Context) error { _, err := d.Newest(ctx, ann, everything, t0); return err },
		"List":         func(ctx context.Context) error { _, _, err := d.List(ctx, ann, "", 1); return err },
		"Unremembered": func(ctx context.Context) error { _, err := d.Unremembered(ctx, ann); return err },
		"Remembered":   func(ctx context.Context) error { return d.Remembered(ctx, ann, map[string]string{"c1/0": "m"}) },
		"Due":          func(ctx context.Context) error { _, _, err := d.Due(ctx, t0, 1); return err },
		"Done":         func(ctx context.Context) error { return d.Done(ctx, ann, digest.Rule{Now: t0, DayEnd: t0}) },
		"Postpone":     func(ctx context.Context) error { return d.Postpone(ctx, ann, t0) },
		"MakeDue":      func(ctx context.Context) error { return d.MakeDue(ctx, digest.Overdue{Now: t0}) },
		"Forget":       func(ctx context.Context) error { _, err := d.Forget(ctx, ann); return err },
	}
}

// testUnknownUser: calls for an unknown user are not errors.
func testUnknownUser(s *suite) {
	for name, call := range s.calls() {
		if err := call(s.Context()); err != nil {
			s.Errorf("%s: %v", name, err)
		}
	}
}

func testUnavailable(s *suite) {
	s.say(chat(ann, "s"), 1, "a")
	s.Close()
	storetest.CheckUnavailable(s.T, s.calls())
}

func testCancelled(s *suite) {
	s.say(chat(ann, "s"), 1, "a")
	storetest.CheckCancelled(s.T, s.calls())
	s.save(s.contribution(chat(ann, "s"), finding("later", 1)))
}
