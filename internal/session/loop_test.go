package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// TestConsidersAfterAPause: Pending messages are considered after a pause. A new message starts the pause again.
func TestConsidersAfterAPause(t *testing.T) {
	bubble(t, func(w *world) {
		w.restart()
		defer w.stop()
		start := time.Now()
		s := scope("ann", "s")
		w.say(s, "one", "A: two")
		w.pass(20 * time.Minute)
		w.say(s, "three")
		w.pass(30*time.Minute - time.Second)
		if got := w.taker.since(start); len(got) != 0 {
			w.Errorf("considered after %v", got)
		}
		w.pass(time.Second)
		if got := w.taker.since(start); !slices.Equal(got, []time.Duration{50 * time.Minute}) {
			w.Errorf("considered after %v", got)
		}
		w.pass(48 * time.Hour)
		if got := w.taker.words(); !slices.Equal(got, []string{"one", "three"}) || len(w.taker.since(start)) != 1 {
			w.Errorf("considered %q after %v", got, w.taker.since(start))
		}
	})
}

// TestConsidersAfterSoManyMessages: The session's own number of messages takes precedence over the user's and the policy's.
func TestConsidersAfterSoManyMessages(t *testing.T) {
	bubble(t, func(w *world) {
		w.restart()
		defer w.stop()
		three, never := 3, 0
		w.set("ann", func(s *memory.Settings) { s.MemorizeEvery = &three })
		w.set("eve", func(s *memory.Settings) { s.MemorizeEvery = &never })
		w.policy("quiet", session.Policy{Enabled: true, Idle: time.Minute})
		group := func(userID string) memory.Scope {
			return memory.Scope{Namespace: namespace, UserID: userID, SessionID: "g", Channel: memory.Channel{Kind: memory.ChannelGroup, ID: "g"}}
		}
		expect := func(what string, want ...string) {
			w.Helper()
			synctest.Wait()
			w.pass(time.Second)
			if got := w.taker.words(); !slices.Equal(got, want) {
				w.Errorf("%s: considered are %q, want %q", what, got, want)
			}
		}
		w.say(scope("ann", "a"), "a1", "A: yes", "a2", "A: yes")
		expect("two of ann's three")
		w.say(scope("ann", "a"), "a3")
		expect("all three", "a1", "a2", "a3")
		for i := range 12 {
			w.say(scope("eve", "e"), fmt.Sprint("e", i))
		}
		quiet := scope("bob", "q")
		quiet.Namespace = "quiet"
		w.say(quiet, "q1")
		w.pass(48 * time.Hour)
		expect("eve and the quiet namespace want none", "a1", "a2", "a3")
		for i := range 9 {
			w.say(group("bob"), fmt.Sprint("g", i))
		}
		w.say(group("eve"), "not for me")
		expect("in a group no user's own number applies", "a1", "a2", "a3", "g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "not for me")
	})
}

// TestPausedUserIsNotConsidered: Messages of a paused user are stored and never considered.
func TestPausedUserIsNotConsidered(t *testing.T) {
	bubble(t, func(w *world) {
		w.restart()
		defer w.stop()
		w.set("ann", func(s *memory.Settings) { s.Paused = true })
		s := scope("ann", "s")
		w.say(s, "secret", "A: yes")
		w.set("ann", func(s *memory.Settings) { s.Paused = false })
		w.say(s, "public")
		w.pass(time.Hour)
		if got := w.taker.words(); !slices.Equal(got, []string{"public"}) {
			w.Errorf("considered %q", got)
		}
		if got := contents(w.window(s).Messages); !slices.Equal(got, []string{"secret", "yes", "public"}) {
			w.Errorf("the window is %q", got)
		}
	})
}

// TestRestartResumesDueWork: Work that was due when the process ended is done by the next one.
func TestRestartResumesDueWork(t *testing.T) {
	bubble(t, func(w *world) {
		s := scope("ann", "s")
		for i := range 10 {
			w.say(s, fmt.Sprint(i))
		}
		other := scope("ann", "t")
		w.say(other, "left")
		w.pass(12 * time.Hour)
		w.restart()
		w.pass(time.Second)
		w.stop()
		if got := w.taker.words(); len(got) != 11 {
			w.Errorf("considered %q", got)
		}
	})
}

// TestFailedWorkIsRetriedLessAndLessOften: Work that fails is retried after growing pauses. A full queue postpones it for as long as it
// asks; a delay that a provider asks for does not (the circuit breaker observes it).
func TestFailedWorkIsRetriedLessAndLessOften(t *testing.T) {
	bubble(t, func(w *world) {
		transient := &memory.TransientError{Err: errors.New("rate limit")}
		w.taker.errors = []error{
			transient, transient, transient, &memory.TransientError{Err: errors.New("rate limit"), RetryAfter: 24 * time.Hour},
			&memory.OverloadError{Limit: "full", RetryAfter: 7 * time.Minute}, errors.New("a bug"), fmt.Errorf("now: %w", memory.ErrUnavailable),
		}
		w.restart()
		defer w.stop()
		start := time.Now()
		for i := range 10 {
			w.say(scope("ann", "s"), fmt.Sprint(i))
		}
		w.pass(5 * time.Hour)
		w.taker.mu.Lock()
		calls := w.taker.calls
		w.taker.mu.Unlock()
		if len(calls) != 8 || len(w.taker.words()) != 10 {
			w.Fatalf("tried after %v, considered %q", w.taker.since(start), w.taker.words())
		}
		for i, least := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 7 * time.Minute, time.Hour, 5 * time.Second} {
			if pause := calls[i+1].Sub(calls[i]); pause < least || pause > 4*least+time.Minute {
				w.Errorf("pause %d is %s, want about %s", i, pause, least)
			}
		}
		for i := range 10 {
			w.say(scope("ann", "s"), fmt.Sprint("more ", i))
		}
		w.pass(time.Second)
		if got := w.taker.words(); len(got) != 20 {
			w.Errorf("at the end considered %q", got)
		}
	})
}

