package local

import (
	"container/list"
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// cache holds the indexes of the users searched most recently, within a budget of bytes.
type cache struct {
	budget int64

	mu      sync.Mutex
	entries map[memory.User]*cached
	recent  *list.List // of *cached, most recently used first
	bytes   int64
	stats   CacheStats // what is counted; the rest is as it stands
}

// CacheStats is how the cache of indexes stands, and what it has done since the start.
type CacheStats struct {
	Hits, Misses, Evictions int64
	Users                   int
	Bytes                   int64
}

// CacheStats says how the cache of indexes stands.
func (s *Store) CacheStats() CacheStats {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Users, stats.Bytes = len(c.entries), c.bytes
	return stats
}

type cached struct {
	user    memory.User
	element *list.Element
	loaded  chan struct{} // closed when index and err are set
	index   *index
	err     error
	ready   bool  // loaded is closed; guarded by cache.mu
	stale   bool  // a write was committed while it was loading; guarded by cache.mu
	bytes   int64 // what the cache has counted for it
}

func newCache(budget int64) *cache {
	return &cache{budget: budget, entries: map[memory.User]*cached{}, recent: list.New()}
}

// get returns the user's index and loads it if necessary. Concurrent callers share one load. It continues when a caller gives
// up, so that the next caller finds the index loaded.
func (c *cache) get(ctx context.Context, user memory.User, load func(context.Context) (*index, error)) (*index, error) {
	c.mu.Lock()
	e := c.entries[user]
	if e == nil {
		e = &cached{user: user, loaded: make(chan struct{})}
		e.element = c.recent.PushFront(e)
		c.entries[user] = e
		c.stats.Misses++
		go c.load(context.WithoutCancel(ctx), e, load)
	} else {
		c.stats.Hits++
		c.recent.MoveToFront(e.element)
	}
	c.mu.Unlock()

	select {
	case <-e.loaded:
		return e.index, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// load loads an entry. It repeats this if a write was committed in the meantime that it may have missed. A failed entry is
// dropped before its callers return, so that a retry loads it again.
func (c *cache) load(ctx context.Context, e *cached, load func(context.Context) (*index, error)) {
	for loading := true; loading; {
		e.index, e.err = call(ctx, load)
		c.mu.Lock()
		loading = e.stale && e.err == nil
		e.stale = false
		e.ready = !loading
		c.mu.Unlock()
	}
	if e.err != nil {
		c.drop(e)
	} else {
		c.account(e)
	}
	close(e.loaded)
}

// call turns a panic into an error: a load runs in its own goroutine, where a panic would end the process.
func call(ctx context.Context, load func(context.Context) (*index, error)) (x *index, err error) {
	defer func() {
		if p := recover(); p != nil {
			x, err = nil, fmt.Errorf("panic while loading an index: %v\n%s", p, debug.Stack())
		}
	}()
	return load(ctx)
}

// change applies a committed write to the user's index if there is one. When fn fails the index is dropped, to be loaded
// again.
func (c *cache) change(user memory.User, fn func(*index) error) {
	c.mu.Lock()
	e := c.entries[user]
	if e != nil && !e.ready {
		e.stale = true
		e = nil
	}
	c.mu.Unlock()
	if e == nil || e.err != nil {
		return
	}
	if err := fn(e.index); err != nil {
		c.drop(e)
		return
	}
	c.account(e)
}

// forget drops a user's index.
func (c *cache) forget(user memory.User) {
	c.mu.Lock()
	e := c.entries[user]
	c.mu.Unlock()
	if e != nil {
		c.drop(e)
	}
}

// clear drops everything.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	c.recent.Init()
	c.bytes = 0
}

func (c *cache) drop(e *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(e)
}

func (c *cache) dropLocked(e *cached) {
	if c.entries[e.user] != e {
		return // already gone, or replaced
	}
	delete(c.entries, e.user)
	c.recent.Remove(e.element)
	c.bytes -= e.bytes
	e.bytes = 0
}

// account counts what the entry occupies now and evicts what no longer fits; the newest always stays.
func (c *cache) account(e *cached) {
	size := e.index.size()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[e.user] != e {
		return
	}
	c.bytes += size - e.bytes
	e.bytes = size
	for c.bytes > c.budget && c.recent.Len() > 1 {
		oldest, _ := c.recent.Back().Value.(*cached)
		if oldest.bytes == 0 {
			break // still loading; it is accounted for when it is done
		}
		c.stats.Evictions++
		c.dropLocked(oldest)
	}
}
