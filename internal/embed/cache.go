package embed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// queryCallLimit ends a call to the embedder that was begun for a query. No caller's deadline does: the vector is worth
// having for the next one who asks, and a query that took a second is the very one that should not be asked again.
const queryCallLimit = 30 * time.Second

// WithCache caches the vectors of the latest queries, at most entries of them. Concurrent calls with the same query share one call to
// the inner embedder. Documents are not cached: each is embedded only once.
//
// Cancelling a context ends only that caller's wait. A call to the inner embedder carries the values of the first caller's context, ends
// after 30 seconds with a *memory.TransientError, and fills the cache even when all callers have left. Errors are not cached. A panic of
// the inner embedder panics in every waiting caller.
//
// Keys are hashes: the cache holds no user's words. entries below 1 returns inner itself. looked, if not nil, is called with the number
// of queries of each call that the cache had and had not.
func WithCache(inner Embedder, entries int, looked func(hits, misses int)) Embedder {
	if entries < 1 {
		return inner
	}
	vectors, err := lru.New[queryKey, []float32](entries)
	if err != nil { // only for a size below 1
		return inner
	}
	return &cached{inner: inner, vectors: vectors, looked: looked}
}

type cached struct {
	inner   Embedder
	vectors *lru.Cache[queryKey, []float32]
	looked  func(hits, misses int)
	flights singleflight.Group
}

// queryKey is the SHA-256 of a query. It needs no purpose: nothing but queries is cached.
type queryKey [sha256.Size]byte

func (c *cached) Fingerprint() Fingerprint { return c.inner.Fingerprint() }

func (c *cached) Calibration() Calibration { return c.inner.Calibration() }

func (c *cached) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	if purpose != ForQuery {
		return c.inner.Embed(ctx, purpose, texts)
	}
	vectors := make([][]float32, len(texts))
	m := c.lookUp(texts, vectors)
	if c.looked != nil {
		c.looked(len(texts)-len(m.texts), len(m.texts))
	}
	if len(m.texts) == 0 {
		return vectors, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	embedded, err := c.share(ctx, m)
	if err != nil {
		return nil, err
	}
	for i, at := range m.at {
		vectors[at] = embedded[i]
	}
	return vectors, nil
}

// misses are the texts that the cache does not have.
type misses struct {
	texts []string
	keys  []queryKey
	at    []int // positions in the request
}

// lookUp fills in the vectors that the cache has and returns the rest.
func (c *cached) lookUp(texts []string, vectors [][]float32) misses {
	var m misses
	for i, text := range texts {
		key := queryKey(sha256.Sum256([]byte(text)))
		if v, ok := c.vectors.Get(key); ok {
			vectors[i] = v
			continue
		}
		m.texts, m.keys, m.at = append(m.texts, text), append(m.keys, key), append(m.at, i)
	}
	return m
}

// share waits for the call that embeds these texts, which it begins unless another caller has.
func (c *cached) share(ctx context.Context, m misses) ([][]float32, error) {
	flight := make([]byte, 0, len(m.keys)*sha256.Size)
	for _, k := range m.keys {
		flight = append(flight, k[:]...)
	}
	results := c.flights.DoChan(string(flight), func() (any, error) { return c.call(ctx, m) })
	select {
	case r := <-results:
		switch v := r.Val.(type) {
		case panicked:
			panic(v)
		case [][]float32:
			return v, nil
		}
		return nil, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// panicked carries a panic out of the goroutine that singleflight begins, where it could not be recovered from and would
// end the process.
type panicked struct {
	value any
	stack []byte
}

// String is what a recovering caller logs: the stack is the inner embedder's, not the caller's own.
func (p panicked) String() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// call embeds the texts and puts their vectors into the cache.
func (c *cached) call(caller context.Context, m misses) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = panicked{value: p, stack: debug.Stack()}, nil
		}
	}()
	// An identical call may have ended between the look-up and here.
	vectors := make([][]float32, len(m.texts))
	if m = c.lookUp(m.texts, vectors); len(m.texts) == 0 {
		return vectors, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), queryCallLimit)
	defer cancel()
	embedded, err := c.inner.Embed(ctx, ForQuery, m.texts)
	switch {
	case err != nil && ctx.Err() != nil:
		// The cause is not wrapped: a caller must not take this deadline for its own.
		return nil, &memory.TransientError{Err: fmt.Errorf("embedding a query took longer than %s: %s", queryCallLimit, err.Error())}
	case err != nil:
		return nil, err
	case len(embedded) != len(m.texts):
		return nil, fmt.Errorf("embedder %s returned %d vectors for %d texts", c.inner.Fingerprint(), len(embedded), len(m.texts))
	}
	for i, v := range embedded {
		c.vectors.Add(m.keys[i], v)
		vectors[m.at[i]] = v
	}
	return vectors, nil
}
