// Package giveway has work in the background give way to calls that somebody waits for. Go's scheduler knows no priorities: what
// computes in the background gets as much of the processors as a call that has just come, and is not interrupted for it.
package giveway

import (
	"context"
	"sync"
	"time"
)

// Patience is how long a step in the background waits for calls at most. Most calls are over by then, and with calls under way all the
// time the background goes on, more slowly.
const Patience = 5 * time.Millisecond

// Func is how work in the background waits for what comes before it. nil waits for nothing. It returns soon.
type Func func(ctx context.Context)

// Wait waits, where there is something to wait for.
func (f Func) Wait(ctx context.Context) {
	if f != nil {
		f(ctx)
	}
}

// Way is where calls and the background meet.
type Way struct {
	slots chan struct{} // a token for each step that computes

	mu    sync.Mutex
	calls int           // under way
	clear chan struct{} // closed when there are none any more
}

// New returns a Way on which the background leaves one of the processors to others, if there are several.
func New(processors int) *Way {
	return &Way{slots: make(chan struct{}, max(1, processors-1))}
}

// Call says that a call begins, and end that it is over. The background does not begin anything meanwhile, for as long as it has patience.
func (w *Way) Call() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.calls == 1 {
		w.clear = make(chan struct{})
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls--; w.calls == 0 {
			close(w.clear)
		}
	}
}

// Pause returns when no call is under way, when Patience is over, or when ctx ends: at once, mostly. It is for between two steps.
func (w *Way) Pause(ctx context.Context) {
	w.mu.Lock()
	busy, none := w.calls > 0, w.clear
	w.mu.Unlock()
	if !busy {
		return
	}
	over := make(chan struct{})
	defer time.AfterFunc(Patience, func() { close(over) }).Stop()
	select {
	case <-none:
	case <-over:
	case <-ctx.Done():
	}
}

// Step is Pause for a step that only computes, and waits for its turn among such steps as well; end says that it is over. A step must
// not wait for anything else meanwhile, nor for another step.
func (w *Way) Step(ctx context.Context) (end func()) {
	w.Pause(ctx)
	select {
	case w.slots <- struct{}{}:
		return func() { <-w.slots }
	case <-ctx.Done(): // the step is going to see that
		return func() {}
	}
}
