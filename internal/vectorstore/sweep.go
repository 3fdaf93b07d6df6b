package vectorstore

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Sweep is how memories are found and deleted that are no longer to be kept. Unlike Store it goes over all users; it is for
// the sidecar itself and never behind a call of the API. What is found may have changed when it is deleted: deleting looks
// again.
type Sweep interface {
	// OnWrite registers a function that is called after each write that may have left something to be deleted, now or later.
	// It must return at once.
	OnWrite(fn func())
	// Ended returns up to limit memories that ended at or before the time in this way, those that ended first before the
	// others, and when the next one does, zero when none does. The ways are memory.StatusWithdrawn, StatusExpired and
	// StatusSuperseded; a withdrawn memory has ended in no other way. Those without a time do not count.
	Ended(ctx context.Context, how memory.Status, before time.Time, limit int) (ended []MemoryRef, next time.Time, err error)
	// ResetClock takes what was withdrawn later than a time as withdrawn now: the clock was ahead, and has been set.
	ResetClock(ctx context.Context, after, now time.Time) error
	// Drop deletes those of a user's memories that are still there and still ended at or before the time in this way, with
	// what revisions say of them, and returns how many that were.
	Drop(ctx context.Context, user memory.User, ids []string, how memory.Status, before time.Time) (int, error)
	// Crowded returns up to limit users who have more memories than the limit, history included, some of them not explicit.
	Crowded(ctx context.Context, most, limit int) ([]Crowd, error)
	// Evictable visits a user's memories that are not explicit. Of the memory only the ID and what tells of its standing,
	// importance and use are set.
	Evictable(ctx context.Context, user memory.User, visit func(m *memory.Memory)) error
	// Evict deletes a user's memories in this order while the user has more than keep, but none that is explicit. It returns
	// how many it deleted.
	Evict(ctx context.Context, user memory.User, ids []string, keep int) (int, error)
	// Full counts, by namespace, the users who have this many explicit memories or more.
	Full(ctx context.Context, least int) (map[string]int64, error)
}

// MemoryRef names a memory.
type MemoryRef struct {
	User memory.User
	ID   string
}

// Crowd is how many memories a user has.
type Crowd struct {
	User     memory.User
	Memories int
	Explicit int // of them
}
