package decide_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// scribe is a model that keeps every new message that begins with "Fact". It replaces the first one when the last says so.
type scribe struct {
	mu    sync.Mutex
	calls [][]string // the new messages of each
}

func (*scribe) Name() string { return "test/scribe" }

func (m *scribe) Extract(_ context.Context, in decide.Input) (decide.Extraction, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var read []string
	var ops []decide.Op
	for i, said := range in.Dialogue.Messages {
		if !in.New(i) {
			continue
		}
		read = append(read, said.Content)
		if strings.HasPrefix(said.Content, "Fact") {
			op := decide.Op{Action: decide.OpAdd, Statement: memory.Statement{
				Text: said.Content, Kind: memory.KindFact, Importance: 0.5, MessageIDs: []string{in.Ref(i)}, ObservedAt: said.Time,
			}}
			if strings.HasSuffix(said.Content, "instead") {
				op.Action, op.IDs = decide.OpUpdate, []string{decide.OpID(0)}
			}
			ops = append(ops, op)
		}
	}
	m.calls = append(m.calls, read)
	return decide.Extraction{Ops: ops, Reason: "as read", Checked: true}, nil
}

func (m *scribe) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls)
}

// stopwatch is a clock that a test moves.
type stopwatch struct {
	mu       sync.Mutex
	now      time.Time
	attempts chan struct{} // receives when one ended
}

func (c *stopwatch) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stopwatch) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func twoMinutes(string) decide.Debounce { return decide.Debounce{Pause: 2 * time.Minute, Messages: 20} }

func newDebounced(t *testing.T, batched ...func(int)) (*system, *scribe, *stopwatch) {
	t.Helper()
	m, clock := &scribe{}, &stopwatch{now: time.Now(), attempts: make(chan struct{}, 1000)}
	s := newSystem(t, &judge{}, func(deps *decide.Deps, options *decide.Options) {
		deps.Extractor, deps.Queue = m, watched{deps.Queue, clock.attempts}
		options.Now = clock.read
		options.Debounce = twoMinutes
		for _, count := range batched {
			options.Batched = count
		}
		options.AsksModel = func() bool { return true }
		options.Urgent = func(tr decide.Transcript) bool {
			return slices.ContainsFunc(tr.Dialogue.Messages, func(m memory.Message) bool { return m.Content == "Fact urgent" })
		}
	})
	return s, m, clock
}

// say hands over one message without waiting.
func (s *system) say(t *testing.T, clock *stopwatch, text string) memory.Consideration {
	t.Helper()
	r := request(0, "alice")
	r.Dialogue.Messages[0].Content, r.Dialogue.Messages[0].Time = text, clock.read()
	return s.consider(t, r)
}

// watched is a queue that reports what was finished or postponed.
type watched struct {
	queue.Store
	changed chan struct{}
}

func (w watched) Finish(ctx context.Context, seq int64, state memory.State, outcome memory.Outcome, at time.Time) error {
	defer func() { w.changed <- struct{}{} }()
	return w.Store.Finish(ctx, seq, state, outcome, at)
}

func (w watched) Postpone(ctx context.Context, seq int64, due time.Time, outcome memory.Outcome, at time.Time) error {
	defer func() { w.changed <- struct{}{} }()
	return w.Store.Postpone(ctx, seq, due, outcome, at)
}

// ended waits until the consideration is final. After every attempt it moves the clock to the next one.
func (s *system) ended(t *testing.T, clock *stopwatch, id string) memory.Consideration {
	t.Helper()
	for {
		c, err := s.queue.Get(t.Context(), user("alice"), id, memory.Everything())
		if err != nil {
			t.Fatal(err)
		}
		if c.State.Final() {
			return c
		}
		<-clock.attempts
		clock.advance(time.Second)
		s.Wake()
	}
}

