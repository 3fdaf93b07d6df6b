package llm_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/provider"
)

// fake answers after a delay.
type fake struct {
	delay time.Duration
	resp  llm.Response
	err   error
	calls int
}

func (*fake) Name() string { return "fake/m" }

func (f *fake) Generate(ctx context.Context, _ llm.Request) (llm.Response, error) {
	f.calls++
	select {
	case <-time.After(f.delay):
		return f.resp, f.err
	case <-ctx.Done():
		return llm.Response{}, ctx.Err()
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := llm.WithTimeout(&fake{delay: time.Hour}, 30*time.Second)
		_, err := m.Generate(t.Context(), llm.Request{})
		if !provider.IsFailure(err) || errors.Is(err, context.DeadlineExceeded) || err.Error() != "fake/m: no answer within 30s" {
			t.Errorf("our own deadline: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Generate(ctx, llm.Request{}); !errors.Is(err, context.DeadlineExceeded) || provider.IsFailure(err) {
			t.Errorf("the caller's deadline: %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := m.Generate(ctx, llm.Request{}); !errors.Is(err, context.Canceled) || provider.IsFailure(err) {
			t.Errorf("a caller that leaves: %v", err)
		}
		resp, err := llm.WithTimeout(&fake{delay: time.Second, resp: llm.Response{Text: "t"}}, 30*time.Second).Generate(t.Context(), llm.Request{})
		if err != nil || resp.Text != "t" {
			t.Errorf("in time: %v, %v", resp, err)
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Config{
			Name: "decision", FailureThreshold: 2, OpenFor: time.Minute, IsFailure: provider.IsFailure, Log: slog.New(slog.DiscardHandler),
		})
		inner := &fake{}
		m := llm.WithBreaker(inner, b)
		ask := func(err error) error {
			inner.err = err
			_, err = m.Generate(t.Context(), llm.Request{})
			return err
		}
		for range 5 {
			for _, harmless := range []error{
				context.Canceled, context.DeadlineExceeded, errors.New("HTTP 400"), fmt.Errorf("m: %w", llm.ErrBlocked), fmt.Errorf("m: %w", llm.ErrNoAnswer),
			} {
				if err := ask(harmless); !errors.Is(err, harmless) {
					t.Errorf("%v became %v", harmless, err)
				}
			}
		}
		unavailable := &memory.TransientError{Err: errors.New("HTTP 503")}
		for range 2 {
			if err := ask(unavailable); !errors.Is(err, unavailable) {
				t.Errorf("%v became %v", unavailable, err)
			}
		}
		calls := inner.calls
		err := ask(nil)
		if open, ok := errors.AsType[*breaker.OpenError](err); !ok || !provider.IsFailure(err) || open.Reason != "HTTP 503" || inner.calls != calls {
			t.Errorf("while open: %v, %d calls", err, inner.calls-calls)
		}
		time.Sleep(time.Minute + time.Second)
		if err := ask(nil); err != nil || b.Status().State != breaker.Closed {
			t.Errorf("afterwards: %v, %+v", err, b.Status())
		}
	})
}

// TestObserver: Unusable answers cost tokens too.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		usage := llm.Usage{InputTokens: 7, OutputTokens: 3}
		inner := &fake{delay: time.Second, resp: llm.Response{Usage: usage}, err: llm.ErrNoAnswer}
		began := time.Now()
		observed := 0
		m := llm.WithObserver(inner, func(_ context.Context, started time.Time, u llm.Usage, err error) {
			observed++
			if u != usage || !errors.Is(err, llm.ErrNoAnswer) || started != began || time.Since(started) != time.Second {
				t.Errorf("observed %v, %v, %v", started, u, err)
			}
		})
		if _, err := m.Generate(t.Context(), llm.Request{}); !errors.Is(err, llm.ErrNoAnswer) || observed != 1 || m.Name() != "fake/m" {
			t.Errorf("%v, observed %d times", err, observed)
		}
	})
}
