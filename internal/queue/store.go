// Package queue holds the durable jobs: one for each speaker of each dialogue that was handed to ConsiderMemorizing. A
// user's jobs run one at a time and in order, several users' at once. A job that was accepted is run until it ends,
// across restarts; what it does must be idempotent, because it may run more than once.
package queue

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Job is a consideration with what is needed to run it.
type Job struct {
	Seq           int64 // position in the queue, unique
	Consideration memory.Consideration
	Dialogue      memory.Dialogue
	Call          trace.Call // that handed the dialogue over
	Checkpoint    []byte     // what an earlier attempt saved, or nil
	AcceptedAt    time.Time  // start of the age limit
	Unreadable    error      // why its dialogue cannot be read, which then has no messages; such a job is never claimed
}

// User is the person whose words the job considers.
func (j *Job) User() memory.User { return j.Consideration.Scope.User() }

// Acceptance is a dialogue to be made durable.
type Acceptance struct {
	ID          string // of the new consideration, should one be made
	Dialogue    memory.Dialogue
	Speakers    []string // whose words are considered; the first is the scope's user
	RequestID   string   // idempotency key, or empty
	PayloadHash []byte   // of scope and messages
	At          time.Time
	Call        trace.Call        // what the request was a part of
	Skip        map[string]string // speakers whose consideration is skipped from the start, and why
	MaxPending  int               // refuse when this many of the scope's user's considerations wait
	// MaxPendingNamespace refuses when this many of the namespace's considerations wait; 0 is any number.
	MaxPendingNamespace int
	// MaxPendingTotal and MaxPendingBytes refuse when this many considerations of all namespaces wait, or this many bytes of
	// their dialogues; 0 is any number.
	MaxPendingTotal int
	MaxPendingBytes int64
}

// Forgotten counts what Forget deleted.
type Forgotten struct {
	Considerations int64 // this user's, in other people's dialogues included
	Messages       int64 // of this user, taken out of other people's dialogues
}

// Stats says how much waits in a namespace.
type Stats struct {
	Pending       int64 // running ones included
	Failed        int64
	OldestPending time.Time // zero when none waits
}

// Depth says how many considerations of all namespaces are in a state.
type Depth struct {
	State  memory.State
	Count  int64
	Oldest time.Time // when the one longest in the queue was accepted, or last retried; zero when there is none
}

// ListQuery asks for a page of considerations.
type ListQuery struct {
	Audience    memory.Audience
	States      []memory.State // empty: all
	OldestFirst bool
	After       string // the next of the page before
	Limit       int
}

// Expiry says what is deleted of what has ended.
type Expiry struct {
	EndedBefore  time.Time // of what was remembered or skipped; zero: nothing
	FailedBefore time.Time // of what failed; zero: nothing
	Limit        int       // of dialogues
}

// Store keeps the jobs. All methods are safe for concurrent use; errors wrap memory.ErrUnavailable when storage is down.
type Store interface {
	// Accept makes a dialogue durable, with a consideration for each of its speakers, and returns the scope's user's.
	// When the request id was used before with the same payload hash, the earlier one is returned and nothing is added;
	// with another hash it is a *memory.InvalidError about request_id. A *memory.OverloadError refuses a scope's
	// user of whom too many wait; of other speakers any number may, so that nobody can keep a group from being heard.
	Accept(ctx context.Context, a Acceptance) (memory.Consideration, error)
	// Claim marks up to limit jobs that are due as running, each the first of its user's line, oldest first, and returns
	// them. next is when another becomes due, zero when none is waiting for a time.
	Claim(ctx context.Context, now time.Time, limit int) (jobs []Job, next time.Time, err error)
	// Checkpoint saves what the job decided, for the attempt after a crash.
	Checkpoint(ctx context.Context, seq int64, data []byte) error
	// Finish ends a job with a final state and makes the next of its user's line due.
	Finish(ctx context.Context, seq int64, state memory.State, outcome memory.Outcome, at time.Time) error
	// Postpone makes a running job pending until due. Its line waits with it.
	Postpone(ctx context.Context, seq int64, due time.Time, outcome memory.Outcome, at time.Time) error
	// Recover makes running jobs pending again, except those named: what is running in this process.
	Recover(ctx context.Context, except []int64, at time.Time) error
	// MakeDue makes what is pending and due later than a time due now.
	MakeDue(ctx context.Context, after, now time.Time) error
	// Retry makes a failed consideration pending again. Of a pending one it makes the first of the user's line due; one that runs
	// stays as it is. memory.ErrPrecondition when it has ended well.
	Retry(ctx context.Context, user memory.User, id string, audience memory.Audience, at time.Time) (memory.Consideration, error)

	// Get returns a consideration as the user sees it, else memory.ErrNotFound.
	Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Consideration, error)
	// List returns a page of the user's considerations, with their dialogues. next is empty on the last page.
	List(ctx context.Context, user memory.User, q ListQuery) (jobs []Job, next string, err error)
	// Stats counts what waits.
	Stats(ctx context.Context, namespace string) (Stats, error)
	// Forget deletes the user's dialogues, the user's view of other people's, and in those what the user said and, where
	// the user is the scope's, was answered. What the others keep of these dialogues loses the reasons that may quote that.
	// When it fails, what was deleted stays so, and calling it again goes on.
	Forget(ctx context.Context, user memory.User) (Forgotten, error)
	// Expire deletes dialogues of which all considerations ended before the times, with these, and returns how many; none when
	// there are none left. Memories stay. Their request ids can be used anew.
	Expire(ctx context.Context, e Expiry) (int64, error)
	// ForgetMemory takes the words of a memory that was deleted out of what became of the user's considerations.
	ForgetMemory(ctx context.Context, user memory.User, id string) error
}
