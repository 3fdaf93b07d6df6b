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

// Job is a consideration with the data to run it.
type Job struct {
	Seq           int64 // position in the queue, unique
	Consideration memory.Consideration
	Dialogue      memory.Dialogue
	Call          trace.Call // the request that accepted the dialogue
	Checkpoint    []byte     // what an earlier attempt saved, or nil
	AcceptedAt    time.Time  // start of the age limit
	Unreadable    error      // why the dialogue cannot be read; it then has no messages, and the job is never claimed
}

// User is the person whose words the job considers.
func (j *Job) User() memory.User { return j.Consideration.Scope.User() }

// Acceptance is a dialogue to be made durable.
type Acceptance struct {
	ID          string // of the new consideration, if one is created
	Dialogue    memory.Dialogue
	Speakers    []string // whose words are considered; the first is the scope's user
	RequestID   string   // idempotency key, or empty
	PayloadHash []byte   // of scope and messages
	At          time.Time
	Call        trace.Call        // the larger operation of the request
	Skip        map[string]string // reasons by speaker to skip the consideration
	MaxPending  int               // limit of pending considerations of the scope's user
	// MaxPendingNamespace limits the pending considerations of the namespace; 0 means no limit.
	MaxPendingNamespace int
	// MaxPendingTotal and MaxPendingBytes limit the pending considerations of all namespaces and the bytes of their dialogues; 0 means
	// no limit.
	MaxPendingTotal int
	MaxPendingBytes int64
	// Delay holds the considerations back, so that those of one user and conversation can be considered together: until nothing was
	// added to the conversation for this long, but not longer than MaxDelays delays, nor than MaxDelay.
	Delay time.Duration
	// DelayMessages is the number of people's messages at which what is held back in a line becomes due; 0 means no such number.
	DelayMessages int
	// Hurry makes what is held back in the speakers' lines due now.
	Hurry bool
}

// The longest time for which Acceptance.Delay holds a consideration back: so many delays, and in no case longer than MaxDelay.
const (
	MaxDelays = 5
	MaxDelay  = time.Hour
)

// Preceding is an earlier dialogue of a conversation.
type Preceding struct {
	ConsiderationID string
	Messages        []memory.Message
}

// Forgotten counts what Forget deleted.
type Forgotten struct {
	Considerations int64 // this user's, including those in other people's dialogues
	Messages       int64 // of this user, removed from other people's dialogues
}

// Stats counts the considerations of a namespace.
type Stats struct {
	Pending       int64 // including running ones
	Failed        int64
	OldestPending time.Time // zero if none is pending
}

// Depth is the number of considerations of all namespaces in one state.
type Depth struct {
	State  memory.State
	Count  int64
	Oldest time.Time // when the oldest was accepted, or last retried; zero if there is none
	// Delayed is how many of the pending ones are held back to be considered together with what follows.
	Delayed int64
}

// ListQuery asks for a page of considerations.
type ListQuery struct {
	Audience    memory.Audience
	States      []memory.State // empty: all
	OldestFirst bool
	After       string // next of the previous page
	Limit       int
}

// Expiry says which ended considerations are deleted.
type Expiry struct {
	EndedBefore  time.Time // for remembered and skipped ones; zero: none
	FailedBefore time.Time // for failed ones; zero: none
	Limit        int       // of dialogues
}

// Store keeps the jobs. All methods are safe for concurrent use; errors wrap memory.ErrUnavailable when storage is unavailable.
type Store interface {
	// Accept makes a dialogue durable, with a consideration for each speaker, and returns that of the scope's user. If the request id
	// was used before with the same payload hash, it returns the earlier consideration and adds nothing; with another hash the error is
	// a *memory.InvalidError about request_id. The error is a *memory.OverloadError if too many considerations are pending. Those of
	// other speakers are not counted, so that no speaker can block a group.
	Accept(ctx context.Context, a Acceptance) (memory.Consideration, error)
	// Claim marks up to limit due jobs as running and returns them, oldest first. Only the first job of each user can be due. next is
	// the time when another job becomes due, or zero.
	Claim(ctx context.Context, now time.Time, limit int) (jobs []Job, next time.Time, err error)
	// Preceding returns the dialogues that were accepted before a job's, of the same conversation: those of its session, or without a
	// session those of the user in the same channel with the same agent. They come newest first, at most limit. Unreadable ones are
	// left out.
	Preceding(ctx context.Context, seq int64, limit int) ([]Preceding, error)
	// Checkpoint saves the decision of a job for the next attempt, in case this one does not finish.
	Checkpoint(ctx context.Context, seq int64, data []byte) error
	// ReadCheckpoint returns what was saved for a job, or nil.
	ReadCheckpoint(ctx context.Context, seq int64) ([]byte, error)
	// Following returns the pending jobs that follow a job in its user's line without a gap and belong to the same conversation: the
	// same session, channel and agent. They are in order, at most limit, and end before one that cannot be read or that has a checkpoint.
	Following(ctx context.Context, seq int64, limit int) ([]Job, error)
	// SameDialogues returns the jobs of other users for the dialogues of the given jobs, by user, whose turn it is: those that are first in
	// their user's line, have no checkpoint and can be read. They may be running.
	SameDialogues(ctx context.Context, seqs []int64) ([][]Job, error)
	// CheckpointAll saves the checkpoints of several jobs, all or none. None of them is held back any longer.
	CheckpointAll(ctx context.Context, checkpoints map[int64][]byte) error
	// Finish ends a job with a final state and makes the user's next job due.
	Finish(ctx context.Context, seq int64, state memory.State, outcome memory.Outcome, at time.Time) error
	// Postpone makes a running job pending until due. The user's later jobs are not due before it.
	Postpone(ctx context.Context, seq int64, due time.Time, outcome memory.Outcome, at time.Time) error
	// Recover makes running jobs pending again, except those that run in this process.
	Recover(ctx context.Context, except []int64, at time.Time) error
	// MakeDue makes pending jobs due now if their due time is later than after. Those held back by Acceptance.Delay stay so, unless
	// for longer than MaxDelay: then the clock was ahead.
	MakeDue(ctx context.Context, after, now time.Time) error
	// Retry makes a failed consideration pending again. For a pending one it makes the user's first job due; a running one does
	// not change. The error is memory.ErrPrecondition when the consideration ended without a failure.
	Retry(ctx context.Context, user memory.User, id string, audience memory.Audience, at time.Time) (memory.Consideration, error)

	// Get returns a consideration as the user sees it, or memory.ErrNotFound.
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
