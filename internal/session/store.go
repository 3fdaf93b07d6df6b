package session

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// Store keeps sessions. All methods are safe for concurrent use; what writes is durable when it returns. Errors wrap
// memory.ErrUnavailable when storage is down, memory.ErrNotFound when there is no such session or the viewer does not see
// it, and memory.ErrPrecondition when the viewer may not write to it (Viewer.MayWrite says why).
//
// With a viewer or a scope an id means the user's own session, in a group the group's, and else one in which the user takes part. Where
// there is only a namespace, sessionID is a Session.Ref, or an id that one session has.
type Store interface {
	// Append adds messages at the end of a session, all or none; those whose id the session has are not added again. The
	// same id with another hash is a *memory.InvalidError about "messages[i].id".
	Append(ctx context.Context, a Append) (Appended, error)
	// Record is Append and queue.Store.Accept in one: what the session lacks of r.Acceptance.Dialogue is appended, and of
	// its messages those not considered before are accepted for considering. When the request id was used before,
	// nothing is appended and the earlier consideration returned, with nothing of a session. When all messages were
	// considered before, a skipped consideration says so. Messages of users that the acceptance skips are not kept.
	Record(ctx context.Context, r Record) (memory.Consideration, Appended, error)
	// Unconsidered returns what Take would take: without speakers when no message is pending; ErrNotFound when there is no session.
	Unconsidered(ctx context.Context, namespace, sessionID string) (Pending, error)
	// Take accepts for considering what no consideration took yet, up to and including t.Last, oldest first, at most
	// memory.MaxMessages and memory.MaxDialogueBytes of it. The acceptance's dialogue has a scope and no messages; its
	// speakers are the people found in them. Messages of users that it skips are settled and not kept with it. ok is false when no
	// message is pending: replies of the bot alone are pending until a person says something.
	Take(ctx context.Context, t Take) (c memory.Consideration, ok bool, err error)

	// Get returns a session that the viewer sees.
	Get(ctx context.Context, v Viewer, sessionID string) (Session, error)
	// List returns a page of the sessions that the viewer sees, the one that changed last first. next is empty on the last
	// page.
	List(ctx context.Context, v Viewer, after string, limit int) (sessions []Session, next string, err error)
	// Participants returns all participants, also those that a Session does not list, in the order of their first messages.
	Participants(ctx context.Context, namespace, sessionID string) ([]string, error)
	// Update changes a session that the viewer may write to.
	Update(ctx context.Context, v Viewer, sessionID string, p Patch) (Session, error)
	// Current returns the id of the user's current session in the viewer's channel, in a group else that of the group;
	// "" without one.
	Current(ctx context.Context, v Viewer) (string, error)
	// Switch makes a session the user's current one in the viewer's channel, and creates it when there is none of that
	// id. An empty id leaves the user without.
	Switch(ctx context.Context, v Viewer, sessionID string, at time.Time) (s Session, created bool, err error)
	// Delete deletes a session. It is gone, and its id free, when Delete returns, also when it returns because the
	// context ended; then Sweep completes it. Considerations that have not ended are deleted, of others the messages.
	Delete(ctx context.Context, v Viewer, sessionID string) (Deleted, error)

	// Messages returns a page of a session's messages and how many all pages have. A page of very long ones has fewer than
	// the limit.
	Messages(ctx context.Context, v Viewer, sessionID string, q MessageQuery) (Page, error)
	// Window returns the session, its newest messages that count, and its summary; ErrNotFound when the session does not exist.
	Window(ctx context.Context, v Viewer, sessionID string, q WindowQuery) (Window, error)
	// SaveSummary stores a summary, unless the session was deleted, a user's messages were removed from it, or its window
	// expired since Older returned the revision: then it does nothing.
	SaveSummary(ctx context.Context, namespace, sessionID string, revision int64, s Summary) error
	// Older returns the session's messages of the present window after a position, oldest first, at most limit, for a
	// summary; with the agents that took part and the session's revision.
	Older(ctx context.Context, namespace, sessionID string, after int64, agentID string, limit int) (Older, error)
	// SummaryDone says that the session needs no summary for now. last is Session.Last as it was when that was found out: when
	// more was appended since, it stays due.
	SummaryDone(ctx context.Context, namespace, sessionID string, last int64) error

	// Due returns sessions for which something of these kinds is to be done, of any kind when none is named, the longest due first,
	// and when the next will be (before now when there are more than the limit).
	Due(ctx context.Context, now time.Time, limit int, kinds ...DueKind) (due []Due, next time.Time, err error)
	// Postpone makes due work due later.
	Postpone(ctx context.Context, d Due, until time.Time) error
	// MakeDue makes summaries due now that are due later than a time.
	MakeDue(ctx context.Context, after, now time.Time) error
	// ResetClock makes what is to be considered due now if it is due later than now because of a time that is later than after: the
	// clock was ahead, and has been set.
	ResetClock(ctx context.Context, after, now time.Time) error

	// Sessions returns a page of the sessions in which the user takes part, oldest first.
	Sessions(ctx context.Context, user memory.User, after string, limit int) (sessions []Session, next string, err error)
	// OwnMessages returns the user's messages in a session (see Owner), oldest first, after a position.
	OwnMessages(ctx context.Context, user memory.User, sessionID string, after int64, limit int) ([]Message, error)
	// Forget deletes what a user said anywhere and what was answered to this user; sessions without other participants
	// are deleted with their summaries, summaries of others are rebuilt from the remaining messages.
	Forget(ctx context.Context, user memory.User) (Forgotten, error)
	// Namespaces lists those that have sessions.
	Namespaces(ctx context.Context) ([]string, error)
	// Expire deletes messages of a namespace received before the time, and sessions left without any, in steps, and
	// returns how many messages it deleted.
	Expire(ctx context.Context, e Expiry) (int64, error)
	// Sweep completes deletions that were interrupted.
	Sweep(ctx context.Context) error
}

