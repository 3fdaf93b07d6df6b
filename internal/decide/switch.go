package decide

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// patience is how long a dialogue waits for the choice before it is postponed. The choice usually follows soon after storage is open.
const patience = 5 * time.Second

// Switch is a decider, a summariser and a reconciler that are chosen later: the choice depends on what the database says was used
// before, and the database may not be readable yet. Until Use is called they wait briefly and return a *memory.TransientError, so that
// dialogues stay pending.
type Switch struct {
	chosen     chan struct{} // closed by Use
	once       sync.Once
	decider    Decider
	summarizer Summarizer
	reconciler Reconciler
}

// NewSwitch returns a Switch without a choice.
func NewSwitch() *Switch { return &Switch{chosen: make(chan struct{})} }

// Use sets the choice. It may be called once.
func (s *Switch) Use(d Decider, m Summarizer, r Reconciler) {
	s.once.Do(func() {
		s.decider, s.summarizer, s.reconciler = d, m, r
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

// Decider returns a decider that forwards to the chosen one.
func (s *Switch) Decider() Decider { return switchedDecider{s} }

// Summarizer returns a summariser that forwards to the chosen one.
func (s *Switch) Summarizer() Summarizer { return switchedSummarizer{s} }

// Reconciler returns a reconciler that forwards to the chosen one.
func (s *Switch) Reconciler() Reconciler { return switchedReconciler{s} }

func (s *Switch) wait(ctx context.Context) error {
	timer := time.NewTimer(patience)
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

type switchedDecider struct{ s *Switch }

func (d switchedDecider) Name() string {
	if !d.s.Chosen() {
		return ""
	}
	return d.s.decider.Name()
}

func (d switchedDecider) Decide(ctx context.Context, t Transcript) (Verdict, error) {
	if err := d.s.wait(ctx); err != nil {
		return Verdict{}, err
	}
	return d.s.decider.Decide(ctx, t)
}

type switchedSummarizer struct{ s *Switch }

func (m switchedSummarizer) Name() string {
	if !m.s.Chosen() {
		return ""
	}
	return m.s.summarizer.Name()
}

func (m switchedSummarizer) Summarize(ctx context.Context, t Transcript, v Verdict) ([]memory.Statement, error) {
	if err := m.s.wait(ctx); err != nil {
		return nil, err
	}
	return m.s.summarizer.Summarize(ctx, t, v)
}

type switchedReconciler struct{ s *Switch }

func (r switchedReconciler) Name() string {
	if !r.s.Chosen() {
		return ""
	}
	return r.s.reconciler.Name()
}

func (r switchedReconciler) Probes(statement memory.Statement) []Probe {
	if !r.s.Chosen() {
		return nil // Reconcile returns the error
	}
	return r.s.reconciler.Probes(statement)
}

func (r switchedReconciler) Reconcile(ctx context.Context, input ReconcileInput) ([]Resolution, error) {
	if err := r.s.wait(ctx); err != nil {
		return nil, err
	}
	return r.s.reconciler.Reconcile(ctx, input)
}
