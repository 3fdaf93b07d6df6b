// Package retry decides when background work is tried again. Work that failed on its own is retried after pauses that grow. Work that
// failed because a provider is unavailable is due when that provider's circuit breaker closes.
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

// Unavailable reports whether a provider that work needs is unavailable, and until when its breaker rejects calls. No such work starts
// before that, and then only one piece at a time until the breaker closes. A nil function means that all providers are available.
type Unavailable func() (until time.Time, unavailable bool)

// Now returns how many of the wanted pieces of work may start in addition to the running ones, and how long to wait when none may.
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

// Pauses sets the pauses between attempts, before a jitter of up to half of the pause. Each pause is twice as long as the one before.
type Pauses struct{ Min, Max time.Duration }

func (p Pauses) backoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = p.Min, p.Max, 2
	return b
}

// Longest returns the longest possible pause with its jitter. A due time further in the future was not set by this clock.
func (p Pauses) Longest() time.Duration { return p.Max + p.Max/2 + time.Second }

// Nth returns the pause after n consecutive failures, from 1.
func (p Pauses) Nth(failures int) time.Duration {
	b := p.backoff()
	pause := b.NextBackOff()
	for range min(failures-1, 60) {
		pause = b.NextBackOff()
	}
	return pause
}

// LogLevel returns the level for logging that work is postponed because of an error. It is debug for transient errors, because the circuit
// breaker logs when it opens and closes.
func LogLevel(err error) slog.Level {
	var transient *memory.TransientError
	if errors.As(err, &transient) || errors.Is(err, memory.ErrUnavailable) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// maxCounts limits the number of counted pieces of work. Beyond it, all counts are reset.
const maxCounts = 10_000

// Counts counts the consecutive failures of each piece of work. It is safe for concurrent use.
type Counts[K comparable] struct {
	Pauses Pauses

	mu     sync.Mutex
	counts map[K]int
}

// Failed counts a failure of a piece of work and returns its pause. An unavailable provider does not count.
func (c *Counts[K]) Failed(key K, err error) (pause time.Duration) {
	if _, unavailable := memory.Unavailable(err); unavailable {
		return c.Pauses.Nth(1) // Unavailable postpones the work until the provider recovers
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

// Done resets the failures of a piece of work.
func (c *Counts[K]) Done(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.counts, key)
}

// Failing returns the pieces of work whose last attempt failed.
func (c *Counts[K]) Failing() (keys []K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.counts {
		keys = append(keys, key)
	}
	return keys
}

// Until repeats work until it succeeds, and returns false when ctx ends first. failed is called with each error. A notification of
// recovered ends the pause.
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
