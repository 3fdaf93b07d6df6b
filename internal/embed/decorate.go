package embed

import (
	"context"
	"fmt"
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
)

// WithTimeout ends calls that take longer, with a *memory.TransientError. The caller's own deadline stays the context's
// error.
func WithTimeout(inner Embedder, limit time.Duration) Embedder { return timed{inner, limit} }

type timed struct {
	Embedder
	limit time.Duration
}

func (e timed) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	limited, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	vectors, err := e.Embedder.Embed(limited, purpose, texts)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		f := e.Fingerprint()
		return nil, &memory.TransientError{Err: fmt.Errorf("%s/%s: no answer within %s", f.Provider, f.Model, e.limit)}
	}
	return vectors, err
}

// WithBreaker makes calls through the breaker, as retry.Through does.
func WithBreaker(inner Embedder, b *breaker.Breaker) Embedder { return broken{inner, b} }

type broken struct {
	Embedder
	breaker *breaker.Breaker
}

func (e broken) Embed(ctx context.Context, purpose Purpose, texts []string) (vectors [][]float32, err error) {
	err = retry.Through(e.breaker, func() error {
		vectors, err = e.Embedder.Embed(ctx, purpose, texts)
		return err
	})
	return vectors, err
}

// WithObserver calls observe for every call that reached the provider. The context holds the tokens that the call cost.
func WithObserver(inner Embedder, observe func(ctx context.Context, started time.Time, err error)) Embedder {
	return observed{inner, observe}
}

type observed struct {
	Embedder
	observe func(context.Context, time.Time, error)
}

func (e observed) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	started := time.Now()
	ctx = context.WithValue(ctx, tokensKey{}, new(int64))
	vectors, err := e.Embedder.Embed(ctx, purpose, texts)
	e.observe(ctx, started, err)
	return vectors, err
}
