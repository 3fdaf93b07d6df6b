// Package queue holds durable jobs, one for each speaker of each dialogue that ConsiderMemorizing accepted. The jobs of one user
// run in order, one at a time; those of several users run concurrently. An accepted job runs until it ends, across restarts. It
// may run more than once, so its effects must be idempotent. queuetest is the conformance suite of Store.
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
	MaxPending  int               // refuse when this many considerations of the scope's user are pending
	// MaxPendingNamespace is the number of pending considerations of the namespace at which to refuse; 0 is no limit.
	MaxPendingNamespace int
	// MaxPendingTotal and MaxPendingBytes are the number of pending considerations of all namespaces, and the bytes of their
	// dialogues, at which to refuse; 0 is no limit.
	MaxPendingTotal int
	MaxPendingBytes int64
}

// Forgotten counts what Forget deleted.
type Forgotten struct {
	Considerations int64 // this user's, in other people's dialogues included
	Messages       int64 // of this user, taken out of other people's dialogues
}

// Stats counts the considerations of a namespace.
type Stats struct {
	Pending       int64 // running ones included
	Failed        int64
	OldestPending time.Time // zero when none is pending
}

// Depth is the number of considerations of all namespaces in one state.
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

// Expiry says which ended considerations are deleted.
type Expiry struct {
	EndedBefore  time.Time // of what was remembered or skipped; zero: nothing
	FailedBefore time.Time // of what failed; zero: nothing
	Limit        int       // of dialogues
}

// Store keeps the jobs. All methods are safe for concurrent use; errors wrap memory.ErrUnavailable when storage is down.
type Store interface {
	// Accept makes a dialogue durable, with a consideration for each of its speakers, and returns the scope's user's.
	// When the request id was used before with the same payload hash, the earlier consideration is returned and nothing is
	// added; with another hash the error is a *memory.InvalidError about request_id. It is a *memory.OverloadError when too many
	// considerations are pending. Those of other speakers are not counted, so that no speaker can block a group.
	Accept(ctx context.Context, a Acceptance) (memory.Consideration, error)
	// Claim marks up to limit due jobs as running and returns them, oldest first. Only the first job of each user can be due.
	// next is when another job becomes due, zero when none is postponed.
	Claim(ctx context.Context, now time.Time, limit int) (jobs []Job, next time.Time, err error)
	// Checkpoint saves the decision of a job for the next attempt, should this one not finish.
	Checkpoint(ctx context.Context, seq int64, data []byte) error
	// Finish ends a job with a final state and makes the user's next job due.
	Finish(ctx context.Context, seq int64, state memory.State, outcome memory.Outcome, at time.Time) error
	// Postpone makes a running job pending until due. The user's later jobs are not due before it.
	Postpone(ctx context.Context, seq int64, due time.Time, outcome memory.Outcome, at time.Time) error
	// Recover makes running jobs pending again, except those that run in this process.
	Recover(ctx context.Context, except []int64, at time.Time) error
	// MakeDue makes pending jobs that are due later than after due now.
	MakeDue(ctx context.Context, after, now time.Time) error
	// Retry makes a failed consideration pending again. For a pending one it makes the user's first job due; a running one does
	// not change. The error is memory.ErrPrecondition when the consideration ended without a failure.
	Retry(ctx context.Context, user memory.User, id string, audience memory.Audience, at time.Time) (memory.Consideration, error)

	// Get returns a consideration as the user sees it, else memory.ErrNotFound.
	Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Consideration, error)
	// List returns a page of the user's considerations, with their dialogues. next is empty on the last page.
	List(ctx context.Context, user memory.User, q ListQuery) (jobs []Job, next string, err error)
	// Stats counts the considerations of a namespace.
	Stats(ctx context.Context, namespace string) (Stats, error)
	// Forget deletes the user's dialogues and considerations. In the dialogues of other users it deletes what the user said,
	// and, if the user is the scope's, the answers. The outcomes of the others lose reasons that may quote these messages.
	// After an error part of it may be deleted; a repeated call deletes the rest.
	Forget(ctx context.Context, user memory.User) (Forgotten, error)
	// Expire deletes dialogues whose considerations all ended before the times, with these considerations, and returns how many
	// dialogues it deleted. Memories stay. The request ids can be used again.
	Expire(ctx context.Context, e Expiry) (int64, error)
	// ForgetMemory removes the text of a deleted memory from the outcomes of the user's considerations.
	ForgetMemory(ctx context.Context, user memory.User, id string) error
}
