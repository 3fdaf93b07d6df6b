package decide

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Switch is a decider and a summariser that are chosen later: which ones depends on what the database says was used before,
// and that may not be readable yet. Until Use they answer with a *memory.TransientError, so that dialogues wait.
type Switch struct{ current atomic.Pointer[chosen] }

type chosen struct {
	decider    Decider
	summarizer Summarizer
}

// Use chooses.
func (s *Switch) Use(d Decider, m Summarizer) { s.current.Store(&chosen{d, m}) }

// Decider is the decider that will have been chosen.
func (s *Switch) Decider() Decider { return switchedDecider{s} }

// Summarizer is the summariser that will have been chosen.
func (s *Switch) Summarizer() Summarizer { return switchedSummarizer{s} }

func notChosen() error {
	return &memory.TransientError{Err: errors.New("the model is not chosen yet: that needs the database")}
}

type switchedDecider struct{ s *Switch }

func (d switchedDecider) Name() string {
	if c := d.s.current.Load(); c != nil {
		return c.decider.Name()
	}
	return ""
}

func (d switchedDecider) Decide(ctx context.Context, t Transcript) (Verdict, error) {
	if c := d.s.current.Load(); c != nil {
		return c.decider.Decide(ctx, t)
	}
	return Verdict{}, notChosen()
}

type switchedSummarizer struct{ s *Switch }

func (m switchedSummarizer) Name() string {
	if c := m.s.current.Load(); c != nil {
		return c.summarizer.Name()
	}
	return ""
}

func (m switchedSummarizer) Summarize(ctx context.Context, t Transcript, v Verdict) ([]memory.Statement, error) {
	if c := m.s.current.Load(); c != nil {
		return c.summarizer.Summarize(ctx, t, v)
	}
	return nil, notChosen()
}
