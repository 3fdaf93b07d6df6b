package embed_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/provider"
)

func newBreaker() *breaker.Breaker {
	return breaker.New(breaker.Config{
		Name: "embedding", FailureThreshold: 2, OpenFor: time.Minute, IsFailure: provider.IsFailure, Log: slog.New(slog.DiscardHandler),
	})
}

// TestTimeoutIsAProviderFailure: The embedder's own timeout is a failure of the provider, the caller's deadline is not.
func TestTimeoutIsAProviderFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := embed.WithTimeout(&fake{delay: time.Hour}, 30*time.Second)
		began := time.Now()
		_, err := e.Embed(t.Context(), embed.ForQuery, []string{"a"})
		if !provider.IsFailure(err) || errors.Is(err, context.DeadlineExceeded) || err.Error() != "fake/length: no answer within 30s" {
			t.Errorf("our own deadline: %v", err)
		}
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("waited %s", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Embed(ctx, embed.ForQuery, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) || provider.IsFailure(err) {
			t.Errorf("the caller's deadline: %v", err)
		}
		check(t, embed.WithTimeout(&fake{delay: time.Second}, 30*time.Second), "a", "bb")
	})
}

func TestBreakerOpensOnProviderFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer error
		inner := &fake{answer: func([]string) ([][]float32, error) { return nil, answer }}
		b := newBreaker()
		e := embed.WithBreaker(inner, b)
		ask := func(err error) error {
			answer = err
			_, err = e.Embed(t.Context(), embed.ForQuery, []string{"a"})
			return err
		}
		// A caller's cancellation and a bad text do not open the breaker.
		for range 5 {
			for _, harmless := range []error{context.Canceled, context.DeadlineExceeded, errors.New("HTTP 400")} {
				if err := ask(harmless); !errors.Is(err, harmless) {
					t.Errorf("%v was returned as %v", harmless, err)
				}
			}
		}
		down := &memory.TransientError{Err: errors.New("HTTP 503"), RetryAfter: time.Second}
		for range 2 {
			if err := ask(down); !errors.Is(err, down) {
				t.Errorf("%v was returned as %v", down, err)
			}
		}
		calls := len(inner.calls)
		err := ask(nil)
		open, ok := errors.AsType[*breaker.OpenError](err)
		if !ok || !provider.IsFailure(err) || open.Reason != "HTTP 503" || !strings.Contains(err.Error(), "embedding is unavailable") {
			t.Errorf("while open: %v", err)
		}
		if len(inner.calls) != calls {
			t.Error("the open breaker admitted a call")
		}
		time.Sleep(time.Minute + time.Second)
		inner.answer = nil
		check(t, e, "a")
		if s := b.Status(); s.State != breaker.Closed {
			t.Errorf("after the recovery %+v", s)
		}
	})
}

func TestObserverSeesEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fake{delay: time.Second}
		type call struct {
			tokens  int64
			err     error
			started time.Time
			value   any
		}
		var calls []call
		e := embed.WithObserver(counting{inner}, func(ctx context.Context, started time.Time, err error) {
			calls = append(calls, call{embed.Tokens(ctx), err, started, ctx.Value(key{})})
		})
		began := time.Now()
		ctx := context.WithValue(t.Context(), key{}, "the caller's")
		if _, err := e.Embed(ctx, embed.ForQuery, []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		down := errors.New("down")
		inner.answer = func([]string) ([][]float32, error) { return nil, down }
		if _, err := e.Embed(ctx, embed.ForQuery, []string{"a"}); !errors.Is(err, down) {
			t.Fatal(err)
		}
		want := []call{{2, nil, began, "the caller's"}, {1, down, began.Add(time.Second), "the caller's"}}
		if len(calls) != 2 || calls[0] != want[0] || calls[1] != want[1] {
			t.Errorf("observed %v, want %v", calls, want)
		}
	})
	embed.AddTokens(t.Context(), 1) // without an observer nothing is counted
	if n := embed.Tokens(t.Context()); n != 0 {
		t.Errorf("%d tokens without an observer", n)
	}
}

// counting is an embedder for which each text costs one token.
type counting struct{ embed.Embedder }

func (c counting) Embed(ctx context.Context, purpose embed.Purpose, texts []string) ([][]float32, error) {
	for range texts {
		embed.AddTokens(ctx, 1)
	}
	return c.Embedder.Embed(ctx, purpose, texts)
}
