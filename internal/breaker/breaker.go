// Package breaker wraps a part that can become unavailable in a circuit breaker: sony/gobreaker, with the reason of the last failure and
// one log line for each change of state.
package breaker

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// State is the state of a breaker.
type State string

// The states.
const (
	Closed   State = "closed"
	Open     State = "open"
	HalfOpen State = "half-open"
)

// Status is how a breaker stands.
type Status struct {
	State  State
	Reason string // the last failure, empty when closed
	Since  time.Time
}

// Config describes a breaker.
type Config struct {
	// Name is used in logs and errors, for example "storage".
	Name string
	// FailureThreshold is how many failures in a row open it, at least 1.
	FailureThreshold uint32
	// OpenFor is how long it refuses calls before it lets one through as a probe.
	OpenFor time.Duration
	// Delay is how long a failure asks to be left alone, 0 when it does not say. A failure that asks opens the breaker at once, for
	// as long as it asks, up to MaxDelay; one that opens it in any case does so for OpenFor at least. Optional.
	Delay func(error) time.Duration
	// IsFailure reports whether an error means that the wrapped part is unavailable. Other errors count neither as failures nor as
	// successes.
	IsFailure func(error) bool
	// OnChange is called after each change of state, from the goroutine that caused it. Optional.
	OnChange func(Status)
	Log      *slog.Logger
}

// MaxDelay is the longest time for which a breaker stays open because a failure asked for it. Providers ask for a day when a daily
// quota is used up, and some of them work again after seconds: one call each few minutes finds out.
const MaxDelay = 2 * time.Minute

// OpenError is the answer while the breaker is open.
type OpenError struct {
	Name   string
	Reason string    // the failure that opened it
	Until  time.Time // when the next call is let through; zero while a probe is under way
}

// Error names the breaker and the failure that opened it.
func (e *OpenError) Error() string {
	return fmt.Sprintf("%s is unavailable (circuit breaker open): %s", e.Name, e.Reason)
}

// Breaker lets calls through while what is behind it works, and refuses them at once while it does not. It is safe for
// concurrent use.
type Breaker struct {
	config Config
	cb     *gobreaker.CircuitBreaker[struct{}]

	mu      sync.Mutex
	status  Status
	failure string // the last failure
	until   time.Time
	delay   time.Duration // that the last failure asked for, up to MaxDelay
	row     uint32        // failures in a row, probes included
}

// New returns a closed breaker.
func New(config Config) *Breaker {
	b := &Breaker{config: config, status: Status{State: Closed, Since: time.Now()}}
	b.cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: config.Name,
		// Do refuses calls until the time has come, which differs from one opening to the next.
		Timeout:       1,
		ReadyToTrip:   func(gobreaker.Counts) bool { return b.trips() },
		IsSuccessful:  b.count,
		IsExcluded:    func(err error) bool { return err != nil && !config.IsFailure(err) },
		OnStateChange: func(_ string, from, to gobreaker.State) { b.changed(stateOf(from), stateOf(to)) },
	})
	return b
}

// Do calls fn unless the breaker is open; then it returns an *OpenError without calling it.
func (b *Breaker) Do(fn func() error) error {
	if err := b.early(); err != nil {
		return err
	}
	_, err := b.cb.Execute(func() (struct{}, error) {
		err := fn()
		if err != nil && b.config.IsFailure(err) {
			b.mu.Lock()
			b.failure = err.Error()
			b.mu.Unlock()
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return &OpenError{Name: b.config.Name, Reason: b.failure, Until: b.until}
	}
	return err
}

// early refuses a call that comes before the time of the next probe.
func (b *Breaker) early() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status.State != Open || !time.Now().Before(b.until) {
		return nil
	}
	return &OpenError{Name: b.config.Name, Reason: b.failure, Until: b.until}
}

// count notes how a call ended, and reports whether it succeeded. It runs under gobreaker's lock, as trips does right after it.
func (b *Breaker) count(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay = 0
	if err == nil {
		b.row = 0
		return true
	}
	b.row++
	if b.config.Delay != nil {
		b.delay = min(max(0, b.config.Delay(err)), MaxDelay)
	}
	return false
}

// trips reports whether the last failure opens the breaker.
func (b *Breaker) trips() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.row >= b.config.FailureThreshold || b.delay > 0
}

// openFor is how long the breaker stays open after the last failure. The Breaker must be locked.
func (b *Breaker) openFor() time.Duration {
	if b.delay > 0 && b.row < b.config.FailureThreshold {
		return b.delay
	}
	return max(b.config.OpenFor, b.delay)
}

// Status says how the breaker stands.
func (b *Breaker) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// Until is when the next call is admitted, as a probe. It is zero unless the breaker is open.
func (b *Breaker) Until() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// changed runs under gobreaker's lock, so it must not call the breaker. A probe that failed is no news: only leaving
// and regaining the closed state is logged and restarts Since.
func (b *Breaker) changed(from, to State) {
	b.mu.Lock()
	b.status.State = to
	now := time.Now()
	if to == Closed || from == Closed {
		b.status.Since = now
	}
	b.until = time.Time{}
	if to == Open {
		b.until = now.Add(b.openFor() + 1) // after the time, and not at it
	}
	if to == Closed {
		b.failure = ""
	}
	b.status.Reason = b.failure
	status := b.status
	b.mu.Unlock()

	switch {
	case from == Closed:
		b.config.Log.Warn("circuit breaker opened", "component", b.config.Name, "reason", status.Reason)
	case to == Closed:
		b.config.Log.Info("circuit breaker closed", "component", b.config.Name)
	}
	if b.config.OnChange != nil {
		b.config.OnChange(status)
	}
}

func stateOf(s gobreaker.State) State {
	switch s {
	case gobreaker.StateOpen:
		return Open
	case gobreaker.StateHalfOpen:
		return HalfOpen
	default:
		return Closed
	}
}
