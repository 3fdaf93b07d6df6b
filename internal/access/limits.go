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

// Rate is how many calls a second are answered, and how many at once after a pause. A PerSecond of 0 is any number; a Burst
// of 0 is the calls of a second.
type Rate struct {
	PerSecond float64
	Burst     int
}

// maxLimiters bounds the memory of a Limiter, some 200 bytes each: those unused for longest are dropped, and what they count
// begins again, which favours the caller.
const maxLimiters = 20_000

// Limiter bounds how often a namespace and a user call. Its methods may be called concurrently.
type Limiter struct {
	namespaces, users *buckets
	now               func() time.Time
}

// NewLimiter returns a limiter of the calls of each namespace, and of each user in it.
func NewLimiter(namespace, user Rate) *Limiter {
	return &Limiter{newBuckets(namespace), newBuckets(user), time.Now}
}

// Allow counts a call, or says when to try again. Calls about nobody by name count for the namespace alone.
func (l *Limiter) Allow(user memory.User) error {
	now := l.now()
	var own *rate.Reservation
	if l.users != nil && user.ID != "" {
		var wait time.Duration
		if own, wait = l.users.take(user, now); wait > 0 {
			return &memory.OverloadError{Limit: "this user's calls are more than limits.user_rps", RetryAfter: wait}
		}
	}
	if l.namespaces != nil {
		if _, wait := l.namespaces.take(memory.User{Namespace: user.Namespace}, now); wait > 0 {
			if own != nil {
				own.CancelAt(now) // it was not answered
			}
			return &memory.OverloadError{
				Limit: fmt.Sprintf("the calls of the namespace %.200q are more than limits.namespace_rps", user.Namespace), RetryAfter: wait,
			}
		}
	}
	return nil
}

// buckets are token buckets, one each. They are known by a hash of the name: a caller may make names up, and long ones.
type buckets struct {
	limit rate.Limit
	burst int
	seed  maphash.Seed
	mu    sync.Mutex // so that two first calls share one bucket
	cache *lru.Cache[uint64, *rate.Limiter]
}

func newBuckets(r Rate) *buckets {
	if r.PerSecond <= 0 {
		return nil
	}
	cache, err := lru.New[uint64, *rate.Limiter](maxLimiters)
	if err != nil {
		panic(err) // only for a size below 1
	}
	burst := r.Burst
	if burst <= 0 {
		burst = int(max(1, math.Ceil(r.PerSecond)))
	}
	return &buckets{limit: rate.Limit(r.PerSecond), burst: burst, seed: maphash.MakeSeed(), cache: cache}
}

// take counts a call now, or says how long there is no room for one.
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
