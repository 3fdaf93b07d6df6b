package llm

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
func WithTimeout(inner Model, limit time.Duration) Model { return timed{inner, limit} }

type timed struct {
	Model
	limit time.Duration
}

func (m timed) Generate(ctx context.Context, r Request) (Response, error) {
	limited, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	resp, err := m.Model.Generate(limited, r)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return resp, &memory.TransientError{Err: fmt.Errorf("%s: no answer within %s", m.Name(), m.limit)}
	}
	return resp, err
}

// WithBreaker makes calls through the breaker, as retry.Through does.
func WithBreaker(inner Model, b *breaker.Breaker) Model { return broken{inner, b} }

type broken struct {
	Model
	breaker *breaker.Breaker
}

func (m broken) Generate(ctx context.Context, r Request) (resp Response, err error) {
	err = retry.Through(m.breaker, func() error {
		resp, err = m.Model.Generate(ctx, r)
		return err
	})
	return resp, err
}

// WithObserver calls observe for every call that reached the provider.
func WithObserver(inner Model, observe func(ctx context.Context, started time.Time, u Usage, err error)) Model {
	return observed{inner, observe}
}

type observed struct {
	Model
	observe func(context.Context, time.Time, Usage, error)
}

func (m observed) Generate(ctx context.Context, r Request) (Response, error) {
	started := time.Now()
	resp, err := m.Model.Generate(ctx, r)
	m.observe(ctx, started, resp.Usage, err)
	return resp, err
}

// Budget limits the tokens that calls may take.
type Budget interface {
	// Reserve reserves the tokens that a call needs at least. It returns a *memory.BudgetError if they exceed the budget, or
	// memory.ErrUnavailable if the budget cannot be read. The caller calls settle once, with the tokens that were used.
	Reserve(ctx context.Context, tokens int64) (settle func(tokens int64), err error)
}

// WithBudget refuses calls whose prompt exceeds the remaining budget, with a *memory.BudgetError. That is no
// failure of the provider, so it belongs outside of the breaker.
func WithBudget(inner Model, b Budget) Model { return budgeted{inner, b} }

type budgeted struct {
	Model
	budget Budget
}

func (m budgeted) Generate(ctx context.Context, r Request) (Response, error) {
	estimate := r.estimate()
	settle, err := m.budget.Reserve(ctx, estimate)
	if err != nil {
		return Response{}, err
	}
	took := int64(0)
	defer func() { settle(took) }() // also after a panic: the reservation must end
	resp, err := m.Model.Generate(ctx, r)
	took = resp.Usage.InputTokens + resp.Usage.OutputTokens
	if took == 0 && err == nil { // the provider does not say
		took = estimate + EstimateTokens(resp.Text)
	}
	return resp, err
}
