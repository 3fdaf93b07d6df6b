// Package background provides what background work needs: a loop that a notifier or a timer wakes, pauses that end when the work must stop,
// a heartbeat that reports how each round ended, and a writer that collects small writes into batches.
package background

import (
	"context"
	"time"
)

// Notifier wakes a loop.
type Notifier chan struct{}

// NewNotifier returns a notifier without a pending notification.
func NewNotifier() Notifier { return make(Notifier, 1) }

// Notify starts a round of the loop. It never blocks. During a round, any number of calls start one more round.
func (b Notifier) Notify() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// Run calls round on each notification, and at the time that the last round returned, until ctx ends. After a round that returns the zero
// time, only a notification starts the next. now is the clock that the round's times are of.
func Run(ctx context.Context, now func() time.Time, notifier Notifier, round func() (again time.Time)) {
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-notifier:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if again := round(); again.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(again.Sub(now()))
		}
	}
}

// Every calls round immediately and then at the interval, until ctx ends.
func Every(ctx context.Context, every time.Duration, round func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		round()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sleep pauses, and returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
