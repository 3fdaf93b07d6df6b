// Package inflight limits the memory that callers can make the process use: the total bytes of large requests and answers, and the number
// of connections and calls. Small messages are not counted in bytes, so that a bot's calls succeed while large ones are rejected; the
// number of calls limits them.
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

// minBytes is the smallest limit for large requests and answers.
const minBytes = 64 << 20

// stallAfter is how long a share may be held before its connection may be closed to make room for another caller.
const stallAfter = 5 * time.Second

// retryAfter is when a rejected caller should try again.
const retryAfter = time.Second

// Bytes limits the total size of large requests and answers in memory.
type Bytes struct {
	capacity int64
	now      func() time.Time

	mu   sync.Mutex
	used int64
	// passed is how many bytes were counted since Bytes last ran the garbage collector.
	passed     int64
	collecting bool
	held       *list.List // of *Share, the oldest first
}

// NewBytes returns a limit with room for several requests of the largest size.
func NewBytes(maxRequest int) *Bytes {
	return &Bytes{capacity: max(minBytes, 8*int64(maxRequest)), now: time.Now, held: list.New()}
}

// Used returns how many bytes are counted.
func (b *Bytes) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Open returns an empty share. evict closes the connection for which it is held; nil means that the connection cannot be closed.
func (b *Bytes) Open(evict func()) *Share { return &Share{bytes: b, evict: evict} }

// Share is the part of Bytes that one call uses.
type Share struct {
	bytes *Bytes
	evict func()

	// Guarded by bytes.mu.
	size    int64
	since   time.Time
	element *list.Element
	ended   bool
}

// Grow counts n more bytes. If there is no room it returns an error. It then also closes the connection of the oldest share if that has
// been held so long that its caller has probably stalled.
func (s *Share) Grow(n int64) error {
	b := s.bytes
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.capacity {
		b.evictOldest(s)
		return &memory.OverloadError{
			Limit:      fmt.Sprintf("large requests and answers would need more than %d MiB of memory in total", b.capacity>>20),
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

// collect runs the garbage collector each time a quarter of the capacity has been counted. The runtime alone would let as much garbage
// accumulate as the memory limit for the indexes allows.
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

// Release returns all bytes of the share. It cannot grow again.
func (s *Share) Release() {
	s.bytes.mu.Lock()
	defer s.bytes.mu.Unlock()
	s.shrink()
	s.ended = true
}

// Reset returns all bytes of the share. It can grow again.
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
