// Package breaker wraps a component that can become unavailable in a circuit breaker: sony/gobreaker, plus the reason of the last failure
// and one log line for each change of state.
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

// Status is the current state of a breaker.
type Status struct {
	State  State
	Reason string // the last failure, empty when closed
	Since  time.Time
}

// Config configures a breaker.
type Config struct {
	// Name is used in logs and errors, for example "storage".
	Name string
	// FailureThreshold is how many consecutive failures open the breaker, at least 1.
	FailureThreshold uint32
	// OpenFor is how long the breaker rejects calls before it admits one as a probe.
	OpenFor time.Duration
	// Delay returns for how long an error asks callers not to retry, or 0. Such an error opens the breaker immediately, for that time up to
	// MaxDelay. If it reaches FailureThreshold, the breaker stays open for at least OpenFor. Optional.
	Delay func(error) time.Duration
	// IsFailure reports whether an error means that the component is unavailable. Other errors count neither as failures nor as successes.
	IsFailure func(error) bool
	// OnChange is called after each change of state, from the goroutine that caused it. Optional.
	OnChange func(Status)
	Log      *slog.Logger
}

// MaxDelay limits the time that a failure can ask for. Providers ask for a day when a daily quota is used up, and some recover after
// seconds: one probe every few minutes finds out.
const MaxDelay = 2 * time.Minute

// OpenError is returned while the breaker is open.
type OpenError struct {
	Name   string
	Reason string    // the failure that opened it
	Until  time.Time // when the next call is admitted; zero while a probe is running
}

// Error names the breaker and the failure that opened it.
func (e *OpenError) Error() string {
	return fmt.Sprintf("%s is unavailable (circuit breaker open): %s", e.Name, e.Reason)
}

// Breaker admits calls while the component works, and rejects them immediately while it does not. It is safe for concurrent use.
type Breaker struct {
	config Config
	cb     *gobreaker.CircuitBreaker[struct{}]

	mu      sync.Mutex
	status  Status
	failure string // the last failure
	until   time.Time
	delay   time.Duration // requested by the last failure, up to MaxDelay
	row     uint32        // consecutive failures, including probes
}

// New returns a closed breaker.
func New(config Config) *Breaker {
	b := &Breaker{config: config, status: Status{State: Closed, Since: time.Now()}}
	b.cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: config.Name,
		// Do itself rejects calls until the time of the next probe, because that differs between failures.
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

// early returns an error for a call before the time of the next probe.
func (b *Breaker) early() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status.State != Open || !time.Now().Before(b.until) {
		return nil
	}
	return &OpenError{Name: b.config.Name, Reason: b.failure, Until: b.until}
}

// count records the result of a call and reports whether it succeeded. It runs under gobreaker's lock, as does trips right after it.
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

// openFor returns how long the breaker stays open after the last failure. The Breaker must be locked.
func (b *Breaker) openFor() time.Duration {
	if b.delay > 0 && b.row < b.config.FailureThreshold {
		return b.delay
	}
	return max(b.config.OpenFor, b.delay)
}

// Status returns the current state.
func (b *Breaker) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// Until returns when the next call is admitted as a probe. It is zero unless the breaker is open.
func (b *Breaker) Until() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// changed runs under gobreaker's lock, so it must not call the breaker. A failed probe is not a change: only opening and closing are logged
// and reset Since.
func (b *Breaker) changed(from, to State) {
	b.mu.Lock()
	b.status.State = to
	now := time.Now()
	if to == Closed || from == Closed {
		b.status.Since = now
	}
	b.until = time.Time{}
	if to == Open {
		b.until = now.Add(b.openFor() + 1) // strictly after that time
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
