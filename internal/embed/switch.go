package embed

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Switch is an embedder that is chosen later: which one depends on what the database has, and that may not be readable
// yet. Until Use it answers with a *memory.TransientError and has no fingerprint.
type Switch struct{ current atomic.Pointer[Embedder] }

// Use chooses the embedder.
func (s *Switch) Use(e Embedder) { s.current.Store(&e) }

// Fingerprint is that of the embedder chosen, or the zero value.
func (s *Switch) Fingerprint() Fingerprint {
	if e := s.current.Load(); e != nil {
		return (*e).Fingerprint()
	}
	return Fingerprint{}
}

// Calibration is that of the embedder chosen, or the zero value.
func (s *Switch) Calibration() Calibration {
	if e := s.current.Load(); e != nil {
		return (*e).Calibration()
	}
	return Calibration{}
}

// Embed embeds with the embedder chosen.
func (s *Switch) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	if e := s.current.Load(); e != nil {
		return (*e).Embed(ctx, purpose, texts)
	}
	return nil, &memory.TransientError{Err: errors.New("the embedder is not chosen yet: that needs the database")}
}
