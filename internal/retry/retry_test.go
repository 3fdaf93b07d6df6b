package retry_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
)

// delayOf and passes classify errors as a provider's package does.
func delayOf(err error) time.Duration {
	transient, _ := errors.AsType[*memory.TransientError](err)
	return transient.RetryAfter
}

func passes(err error) bool {
	_, ok := errors.AsType[*memory.TransientError](err)
	return ok
}

var errLimit = &memory.TransientError{Err: errors.New("HTTP 429"), RetryAfter: 24 * time.Hour}

// TestWorkWaitsForTheBreaker: Work that a provider delayed by a day is retried when the breaker admits a call. It continues immediately
// when another call has closed the breaker, however often it failed before.
func TestWorkWaitsForTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recovered := background.NewNotifier()
		b := breaker.New(breaker.Config{
			Name: "embedding", FailureThreshold: 5, OpenFor: 30 * time.Second, IsFailure: passes, Delay: delayOf, Log: slog.New(slog.DiscardHandler),
			OnChange: func(s breaker.Status) {
				if s.State == breaker.Closed {
					recovered.Notify()
				}
			},
		})
		var works atomic.Bool
		began := time.Now()
		call := func() error {
			if !works.Load() {
				return errLimit
			}
			return nil
		}
		var at []time.Duration
		done := make(chan bool, 1)
		go func() {
			done <- retry.Until(t.Context(), retry.Pauses{Min: time.Second, Max: time.Hour}, recovered,
				func() error { return retry.Through(b, call) }, func(err error) {
					if wait, unavailable := memory.Unavailable(err); !unavailable || wait > breaker.MaxDelay+1 {
						t.Errorf("%v: wait for %s, unavailable %t", err, wait, unavailable)
					}
					at = append(at, time.Since(began).Round(time.Second))
				})
		}()
		time.Sleep(7 * time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, 2 * time.Minute, 4 * time.Minute, 6 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("tried after %v, want %v", at, want)
		}
		works.Store(true)
		time.Sleep(time.Minute + time.Second) // until the next probe, which another caller makes
		_ = retry.Through(b, call)
		synctest.Wait()
		if ok := <-done; !ok {
			t.Error("the work did not succeed")
		}
		if took := time.Since(began); took > 8*time.Minute+2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestThroughReturnsOtherErrorsUnchanged: Errors that are not the provider's failures are returned unchanged. A failure that does not open
// the breaker does not report the provider as unavailable.
func TestThroughReturnsOtherErrorsUnchanged(t *testing.T) {
	b := breaker.New(breaker.Config{
		Name: "x", FailureThreshold: 2, OpenFor: time.Minute, IsFailure: passes, Delay: delayOf, Log: slog.New(slog.DiscardHandler),
	})
	refused := &memory.RefusedError{Err: errors.New("HTTP 400")}
	if err := retry.Through(b, func() error { return refused }); !errors.Is(err, error(refused)) || passes(err) {
		t.Errorf("refused: %v", err)
	}
	if err := retry.Through(b, func() error { return nil }); err != nil {
		t.Error(err)
	}
	once := &memory.TransientError{Err: errors.New("HTTP 500")}
	err := retry.Through(b, func() error { return once })
	if _, unavailable := memory.Unavailable(err); unavailable || !errors.Is(err, error(once)) || err.Error() != "HTTP 500" {
		t.Errorf("a single failure: %v", err)
	}
	err = retry.Through(b, func() error { return once })
	if _, unavailable := memory.Unavailable(err); !unavailable {
		t.Errorf("the failure that opened the breaker: %v", err)
	}
}

// TestPausesGrowWithOwnFailures: Pauses grow with the work's own failures, and not with an unavailable provider's.
func TestPausesGrowWithOwnFailures(t *testing.T) {
	c := retry.Counts[string]{Pauses: retry.Pauses{Min: time.Second, Max: time.Minute}}
	own, unavailable := errors.New("own"), &memory.TransientError{Err: errors.New("unavailable"), Unavailable: true, RetryAfter: time.Hour}
	about := func(got, want time.Duration) {
		t.Helper()
		if got < want/2 || got > want+want/2 || got > c.Pauses.Longest() {
			t.Errorf("pause of %s, want about %s", got, want)
		}
	}
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		for range 3 {
			about(c.Failed("a", unavailable), time.Second)
		}
		about(c.Failed("a", own), time.Duration(seconds)*time.Second)
	}
	about(c.Failed("b", own), time.Second)
	c.Done("a")
	about(c.Failed("a", own), time.Second)
}

// TestUnavailableProviderIsProbedOneAtATime: While a provider is unavailable no work begins until its breaker admits a call, and then one
// item at a time.
func TestUnavailableProviderIsProbedOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until time.Time
		unavailable := true
		u := retry.Unavailable(func() (time.Time, bool) { return until, unavailable })
		check := func(wanted, running, allowed int, wait time.Duration) {
			t.Helper()
			if a, w := u.Now(wanted, running); a != allowed || w != wait {
				t.Errorf("allowed %d after %s, want %d after %s", a, w, allowed, wait)
			}
		}
		until = time.Now().Add(time.Minute)
		check(8, 0, 0, time.Minute)
		time.Sleep(2 * time.Minute)
		check(8, 0, 1, 0)
		check(8, 1, 0, 0)
		until = time.Time{} // a probe is running
		check(8, 1, 0, 0)
		unavailable = false
		check(8, 1, 8, 0)
		u = nil
		check(8, 1, 8, 0)
	})
}

// TestUntilEndsWithItsContext: A pause ends with its context.
func TestUntilEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if retry.Until(ctx, retry.Pauses{Min: time.Hour, Max: time.Hour}, nil, func() error { return errLimit }, func(error) {}) {
			t.Error("the pause was not cancelled")
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the pause took %s", took)
		}
	})
}
