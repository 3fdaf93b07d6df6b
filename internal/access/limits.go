package access

import (
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Rate is the number of calls allowed per second, and in one burst. A PerSecond of 0 means no limit; a Burst of 0 means the calls of one
// second.
type Rate struct {
	PerSecond float64
	Burst     int
}

// maxLimiters bounds the memory of a Limiter, which is about 200 bytes each. The least recently used are dropped and start again empty, in
// the caller's favour.
const maxLimiters = 20_000

// Limiter limits the calls of namespaces and users. It is safe for concurrent use.
type Limiter struct {
	namespaces, users *buckets
	now               func() time.Time
}

// NewLimiter returns a limiter for each namespace and each user.
func NewLimiter(namespace, user Rate) *Limiter {
	return &Limiter{newBuckets(namespace), newBuckets(user), time.Now}
}

// Allow counts a call, or returns an error that says when to try again. Calls without a user count for the namespace only.
func (l *Limiter) Allow(user memory.User) error {
	now := l.now()
	var own *rate.Reservation
	if l.users != nil && user.ID != "" {
		var wait time.Duration
		if own, wait = l.users.take(user, now); wait > 0 {
			return &memory.OverloadError{Limit: "this user exceeds limits.user_rps", RetryAfter: wait}
		}
	}
	if l.namespaces != nil {
		if _, wait := l.namespaces.take(memory.User{Namespace: user.Namespace}, now); wait > 0 {
			if own != nil {
				own.CancelAt(now) // the call is rejected
			}
			return &memory.OverloadError{
				Limit: fmt.Sprintf("the namespace %.200q exceeds limits.namespace_rps", user.Namespace), RetryAfter: wait,
			}
		}
	}
	return nil
}

// buckets holds token buckets by a hash of their name, because callers can invent many long names.
type buckets struct {
	limit rate.Limit
	burst int
	seed  maphash.Seed
	mu    sync.Mutex // so that two concurrent first calls share one bucket
	cache *lru.Cache[uint64, *rate.Limiter]
}

func newBuckets(r Rate) *buckets {
	if r.PerSecond <= 0 {
		return nil
	}
	cache, err := lru.New[uint64, *rate.Limiter](maxLimiters)
	if err != nil {
		panic(err) // cannot occur: only for a size below 1
	}
	burst := r.Burst
	if burst <= 0 {
		burst = int(max(1, math.Ceil(r.PerSecond)))
	}
	return &buckets{limit: rate.Limit(r.PerSecond), burst: burst, seed: maphash.MakeSeed(), cache: cache}
}

// take counts a call now, or returns how long to wait.
func (b *buckets) take(user memory.User, now time.Time) (*rate.Reservation, time.Duration) {
	r := b.of(user).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return r, wait
}

func (b *buckets) of(user memory.User) *rate.Limiter {
	key := maphash.Comparable(b.seed, user)
	b.mu.Lock()
	defer b.mu.Unlock()
	limiter, ok := b.cache.Get(key)
	if !ok {
		limiter = rate.NewLimiter(b.limit, b.burst)
		b.cache.Add(key, limiter)
	}
	return limiter
}
