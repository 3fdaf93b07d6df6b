// Package loop has what work in the background is made of: a bell that wakes it, a loop that works when the bell rings or when it
// is time, and pauses that end when the work is to stop.
package loop

import (
	"context"
	"time"
)

// Bell wakes a loop.
type Bell chan struct{}

// NewBell returns a bell that nobody has rung.
func NewBell() Bell { return make(Bell, 1) }

// Ring has the loop begin a round. It never blocks: a round that is under way is followed by another, and however often it is rung
// meanwhile, by one.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// Run calls round whenever the bell rings, and at the time that the last round returned, until ctx ends. After a round that returns
// the zero time only the bell begins the next.
func Run(ctx context.Context, bell Bell, round func() (again time.Time)) {
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-bell:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if again := round(); again.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(again))
		}
	}
}

// Every calls round at once, and then as often as that, until ctx ends.
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

// Sleep makes a pause, and reports false when ctx ended before it was over.
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
