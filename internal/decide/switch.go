package decide

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// choiceTimeout is how long a dialogue waits for the choice before it is postponed. The choice usually follows soon after storage is open.
const choiceTimeout = 5 * time.Second

// Switch is a gate and an extractor that are chosen later: the choice depends on what the database says was used before, and the
// database may not be readable yet. Until Use is called they wait briefly and return a *memory.TransientError, so that dialogues stay
// pending.
type Switch struct {
	chosen    chan struct{} // closed by Use
	once      sync.Once
	gate      Gate
	extractor Extractor
}

var _ Together = (*Switch)(nil)

// NewSwitch returns a Switch without a choice.
func NewSwitch() *Switch { return &Switch{chosen: make(chan struct{})} }

// Use sets the choice. The gate may be nil. Use may be called once.
func (s *Switch) Use(g Gate, e Extractor) {
	s.once.Do(func() {
		s.gate, s.extractor = g, e
		close(s.chosen)
	})
}

// Chosen reports whether Use was called.
func (s *Switch) Chosen() bool {
	select {
	case <-s.chosen:
		return true
	default:
		return false
	}
}

// AsksModel reports whether a model was chosen, so that considering costs something.
func (s *Switch) AsksModel() bool {
	return s.Chosen() && (s.gate != nil || s.extractor.Name() != localName)
}

// localName is Name of the local extractor.
const localName = "rules"

// Name is the extractor's, or empty before the choice.
func (s *Switch) Name() string {
	if !s.Chosen() {
		return ""
	}
	return s.extractor.Name()
}

// Gate returns a gate that forwards to the chosen one. Without one everything is worth extracting.
func (s *Switch) Gate() Gate { return switchedGate{s} }

type switchedGate struct{ s *Switch }

func (g switchedGate) Name() string {
	if !g.s.Chosen() || g.s.gate == nil {
		return ""
	}
	return g.s.gate.Name()
}

func (g switchedGate) Open(ctx context.Context, in Input) (Verdict, error) {
	if err := g.s.wait(ctx); err != nil {
		return Verdict{}, err
	}
	if g.s.gate == nil {
		return Verdict{Remember: true}, nil
	}
	return g.s.gate.Open(ctx, in)
}

// Extract implements Extractor.
func (s *Switch) Extract(ctx context.Context, in Input) (Extraction, error) {
	if err := s.wait(ctx); err != nil {
		return Extraction{}, err
	}
	return s.extractor.Extract(ctx, in)
}

// ExtractTogether implements Together. An extractor that cannot is asked for each input.
func (s *Switch) ExtractTogether(ctx context.Context, inputs []Input) (list []Extraction, err error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	if together, ok := s.extractor.(Together); ok {
		return together.ExtractTogether(ctx, inputs)
	}
	for _, in := range inputs {
		found, err := s.extractor.Extract(ctx, in)
		if err != nil {
			return nil, err
		}
		list = append(list, found)
	}
	return list, nil
}

func (s *Switch) wait(ctx context.Context) error {
	timer := time.NewTimer(choiceTimeout)
	defer timer.Stop()
	select {
	case <-s.chosen:
		return nil
	case <-timer.C:
		return &memory.TransientError{Err: errors.New("no model is chosen yet; the log says why")}
	case <-ctx.Done():
		return ctx.Err()
	}
}
