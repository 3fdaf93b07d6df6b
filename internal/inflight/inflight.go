// Package inflight bounds the memory that callers can make the process use: the bytes of large requests and answers of all calls
// together, and the number of connections and calls. Small requests and answers are not counted in bytes, so that a bot's calls go
// on while large ones are refused; the number of calls bounds them.
package inflight

import (
	"container/list"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Small is the size up to which a request or an answer is not counted.
const Small = 16 << 10

// minBytes is the least room for large requests and answers.
const minBytes = 64 << 20

// stallAfter is how long a share may be held before its connection may be closed in favour of another caller.
const stallAfter = 5 * time.Second

// retryAfter is when a refused caller should try again.
const retryAfter = time.Second

// Bytes bounds the bytes of large requests and answers that are in memory.
type Bytes struct {
	capacity int64
	now      func() time.Time

	mu   sync.Mutex
	used int64
	// passed is how many bytes were counted since garbage was collected last on their account.
	passed     int64
	collecting bool
	held       *list.List // of *Share, the oldest first
}

// NewBytes returns a bound that has room for several requests of the largest size.
func NewBytes(maxRequest int) *Bytes {
	return &Bytes{capacity: max(minBytes, 8*int64(maxRequest)), now: time.Now, held: list.New()}
}

// Used is how many bytes are counted.
func (b *Bytes) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Open returns an empty share. evict closes the connection it is held for; nil if it cannot be closed.
func (b *Bytes) Open(evict func()) *Share { return &Share{bytes: b, evict: evict} }

// Share is what one call holds.
type Share struct {
	bytes *Bytes
	evict func()

	// Guarded by bytes.mu.
	size    int64
	since   time.Time
	element *list.Element
	ended   bool
}

// Grow counts n more bytes. If there is no room for them it refuses, and closes the connection of the share that has been held the
// longest, if that is so long that its caller has most likely stalled.
func (s *Share) Grow(n int64) error {
	b := s.bytes
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.capacity {
		b.evictOldest(s)
		return &memory.OverloadError{
			Limit:      fmt.Sprintf("large requests and answers of all calls together would take more than %d MiB of memory", b.capacity>>20),
			RetryAfter: retryAfter,
		}
	}
	if s.ended {
		return nil // the call is over
	}
	b.used += n
	s.size += n
	b.collect(n)
	if s.element == nil {
		s.since, s.element = b.now(), b.held.PushBack(s)
	}
	return nil
}

// collect has garbage collected after each quarter of the capacity that went through. By itself the runtime lets as much accumulate as the
// indexes may take, even if they take nothing.
func (b *Bytes) collect(n int64) {
	if b.passed += n; b.passed < b.capacity/4 || b.collecting {
		return
	}
	b.passed, b.collecting = 0, true
	go func() {
		runtime.GC()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.collecting = false
	}()
}

func (b *Bytes) evictOldest(besides *Share) {
	for e := b.held.Front(); e != nil; e = e.Next() {
		s, _ := e.Value.(*Share)
		if b.now().Sub(s.since) < stallAfter {
			return
		}
		if s != besides && s.evict != nil {
			go s.evict()
			s.evict = nil
			return
		}
	}
}

// Release gives back what is held. The share stays empty.
func (s *Share) Release() {
	s.bytes.mu.Lock()
	defer s.bytes.mu.Unlock()
	s.shrink()
	s.ended = true
}

// Reset gives back what is held; the share may grow again.
func (s *Share) Reset() {
	s.bytes.mu.Lock()
	defer s.bytes.mu.Unlock()
	s.shrink()
}

func (s *Share) shrink() {
	s.bytes.used -= s.size
	s.size = 0
	if s.element != nil {
		s.bytes.held.Remove(s.element)
		s.element = nil
	}
}
