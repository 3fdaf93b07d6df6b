package usage

import (
	"context"
	"slices"
	"sync"
)

// Collector gathers the calls of models that are made for one purpose, so that they can be shown with it.
type Collector struct {
	mu    sync.Mutex
	calls []Call
}

// Calls are those that have ended by now, in the order in which they ended.
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

// Collect returns a context whose calls the collector gathers, and no other collector around it.
func Collect(ctx context.Context) (context.Context, *Collector) {
	c := new(Collector)
	return context.WithValue(ctx, collectorKey{}, c), c
}