// outage is a store that is unavailable from time to time.
type outage struct {
	session.Store
	down  atomic.Bool
	asked atomic.Int64
}

func (o *outage) Due(ctx context.Context, now time.Time, limit int, kinds ...session.DueKind) ([]session.Due, time.Time, error) {
	o.asked.Add(1)
	if o.down.Load() {
		return nil, time.Time{}, memory.ErrUnavailable
	}
	return o.Store.Due(ctx, now, limit, kinds...)
}

// TestSurvivesStorageOutage: The service survives a storage outage. It retries periodically, and immediately when it is notified.
func TestSurvivesStorageOutage(t *testing.T) {
	bubble(t, func(w *world) {
		store := &outage{Store: w.store}
		w.writing.Store = store
		for i := range 10 {
			w.say(scope("ann", "s"), fmt.Sprint(i))
		}
		store.down.Store(true)
		w.restart()
		defer w.stop()
		w.pass(time.Minute)
		if n := store.asked.Load(); n < 10 || n > 15 {
			w.Errorf("asked %d times in a minute of outage", n)
		}
		store.down.Store(false)
		w.Wake()
		w.pass(100 * time.Millisecond)
		if got := w.taker.words(); len(got) != 10 {
			w.Errorf("after the outage considered %q", got)
		}
		before := store.asked.Load()
		w.pass(24 * time.Hour)
		if n := store.asked.Load() - before; n > 60 {
			w.Errorf("asked %d times on a day without work", n)
		}
	})
}

// TestSessionThatStaysDueBlocksNothing: A session that stays due although it was considered keeps the service neither busy nor from other
// sessions.
func TestSessionThatStaysDueBlocksNothing(t *testing.T) {
	bubble(t, func(w *world) {
		var calls atomic.Int64
		w.parts.Considerer = considering(func(ctx context.Context, namespace, sessionID string) error {
			if strings.HasSuffix(sessionID, "stuck") {
				calls.Add(1)
				return nil
			}
			return w.taker.ConsiderPending(ctx, namespace, sessionID)
		})
		w.restart()
		defer w.stop()
		for i := range 10 {
			w.say(scope("ann", "stuck"), fmt.Sprint(i))
			w.say(scope("ann", "other"), fmt.Sprint("o", i))
		}
		w.pass(10 * time.Minute)
		if n := calls.Load(); n < 100 || n > 700 {
			w.Errorf("called %d times in ten minutes", n)
		}
		if got := w.taker.words(); len(got) != 10 {
			w.Errorf("of the other session considered %q", got)
		}
	})
}

