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

// ListQuery asks for a page of considerations.
type ListQuery struct {
	Audience    memory.Audience
	States      []memory.State // empty: all
	OldestFirst bool
	After       string // the next of the page before
	Limit       int
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
	// Retry makes a failed consideration pending again; memory.ErrPrecondition when it has not failed.
	Retry(ctx context.Context, user memory.User, id string, audience memory.Audience, at time.Time) (memory.Consideration, error)

	// Get returns a consideration as the user sees it, else memory.ErrNotFound.
	Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Consideration, error)
	// List returns a page of the user's considerations, with their dialogues. next is empty on the last page.
	List(ctx context.Context, user memory.User, q ListQuery) (jobs []Job, next string, err error)
	// Stats counts what waits.
	Stats(ctx context.Context, namespace string) (Stats, error)
	// Forget deletes the user's dialogues, the user's view of other people's, and the user's messages in those.
	Forget(ctx context.Context, user memory.User) (Forgotten, error)
}