// TestDialoguesAreConsideredTogether: dialogues within the delay are read by one call, and each has its own outcome, even when storing
// fails in between.
func TestDialoguesAreConsideredTogether(t *testing.T) {
	for name, failures := range map[string][]error{
		"": nil, "storing fails": {&memory.TransientError{Err: errors.New("away")}},
	} {
		t.Run(name, func(t *testing.T) {
			batched := 0
			s, m, clock := newDebounced(t, func(n int) { batched += n })
			var accepted []memory.Consideration
			for _, text := range []string{"Fact one", "Hello", "Fact two", "Fact one, instead"} {
				accepted = append(accepted, s.say(t, clock, text))
				clock.advance(20 * time.Second)
			}
			if due := accepted[0].NextAttemptAt.Sub(accepted[0].CreatedAt); due != 2*time.Minute || m.asked() != 0 {
				t.Fatalf("due after %s, %d calls", due, m.asked())
			}
			s.memories.fail(failures...)
			clock.advance(2*time.Minute + time.Second)
			s.Wake()
			for i, c := range accepted {
				got := s.ended(t, clock, c.ID)
				want := memory.StateRemembered
				if i == 1 {
					want = memory.StateSkipped
				}
				if got.State != want || got.Outcome.DecidedBy != "test/scribe" {
					t.Errorf("%d: %s, %+v", i, got.State, got.Outcome)
				}
				with := accepted[0].ID
				if i == 0 {
					with = accepted[3].ID
				}
				if !strings.Contains(got.Outcome.Reason, "considered together with "+with) {
					t.Errorf("%d: reason %q does not name %s", i, got.Outcome.Reason, with)
				}
				for _, change := range got.Outcome.Changes {
					found, err := s.store.Get(t.Context(), user("alice"), change.MemoryID, memory.Everything())
					if err != nil {
						t.Fatal(err)
					}
					if p := found.Provenance; p.ConsiderationID != c.ID || !slices.Equal(p.MessageIDs, []string{"#0"}) {
						t.Errorf("%d: %q rests on %s %q", i, found.Text, p.ConsiderationID, p.MessageIDs)
					}
				}
			}
			if m.asked() != 1 || len(m.calls[0]) != 4 || batched != 3 {
				t.Errorf("the model was asked %q, and %d dialogues are counted with the first", m.calls, batched)
			}
			if last := s.ended(t, clock, accepted[3].ID).Outcome.Changes; len(last) != 1 || last[0].Action != memory.ActionUpdated {
				t.Errorf("the last one changed %+v", last)
			}
			if got := s.stored(t, "alice"); len(got) != 2 { // one was replaced
				t.Errorf("stored %q", got)
			}
		})
	}
}

// TestBatchSurvivesARestart: after a stop between saving the plans of dialogues and applying them, the plans are applied and no model is
// asked again.
func TestBatchSurvivesARestart(t *testing.T) {
	var deps decide.Deps
	var options decide.Options
	m, clock := &scribe{}, &stopwatch{now: time.Now(), attempts: make(chan struct{}, 1000)}
	s := newSystem(t, &judge{}, func(d *decide.Deps, o *decide.Options) {
		d.Extractor, d.Queue = m, watched{d.Queue, clock.attempts}
		o.Now, o.Debounce = clock.read, twoMinutes
		o.AsksModel, o.Urgent = func() bool { return true }, func(decide.Transcript) bool { return false }
		deps, options = *d, *o
	})
	accepted := []memory.Consideration{s.say(t, clock, "Fact one"), s.say(t, clock, "Fact two"), s.say(t, clock, "Fact one, instead")}
	s.memories.fail(&memory.TransientError{Err: errors.New("away")})
	clock.advance(2*time.Minute + time.Second)
	s.Wake()
	<-clock.attempts // the plans are saved, and the first could not be applied
	s.Stop(t.Context())
	s.Considerer = decide.NewConsiderer(deps, options)
	s.Start()
	for i, c := range accepted {
		if got := s.ended(t, clock, c.ID); got.State != memory.StateRemembered || len(got.Outcome.Changes) != 1 {
			t.Errorf("%d: %s, %+v", i, got.State, got.Outcome)
		}
	}
	if got := s.stored(t, "alice"); len(got) != 2 || m.asked() != 1 {
		t.Errorf("stored %q after %d calls", got, m.asked())
	}
}

// TestUrgentEndsTheDelay: what is urgent, and a wait, make the line due.
func TestUrgentEndsTheDelay(t *testing.T) {
	for _, name := range []string{"urgent", "wait", "retry", "many"} {
		t.Run(name, func(t *testing.T) {
			s, m, clock := newDebounced(t)
			first := s.say(t, clock, "Fact one")
			switch name {
			case "urgent":
				s.say(t, clock, "Fact urgent")
			case "wait":
				s.consider(t, request(time.Minute, "alice"))
			case "retry":
				if _, err := s.Retry(t.Context(), user("alice"), first.ID, memory.Everything()); err != nil {
					t.Fatal(err)
				}
			case "many":
				for range 19 {
					s.say(t, clock, "Hello")
				}
			}
			if got := s.ended(t, clock, first.ID); got.State != memory.StateRemembered || m.asked() != 1 {
				t.Errorf("%s, %+v, %d calls", got.State, got.Outcome, m.asked())
			}
		})
	}
}