type considering func(ctx context.Context, namespace, sessionID string) error

func (f considering) ConsiderPending(ctx context.Context, namespace, sessionID string) error {
	return f(ctx, namespace, sessionID)
}

// TestStopWaitsThenCancels: Running work may finish within a limit and is cancelled after it. Cancelled work is due again, also after a
// panic.
func TestStopWaitsThenCancels(t *testing.T) {
	bubble(t, func(w *world) {
		var began, ended atomic.Int64
		w.parts.Considerer = considering(func(ctx context.Context, _, sessionID string) error {
			if strings.HasSuffix(sessionID, "panic") {
				panic("a bug")
			}
			began.Add(1)
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		})
		w.restart()
		for i := range 10 {
			w.say(scope("ann", "panic"), fmt.Sprint(i))
			w.say(scope("ann", "slow"), fmt.Sprint(i))
		}
		w.pass(time.Minute)
		if began.Load() != 1 || ended.Load() != 0 {
			w.Errorf("%d began, %d ended", began.Load(), ended.Load())
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		w.Stop(ctx)
		if d := time.Since(start); d != 10*time.Second || ended.Load() != 1 {
			w.Errorf("stopped after %s, %d ended", d, ended.Load())
		}
		w.parts.Considerer = w.taker
		w.restart()
		defer w.stop()
		w.pass(time.Second)
		if got := w.taker.words(); len(got) != 10 {
			w.Errorf("after the restart considered %q", got)
		}
	})
}

// TestRetentionIsPerNamespace: Messages expire after their namespace's retention. Without one they are kept.
func TestRetentionIsPerNamespace(t *testing.T) {
	bubble(t, func(w *world) {
		w.policy("day", session.Policy{Enabled: true, Retention: 24 * time.Hour})
		w.policy("off", session.Policy{Enabled: true, Retention: 48 * time.Hour}) // disabled below, after messages were stored
		w.restart()
		defer w.stop()
		left := func(namespace string) int64 {
			s := scope("ann", "s")
			s.Namespace = namespace
			page, err := w.store.Messages(w.Context(), viewer(s), "s", session.MessageQuery{Limit: 1})
			if errors.Is(err, memory.ErrNotFound) {
				return 0
			}
			if err != nil {
				w.Fatal(err)
			}
			return page.Total
		}
		for _, namespace := range []string{namespace, "day", "off"} {
			s := scope("ann", "s")
			s.Namespace = namespace
			w.say(s, "one", "two")
		}
		w.policy("off", session.Policy{Retention: 48 * time.Hour})
		w.pass(12 * time.Hour)
		day := scope("ann", "s")
		day.Namespace = "day"
		w.say(day, "three")
		for _, test := range []struct {
			after time.Duration
			want  [3]int64
		}{
			{11 * time.Hour, [3]int64{2, 3, 2}},
			{2*time.Hour + time.Minute, [3]int64{2, 1, 2}},
			{12 * time.Hour, [3]int64{2, 0, 2}},
			{12 * time.Hour, [3]int64{2, 0, 0}},
			{1000 * time.Hour, [3]int64{2, 0, 0}},
		} {
			w.pass(test.after)
			if got := [3]int64{left(namespace), left("day"), left("off")}; got != test.want {
				w.Errorf("after another %s there are %v messages, want %v", test.after, got, test.want)
			}
			if c := w.window(day); c.Dropped != 0 { // deleted messages are not reported
				w.Errorf("%d are reported as dropped", c.Dropped)
			}
		}
	})
}

// TestDisabledSessionsAreNotConsidered: While sessions are disabled nothing is considered. It is when they are enabled again.
func TestDisabledSessionsAreNotConsidered(t *testing.T) {
	bubble(t, func(w *world) {
		w.restart()
		defer w.stop()
		w.say(scope("ann", "s"), "one")
		on := w.policies[namespace]
		w.policy(namespace, session.Policy{})
		w.pass(3 * time.Hour)
		if got := w.taker.words(); len(got) != 0 {
			w.Errorf("considered %q", got)
		}
		w.policy(namespace, on)
		w.pass(2 * time.Hour)
		if got := w.taker.words(); len(got) != 1 {
			w.Errorf("considered %q", got)
		}
	})
}
