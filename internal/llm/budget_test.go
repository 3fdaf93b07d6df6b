package llm_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/provider"
)

// recordingBudget records reservations.
type recordingBudget struct {
	refuse            error
	reserved, settled []int64
}

func (p *recordingBudget) Reserve(_ context.Context, tokens int64) (func(int64), error) {
	p.reserved = append(p.reserved, tokens)
	return func(took int64) { p.settled = append(p.settled, took) }, p.refuse
}

func TestBudget(t *testing.T) {
	request := llm.Request{Prompt: strings.Repeat("word", 10) + "喝茶", Schema: map[string]any{"type": "object"}} // 10 + 2 + 5 tokens
	unavailable := errors.New("HTTP 500")
	for name, test := range map[string]struct {
		inner fake
		took  int64
	}{
		"the provider says":         {fake{resp: llm.Response{Text: "t", Usage: llm.Usage{InputTokens: 7, OutputTokens: 3}}}, 10},
		"the provider says nothing": {fake{resp: llm.Response{Text: "四个字词"}}, 17 + 4},
		"it fails, and costs":       {fake{resp: llm.Response{Usage: llm.Usage{InputTokens: 7}}, err: llm.ErrNoAnswer}, 7},
		"it fails":                  {fake{err: unavailable}, 0},
	} {
		p := &recordingBudget{}
		_, err := llm.WithBudget(&test.inner, p).Generate(t.Context(), request)
		if !errors.Is(err, test.inner.err) || len(p.settled) != 1 || p.reserved[0] != 17 || p.settled[0] != test.took {
			t.Errorf("%s: %v, reserved %v, settled %v", name, err, p.reserved, p.settled)
		}
	}
}

// TestBudgetRefusalDoesNotOpenTheBreaker: A refusal by the budget does not reach the provider or its breaker.
func TestBudgetRefusalDoesNotOpenTheBreaker(t *testing.T) {
	b := breaker.New(breaker.Config{
		Name: "decision", FailureThreshold: 1, OpenFor: time.Minute, IsFailure: provider.IsFailure,
		Log: slog.New(slog.DiscardHandler),
	})
	inner, p := &fake{}, &recordingBudget{refuse: &memory.BudgetError{Of: memory.BudgetOfUser, Until: time.Unix(0, 0)}}
	m := llm.WithBudget(llm.WithBreaker(inner, b), p)
	for range 3 {
		if _, err := m.Generate(t.Context(), llm.Request{}); !errors.Is(err, p.refuse) {
			t.Errorf("got %v", err)
		}
	}
	if inner.calls != 0 || b.Status().State != breaker.Closed || len(p.settled) != 0 {
		t.Errorf("%d calls, breaker %s, settled %v", inner.calls, b.Status().State, p.settled)
	}
	if provider.IsFailure(p.refuse) {
		t.Error("a refusal counts as a failure of the provider")
	}
}

func TestEstimateTokens(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "a": 1, "four": 1, "Hello, world!": 4, "我对花生过敏。": 7, "喝tea": 2} {
		if got := llm.EstimateTokens(text); got != want {
			t.Errorf("%q is estimated at %d tokens, want %d", text, got, want)
		}
	}
}
