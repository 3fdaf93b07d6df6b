package usage

import (
	"context"
	"slices"
	"sync"
)

// Collector gathers model calls made for one purpose, for a report.
type Collector struct {
	mu    sync.Mutex
	calls []Call
}

// Calls returns the calls that have ended so far, in the order of their ends.
func (c *Collector) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

func (c *Collector) add(call Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
}

type collectorKey struct{}

// Collect returns a context whose calls go to the new collector, and to no outer one.
func Collect(ctx context.Context) (context.Context, *Collector) {
	c := new(Collector)
	return context.WithValue(ctx, collectorKey{}, c), c
}
