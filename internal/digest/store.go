package digest

import (
	"context"
	"errors"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// ErrChanged means that messages were deleted, or read for another digest, since they were read.
var ErrChanged = errors.New("the messages changed meanwhile")

// Store keeps contributions to digests, and which messages no digest has looked at. Which those are is said when messages are
// appended to a session (see session.Append). All methods are safe for concurrent use; what writes is durable when it
// returns. Errors wrap memory.ErrUnavailable when storage is down.
type Store interface {
	// Waiting returns messages that the user said or was answered and no digest has looked at, of one session, oldest
	// first; none when there are none.
	Waiting(ctx context.Context, user memory.User, q WaitingQuery) (Waiting, error)
	// CountWaiting counts such messages, of what is seen.
	CountWaiting(ctx context.Context, user memory.User, seen Seen, from, before time.Time) (int64, error)
	// Save stores a contribution and marks the messages that it covers, both or neither. One that is stored already is not
	// stored again. ErrChanged when a message that it covers is gone or was covered already: then nothing is stored.
	Save(ctx context.Context, c Contribution) error
	// Find returns the visible findings of messages from a time (inclusive) to another (exclusive), oldest first.
	Find(ctx context.Context, user memory.User, seen Seen, from, before time.Time) ([]Entry, error)
	// Newest returns when the newest finding before a time was said, of what is seen; the zero time for none.
	Newest(ctx context.Context, user memory.User, seen Seen, before time.Time) (time.Time, error)
	// List returns a page of all entries of a user in the order in which they were stored. next is empty on the last page.
	List(ctx context.Context, user memory.User, after string, limit int) (entries []Entry, next string, err error)

	// Unremembered returns findings that are important and were not made memories yet.
	Unremembered(ctx context.Context, user memory.User) ([]Entry, error)
	// Remembered says which memories they became, by the entries' ids.
	Remembered(ctx context.Context, user memory.User, memories map[string]string) error

	// Due returns users with a due digest, the one due longest first, and when the next will be due.
	Due(ctx context.Context, now time.Time, limit int) (due []memory.User, next time.Time, err error)
	// Done says that all that waited at a time was looked at: the next digest of the user is due when there is something
	// by then, as the rule says.
	Done(ctx context.Context, user memory.User, rule Rule) error
	// Postpone makes the digest of a user due later.
	Postpone(ctx context.Context, user memory.User, until time.Time) error
	// MakeDue makes digests due now that are postponed, and those that this clock cannot have made due so late.
	MakeDue(ctx context.Context, o Overdue) error

	// Forget deletes everything of a user and returns how many findings that were.
	Forget(ctx context.Context, user memory.User) (int64, error)
}

// Seen is what of a user's digests is looked at: what the audience sees and, unless it is nil, was said with the agent.
type Seen struct {
	Audience memory.Audience
	AgentID  *string
}

// Rule says when a digest of a user is due.
type Rule struct {
	Now    time.Time
	Every  int       // so many messages of the user wait; 0 is never
	DayEnd time.Time // something waits at the end of the user's day
}

// Overdue says which digests MakeDue makes due.
type Overdue struct {
	Now     time.Time
	Every   int           // as in Rule
	Longest time.Duration // the longest time for which a digest is postponed; 0 takes all that are
}

// WaitingQuery says which messages are meant.
type WaitingQuery struct {
	ByItself bool      // only those that are looked at without being asked to
	From     time.Time // said at or after this time; zero: any
	Before   time.Time // said before this time; zero: any
	Limit    int
}

// Message is a message that waits.
type Message struct {
	memory.Message
	Ref      int64 // names it in Contribution.Covers
	Position int64 // in its session
	// Considered messages have their statements among the memories already or, for a query ByItself, are going to have them.
	Considered bool
}

// Waiting is a part of a session that no digest has looked at.
type Waiting struct {
	Scope    memory.Scope // whose, and where
	Messages []Message
}