// Append is what is to be added to a session.
type Append struct {
	Scope    memory.Scope // SessionID "" is the current session, or a new one, which then is the current one
	Audience memory.Audience
	NewID    string // of the session, should one without a name be made
	Messages []memory.Message
	// Hashes are memory.Hashes of the messages before Complete; compared for messages with an id.
	Hashes   [][]byte
	Withheld []Withheld // by message; nil: none
	At       time.Time
	Rules    Rules
	// Settled messages are history only: never considered.
	Settled bool
	// Paused are people whose words are history only, because nothing of them is remembered for now.
	Paused map[string]bool
	// Digests says when digests of people are due, by user id. Other users' messages are read for a digest on request only.
	Digests map[string]DigestRule
	// Import gives a new session these fields, and knows messages without an id by their place: the i-th of all that the
	// import has handed over (From + i, from 1) is there when the message at that position has the same hash, and was there
	// before the import.
	Import *Import
}

// DigestRule says when a digest of a user is due.
type DigestRule struct {
	Every  int       // after so many messages of the user; 0 is never
	DayEnd time.Time // when something waits at the end of the user's day
}

// Import holds the fields of an imported session.
type Import struct {
	Title         string
	Metadata      string
	MemorizeEvery *int
	CreatedAt     time.Time // zero: Append.At
	UpdatedAt     time.Time // zero: Append.At; set again after every batch
	From          int64     // how many messages of the import came before this batch
	Before        int64     // Session.Last before the first batch; needed when From is not 0
}

// Rules are what the configuration and the user's settings say about a session.
type Rules struct {
	TTL time.Duration // the window expires after this long without a message; 0 never
	// MemorizeEvery is the number of people's messages after which the pending messages are considered, unless the session has its own
	// number; 0 is never, not after Idle either.
	MemorizeEvery int
	Idle          time.Duration // after this long without a message, too; never later than TTL
	// SummarizeAfter is how many messages of the window no summary covers when a summary becomes due; 0 is never.
	SummarizeAfter int64
}

// Pause returns after how long without a message the pending messages are considered; 0 is never.
func (r Rules) Pause() time.Duration {
	if r.Idle <= 0 || r.TTL > 0 && r.TTL < r.Idle {
		return max(r.TTL, 0)
	}
	return r.Idle
}

// Appended is what Append did.
type Appended struct {
	Session   Session
	Created   bool
	Added     int
	Positions []int64 // of the messages, in order, those that were there included
	// Withheld are those of the messages that are kept out of windows and considerations. The Keeper fills it in.
	Withheld []WithheldMessage
}

// WithheldMessage is a message that is kept out of windows and considerations.
type WithheldMessage struct {
	Position int64
	Reason   Withheld
}

// Record is an Append whose messages are those of the acceptance's dialogue.
type Record struct {
	Append
	Acceptance queue.Acceptance
}

// Pending are the messages of a session that were not considered yet.
type Pending struct {
	Session  Session
	Scope    memory.Scope // of the oldest pending message: its speaker, its agent
	Speakers []string     // of all pending messages; the scope's user first
	Last     int64        // the position of the last
}

// Take is a part of a session to be considered.
type Take struct {
	Namespace, SessionID string
	Last                 int64
	Acceptance           queue.Acceptance
}

// Patch is a change of a session; nil fields are not changed.
type Patch struct {
	Title, Metadata *string
	MemorizeEvery   **int // the inner nil removes it
	At              time.Time
}

// Deleted counts what Delete deleted.
type Deleted struct {
	Messages       int64
	Considerations int64 // that had not ended
}

// Forgotten counts what Forget deleted.
type Forgotten struct {
	Messages int64
	Sessions int64
}

// MessageQuery asks for a page of messages.
type MessageQuery struct {
	NewestFirst bool
	Start       int64  // the first position, 0 is either end
	After       string // the next of the page before
	AgentID     *string
	Limit       int
}

// Page is a page of messages.
type Page struct {
	Session  Session
	Messages []Message
	Next     string
	Total    int64
}

// WindowQuery says which messages of a window count. Withheld ones never do.
type WindowQuery struct {
	Limit   int
	AgentID *string
	Tools   bool // with those of tools, and those that say nothing but call tools
	System  bool // with system messages
}

// Window is the end of a session.
type Window struct {
	Session  Session
	Messages []Message // oldest first, none from before Session.WindowStart
	Summary  *Summary  // of the agent asked for, or of all
}

// Older is what a summary is made of.
type Older struct {
	Session   Session
	Messages  []Message // no withheld, system or tool ones
	Summaries []Summary
	Revision  int64
}

// DueKind is the kind of due work.
type DueKind string

// The kinds of due work.
const (
	DueConsider  DueKind = "consider"
	DueSummarize DueKind = "summarize"
)

// Due is a session for which something is to be done.
type Due struct {
	Namespace, SessionID string
	Ref                  string // Session.Ref
	Kind                 DueKind
	At                   time.Time
}

// Expiry says which messages are deleted.
type Expiry struct {
	Namespace string
	Before    time.Time
	Limit     int // messages deleted in one step
}
