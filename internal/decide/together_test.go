package decide_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// chorus is a model that reads a dialogue for several speakers at once, and keeps every message of each.
type chorus struct {
	mu       sync.Mutex
	together [][]string // the speakers of each call for several
	alone    []string   // the speaker of each call for one
	fail     []error    // of the next calls for several
	changed  chan struct{}
}

func (*chorus) Name() string { return "test/chorus" }

func (m *chorus) Extract(_ context.Context, in decide.Input) (decide.Extraction, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alone = append(m.alone, in.Speaker)
	return everything(in), nil
}

func (m *chorus) ExtractTogether(_ context.Context, inputs []decide.Input) ([]decide.Extraction, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var speakers []string
	list := make([]decide.Extraction, len(inputs))
	for i, in := range inputs {
		speakers, list[i] = append(speakers, in.Speaker), everything(in)
	}
	slices.Sort(speakers)
	m.together = append(m.together, speakers)
	if len(m.fail) > 0 {
		err := m.fail[0]
		m.fail = m.fail[1:]
		return nil, err
	}
	return list, nil
}

func everything(in decide.Input) (found decide.Extraction) {
	found.Reason, found.Checked = "as read", true
	for i, m := range in.Dialogue.Messages {
		if in.New(i) && m.Speaker == in.Speaker {
			found.Ops = append(found.Ops, decide.Op{Action: decide.OpAdd, Statement: memory.Statement{
				Text: m.Content, Kind: memory.KindFact, Importance: .5, MessageIDs: []string{in.Ref(i)}, ObservedAt: m.Time,
			}})
		}
	}
	return found
}

func newChorus(t *testing.T, m *chorus, change ...func(*decide.Deps, *decide.Options)) *system {
	t.Helper()
	return newSystem(t, &judge{}, append([]func(*decide.Deps, *decide.Options){func(deps *decide.Deps, options *decide.Options) {
		m.changed = make(chan struct{}, 1000)
		deps.Extractor, deps.Queue = m, watched{deps.Queue, m.changed}
		options.AsksModel = func() bool { return true }
	}}, change...)...)
}

// remembered waits until each person's words are remembered, as theirs alone.
func (s *system) remembered(t *testing.T, m *chorus, id string, people ...string) {
	t.Helper()
	for _, person := range people {
		if final := s.final(t, m, person, id); final.State != memory.StateRemembered {
			t.Errorf("%s: %s, %+v", person, final.State, final.Outcome)
		}
		if got := s.stored(t, person); !slices.Equal(got, []string{"words of " + person}) {
			t.Errorf("%s is remembered with %q", person, got)
		}
	}
}

// final waits for the end of a consideration.
func (s *system) final(t *testing.T, m *chorus, person, id string) memory.Consideration {
	t.Helper()
	for {
		c, err := s.queue.Get(t.Context(), user(person), id, memory.Everything())
		if err != nil {
			t.Fatal(err)
		}
		if c.State.Final() {
			return c
		}
		<-m.changed
	}
}

// TestGroupIsAskedOnce: A model is asked once about a dialogue of several speakers, and each keeps what was theirs.
func TestGroupIsAskedOnce(t *testing.T) {
	people := []string{"alice", "bob", "carol"}
	for name, workers := range map[string]int{"one after another": 1, "at the same time": 4} {
		t.Run(name, func(t *testing.T) {
			m := &chorus{}
			s := newChorus(t, m, func(_ *decide.Deps, o *decide.Options) { o.Pool.Workers = workers })
			s.remembered(t, m, s.consider(t, request(time.Minute, people...)).ID, people...)
			if len(m.together) != 1 || !slices.Equal(m.together[0], people) || len(m.alone) > 0 {
				t.Errorf("asked for %q together, and for %q alone", m.together, m.alone)
			}
		})
	}
}

// TestGroupWhenTheModelFails: A model that is away is asked again for all; one whose answer for all is unusable, for each.
func TestGroupWhenTheModelFails(t *testing.T) {
	people := []string{"alice", "bob", "carol"}
	for name, test := range map[string]struct {
		err      error
		together int
		alone    bool
	}{
		"away":     {&memory.TransientError{Err: errors.New("away")}, 2, false},
		"unusable": {errors.New("it holds no JSON"), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &chorus{fail: []error{test.err}}
			s := newChorus(t, m, func(_ *decide.Deps, o *decide.Options) { o.Pool.Workers = 1 })
			s.remembered(t, m, s.consider(t, request(0, people...)).ID, people...)
			if len(m.together) < test.together || (len(m.alone) > 0) != test.alone {
				t.Errorf("asked for %q together, and for %q alone", m.together, m.alone)
			}
		})
	}
}

// TestGroupWithoutThoseWhoAreNotReady: Who is paused, or reads the days in another time zone, is not part of the call.
func TestGroupWithoutThoseWhoAreNotReady(t *testing.T) {
	m := &chorus{}
	s := newChorus(t, m, func(_ *decide.Deps, o *decide.Options) { o.Pool.Workers = 1 })
	for person, change := range map[string]func(*memory.Settings){
		"bob": func(settings *memory.Settings) { settings.Paused, settings.UpdatedAt = true, time.Now() },
		"dan": func(settings *memory.Settings) { settings.TimeZone, settings.UpdatedAt = "Asia/Tokyo", time.Now() },
	} {
		if _, err := s.settings.Update(t.Context(), user(person), change); err != nil {
			t.Fatal(err)
		}
	}
	s.remembered(t, m, s.consider(t, request(0, "alice", "bob", "carol", "dan")).ID, "alice", "carol", "dan")
	if want := []string{"alice", "carol"}; len(m.together) != 1 || !slices.Equal(m.together[0], want) || !slices.Equal(m.alone, []string{"dan"}) {
		t.Errorf("asked for %q together, and for %q alone", m.together, m.alone)
	}
	if got := s.stored(t, "bob"); len(got) > 0 {
		t.Errorf("bob is remembered with %q", got)
	}
}
