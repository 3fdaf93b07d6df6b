package budget

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Count is the use of a budget in a day.
type Count struct {
	Tokens  int64 // used by models, input and output
	Refused int64 // calls that were refused because of the budget
}

// Entry is an addition to the count of a day.
type Entry struct {
	Day  string      // as usage.Day names it
	User memory.User // without an id: the namespace as a whole
	Count
}

// Store keeps the counts of the newest day. Earlier days are kept at least until the first write on a new day. All methods are safe for
// concurrent use; errors wrap memory.ErrUnavailable when storage is unavailable.
type Store interface {
	// Add adds entries to the counts, atomically.
	Add(ctx context.Context, entries []Entry) error
	// Get returns a count, or zero. A user without an id means the namespace as a whole.
	Get(ctx context.Context, day string, user memory.User) (Count, error)
	// RefusedUsers returns how many users of the namespace had calls refused on the day.
	RefusedUsers(ctx context.Context, day, namespace string) (int64, error)
	// Forget deletes the counts of a user on all days, and reports whether there were any. The namespace's count stays.
	Forget(ctx context.Context, user memory.User) (bool, error)
}
