package digest

import (
	"context"
	"errors"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// ErrChanged means that messages were deleted, or covered by another digest, since they were read.
var ErrChanged = errors.New("the messages changed concurrently")

// Store keeps contributions to digests, and which messages are pending for a digest; session.Append marks those. All methods are safe
// for concurrent use; writes are durable when they return. Errors wrap memory.ErrUnavailable when storage is unavailable.
type Store interface {
	// Pending returns pending messages of one session, oldest first: the user said or received them and no digest covers them. The
	// result may be empty.
	Pending(ctx context.Context, user memory.User, q PendingQuery) (Pending, error)
	// CountPending counts pending messages that are visible to seen.
	CountPending(ctx context.Context, user memory.User, seen Seen, from, before time.Time) (int64, error)
	// Save stores a contribution and marks the messages that it covers, atomically. A contribution that is stored already is not stored
	// again. It returns ErrChanged, and stores nothing, if a covered message was deleted or was covered before.
	Save(ctx context.Context, c Contribution) error
	// Find returns the visible findings of messages from a time (inclusive) to another (exclusive), oldest first.
	Find(ctx context.Context, user memory.User, seen Seen, from, before time.Time) ([]Entry, error)
	// Newest returns the time of the newest visible finding before a time, or the zero time.
	Newest(ctx context.Context, user memory.User, seen Seen, before time.Time) (time.Time, error)
	// List returns a page of all entries of a user in the order in which they were stored. next is empty on the last page.
	List(ctx context.Context, user memory.User, after string, limit int) (entries []Entry, next string, err error)

	// Unremembered returns important findings without a memory yet.
	Unremembered(ctx context.Context, user memory.User) ([]Entry, error)
	// Remembered records the memories made of findings, by entry id.
	Remembered(ctx context.Context, user memory.User, memories map[string]string) error

	// Due returns users with a due digest, longest due first, and when the next one will be due.
	Due(ctx context.Context, now time.Time, limit int) (due []memory.User, next time.Time, err error)
	// Done records that all messages pending at a time were read. The rule decides when the user's next digest is due.
	Done(ctx context.Context, user memory.User, rule Rule) error
	// Postpone makes the digest of a user due later.
	Postpone(ctx context.Context, user memory.User, until time.Time) error
	// MakeDue makes postponed digests due now, and those with a due time so late that the clock must have been set back since.
	MakeDue(ctx context.Context, o Overdue) error

	// Forget deletes everything of a user and returns the number of findings.
	Forget(ctx context.Context, user memory.User) (int64, error)
}

// Seen selects findings that the audience may see and, if the agent is not nil, that were said to the agent.
type Seen struct {
	Audience memory.Audience
	AgentID  *string
}

// Rule decides when a digest of a user is due.
type Rule struct {
	Now    time.Time
	Every  int       // at this number of pending messages; 0: never
	DayEnd time.Time // at the end of the user's day, if messages are pending
}

// Overdue selects the digests that MakeDue makes due.
type Overdue struct {
	Now     time.Time
	Every   int           // as in Rule
	Longest time.Duration // the longest possible postponement; 0 selects all postponed digests
}

// PendingQuery selects pending messages.
type PendingQuery struct {
	ByItself bool      // only those that are read automatically
	From     time.Time // said at or after this time; zero: any
	Before   time.Time // said before this time; zero: any
	Limit    int
}

// Message is a pending message.
type Message struct {
	memory.Message
	Ref      int64 // names it in Contribution.Covers
	Position int64 // in its session
	// Considered messages have memories of their statements already or, for a query ByItself, will have them.
	Considered bool
}

// Pending is a part of a session with pending messages.
type Pending struct {
	Scope    memory.Scope // the user and the place
	Messages []Message
}
