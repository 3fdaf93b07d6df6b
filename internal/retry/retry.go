// Package retry says when work in the background is tried again. Work that failed by itself has pauses of its own, which grow. Work that
// failed because a provider is unavailable waits for the provider's circuit breaker, and is due when that closes.
package retry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Unavailable says whether a provider that work needs is unavailable, and until when its breaker lets no call through: no such work begins
// until then, and then one piece at a time until the breaker is closed. A nil function says that all are available.
type Unavailable func() (until time.Time, unavailable bool)

// Now is how many pieces of work of those wanted may begin beside the running ones, and how long to wait when none may yet.
func (u Unavailable) Now(wanted, running int) (allowed int, wait time.Duration) {
	if u == nil {
		return wanted, 0
	}
	until, unavailable := u()
	if !unavailable {
		return wanted, 0
	}
	if !until.IsZero() {
		wait = max(0, time.Until(until))
	}
	if wait > 0 {
		return 0, wait
	}
	return max(0, min(wanted, 1-running)), 0
}

// Pauses bounds the pauses between attempts, before a jitter of up to half of the pause. Each is twice as long as the one before.
type Pauses struct{ Min, Max time.Duration }

func (p Pauses) backoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = p.Min, p.Max, 2
	return b
}

// Longest is the longest pause there is, with its jitter. A due time further away was not set by this clock.
func (p Pauses) Longest() time.Duration { return p.Max + p.Max/2 + time.Second }

// Nth is the pause after so many failures in a row, from 1.
func (p Pauses) Nth(failures int) time.Duration {
	b := p.backoff()
	pause := b.NextBackOff()
	for range min(failures-1, 60) {
		pause = b.NextBackOff()
	}
	return pause
}

// LogLevel is the level at which to log that work is postponed because of an error. A transient error is only worth debugging: the circuit
// breaker logs when it begins and ends.
func LogLevel(err error) slog.Level {
	var transient *memory.TransientError
	if errors.As(err, &transient) || errors.Is(err, memory.ErrUnavailable) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// maxCounts bounds for how many pieces of work it is known how often they failed in a row. Beyond it all begin again with short pauses.
const maxCounts = 10_000

// Counts knows how often each piece of work failed in a row by itself. It is safe for concurrent use.
type Counts[K comparable] struct {
	Pauses Pauses

	mu     sync.Mutex
	counts map[K]int
}

// Failed counts a failure of a piece of work and returns how long it waits. That a provider is unavailable does not count.
func (c *Counts[K]) Failed(key K, err error) (pause time.Duration) {
	if _, unavailable := memory.Unavailable(err); unavailable {
		return c.Pauses.Nth(1) // what holds work back is Unavailable; it is due then
	}
	c.mu.Lock()
	if c.counts == nil || len(c.counts) >= maxCounts {
		c.counts = map[K]int{}
	}
	c.counts[key]++
	n := c.counts[key]
	c.mu.Unlock()
	return c.Pauses.Nth(n)
}

// Done forgets the failures of a piece of work.
func (c *Counts[K]) Done(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.counts, key)
}

// Failing lists the pieces of work that failed last time.
func (c *Counts[K]) Failing() (keys []K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.counts {
		keys = append(keys, key)
	}
	return keys
}

// Until repeats work until it succeeds, and reports false when ctx ended before. failed is called with each error. A ring of recovered ends
// the pause.
func Until(ctx context.Context, p Pauses, recovered background.Notifier, work func() error, failed func(error)) bool {
	pauses := p.backoff()
	for {
		err := work()
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			return true
		}
		failed(err)
		wait, unavailable := memory.Unavailable(err)
		if !unavailable {
			wait = pauses.NextBackOff()
		}
		timer := time.NewTimer(max(wait, p.Min))
		select {
		case <-timer.C:
		case <-recovered:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}
