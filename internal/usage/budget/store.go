package budget

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Count is what was counted of a budget in a day.
type Count struct {
	Tokens  int64 // that models took, in and out
	Refused int64 // calls that were refused because of the budget
}

// Entry is something to be added to the count of a day.
type Entry struct {
	Day  string      // as usage.Day names it
	User memory.User // without an id: the namespace as a whole
	Count
}

// Store keeps the counts of the newest day, and of earlier ones at least until it is written to on a new one. All methods are
// safe for concurrent use; errors wrap memory.ErrUnavailable when storage is down.
type Store interface {
	// Add adds entries to the counts, all or none.
	Add(ctx context.Context, entries []Entry) error
	// Get returns a count, zero when nothing was counted. A user without an id is the namespace as a whole.
	Get(ctx context.Context, day string, user memory.User) (Count, error)
	// RefusedUsers is how many users of the namespace had calls refused on the day.
	RefusedUsers(ctx context.Context, day, namespace string) (int64, error)
	// Forget deletes what was counted for a user, on all days, and reports whether there was anything. The namespace's count
	// stays.
	Forget(ctx context.Context, user memory.User) (bool, error)
}
