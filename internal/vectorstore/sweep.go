package vectorstore

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Sweep finds and deletes memories that are not to be kept any longer. Unlike Store it covers all users. Only the sidecar's
// background work uses it, never an API call. A memory may change after it was found, so each deletion checks it again.
type Sweep interface {
	// OnWrite registers the function that is called after each write that may leave something to delete, now or later. It
	// replaces an earlier one. It must not block.
	OnWrite(fn func())
	// Ended returns up to limit memories that ended in this way at or before the time, the earliest first. next is when the
	// next one ends, zero if none does. The ways are memory.StatusWithdrawn, StatusExpired and StatusSuperseded; a withdrawn
	// memory counts as withdrawn only. Memories without a time are not returned.
	Ended(ctx context.Context, how memory.Status, before time.Time, limit int) (ended []MemoryRef, next time.Time, err error)
	// ResetClock sets the time of withdrawals later than after to now. It is called when the clock was ahead and was corrected.
	ResetClock(ctx context.Context, after, now time.Time) error
	// Drop deletes those of the memories that still exist and still have ended in this way at or before the time, with their
	// revisions, and returns how many it deleted.
	Drop(ctx context.Context, user memory.User, ids []string, how memory.Status, before time.Time) (int, error)
	// Crowded returns up to limit users who have more memories than the limit, history included, some of them not explicit.
	Crowded(ctx context.Context, most, limit int) ([]Crowd, error)
	// Evictable visits a user's memories that are not explicit. Only the ID and the fields about kind, status, importance and
	// use are set.
	Evictable(ctx context.Context, user memory.User, visit func(m *memory.Memory)) error
	// Evict deletes the memories in this order while the user has more than keep. It skips explicit ones. It returns how many
	// it deleted.
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
