package session

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// Store keeps sessions. All methods are safe for concurrent use; writes are durable when they return. Errors wrap memory.ErrUnavailable
// when storage is unavailable, memory.ErrNotFound when the session does not exist or the viewer may not see it, and
// memory.ErrPrecondition when the viewer may not write to it (see Viewer.MayWrite).
//
// With a viewer or a scope, an id means the user's own session, in a group the group's, and otherwise a session in which the user takes
// part. With only a namespace, sessionID is a Session.Ref, or an id that is unique.
type Store interface {
	// Append adds messages at the end of a session, atomically. Messages with an id that the session has already are not added again;
	// if the hash differs, the error is a *memory.InvalidError about "messages[i].id".
	Append(ctx context.Context, a Append) (Appended, error)
	// Record combines Append and queue.Store.Accept: it appends those messages of r.Acceptance.Dialogue that the session lacks, and
	// accepts those that were not considered before. If the request id was used before, nothing is appended, and it returns the earlier
	// consideration and a zero Appended. If all messages were considered before, it returns a skipped consideration that says so.
	// Messages of users that the acceptance skips are not kept.
	Record(ctx context.Context, r Record) (memory.Consideration, Appended, error)
	// Unconsidered returns what Take would accept. It has no speakers if no message is pending; ErrNotFound means that the session does
	// not exist.
	Unconsidered(ctx context.Context, namespace, sessionID string) (Pending, error)
	// Take accepts for considering the pending messages up to and including t.Last, oldest first, at most memory.MaxMessages and
	// memory.MaxDialogueBytes. The acceptance's dialogue has a scope and no messages; its speakers are found in the messages. Messages
	// of users that it skips are settled and not kept with it. ok is false if no message is pending: replies of the bot alone are not
	// accepted until a person says something.
	Take(ctx context.Context, t Take) (c memory.Consideration, ok bool, err error)

	// Get returns a session that the viewer may see.
	Get(ctx context.Context, v Viewer, sessionID string) (Session, error)
	// List returns a page of the sessions that the viewer may see, last changed first. next is empty on the last page.
	List(ctx context.Context, v Viewer, after string, limit int) (sessions []Session, next string, err error)
	// Participants returns all participants, including those that a Session does not list, in the order of their first messages.
	Participants(ctx context.Context, namespace, sessionID string) ([]string, error)
	// Update changes a session that the viewer may write to.
	Update(ctx context.Context, v Viewer, sessionID string, p Patch) (Session, error)
	// Current returns the id of the user's current session in the viewer's channel, else (in a group) that of the group, else "".
	Current(ctx context.Context, v Viewer) (string, error)
	// Switch makes a session the user's current one in the viewer's channel, and creates it if it does not exist. An empty id clears
	// the current session.
	Switch(ctx context.Context, v Viewer, sessionID string, at time.Time) (s Session, created bool, err error)
	// Delete deletes a session. The session is gone, and its id free, when Delete returns, even if the context ended; then Sweep
	// completes the deletion. Pending considerations are deleted; ended ones lose their messages.
	Delete(ctx context.Context, v Viewer, sessionID string) (Deleted, error)

	// Messages returns a page of a session's messages, and the total number of messages in all pages. A page of very long messages has
	// fewer than the limit.
	Messages(ctx context.Context, v Viewer, sessionID string, q MessageQuery) (Page, error)
	// Window returns the session, its newest messages that match the query, and its summary; ErrNotFound if the session does not exist.
	Window(ctx context.Context, v Viewer, sessionID string, q WindowQuery) (Window, error)
	// SaveSummary stores a summary. It does nothing if since Older returned the revision the session was deleted, messages of a user
	// were removed from it, or its window expired.
	SaveSummary(ctx context.Context, namespace, sessionID string, revision int64, s Summary) error
	// Older returns messages of the current window after a position, oldest first, at most limit, to summarise them; with the agents of
	// the session and the session's revision.
	Older(ctx context.Context, namespace, sessionID string, after int64, agentID string, limit int) (Older, error)
	// MarkRead records when a session's context was asked for the first time. If a summary was made by madeBy, one becomes due.
	MarkRead(ctx context.Context, namespace, sessionID, madeBy string, at time.Time) error
	// Exclude excludes messages from Older, searches, topics and digests, not from Messages and Window: those that a consideration's
	// user asked not to keep. The references are as in memory.Provenance. Summaries that cover them are deleted. Repeating it changes
	// nothing.
	Exclude(ctx context.Context, user memory.User, considerationID string, refs []string) error
	// SummaryDone records that the session needs no summary now. last is Session.Last at the time of that check; if messages were
	// appended since, a summary stays due. So it does if the session was first read since, which readAt of that check tells.
	SummaryDone(ctx context.Context, namespace, sessionID string, last int64, readAt time.Time) error

	// Due returns sessions with due work of these kinds, or of any kind, longest due first, and the time of the next due work. That
	// time is before now if there are more than the limit.
	Due(ctx context.Context, now time.Time, limit int, kinds ...DueKind) (due []Due, next time.Time, err error)
	// Postpone makes due work due later.
	Postpone(ctx context.Context, d Due, until time.Time) error
	// MakeDue makes summaries due now if their due time is later than after.
	MakeDue(ctx context.Context, after, now time.Time) error
	// ResetClock corrects considerations that are due too late because the clock was ahead and has been set back: if their due time
	// follows from a time later than after, they become due now.
	ResetClock(ctx context.Context, after, now time.Time) error

	// Sessions returns a page of the sessions in which the user takes part, oldest first.
	Sessions(ctx context.Context, user memory.User, after string, limit int) (sessions []Session, next string, err error)
	// OwnMessages returns the user's messages in a session (see Owner), oldest first, after a position.
	OwnMessages(ctx context.Context, user memory.User, sessionID string, after int64, limit int) ([]Message, error)
	// Forget deletes what a user said anywhere and the answers to this user. Sessions without other participants are deleted with their
	// summaries; summaries of others are rebuilt from the remaining messages.
	Forget(ctx context.Context, user memory.User) (Forgotten, error)
	// Namespaces lists the namespaces that have sessions.
	Namespaces(ctx context.Context) ([]string, error)
	// Expire deletes messages of a namespace received before the time, and sessions that become empty, in steps, and returns how many
	// messages it deleted.
	Expire(ctx context.Context, e Expiry) (int64, error)
	// Sweep completes interrupted deletions.
	Sweep(ctx context.Context) error
}

// Append is the input of Store.Append.
type Append struct {
	Scope    memory.Scope // SessionID "" means the current session, else a new one that becomes current
	Audience memory.Audience
	NewID    string // of the session, if one without an id is created
	Messages []memory.Message
	// Hashes are memory.Hashes of the messages before Complete. They are compared for messages with an id.
	Hashes   [][]byte
	Excluded []Exclusion // by message; nil: none
	At       time.Time
	Rules    Rules
	// Settled messages are history only: never considered.
	Settled bool
	// Paused are people whose messages are history only, because remembering is paused for them.
	Paused map[string]bool
	// Digests decides, by user id, when digests of people are due. Other users' messages are read for a digest on request only.
	Digests map[string]DigestRule
	// Import sets the fields of a new session, and identifies messages without an id by their position: the i-th message of the import
	// (From + i, from 1) exists already if the message at that position has the same hash and was there before the import.
	Import *Import
}

// DigestRule decides when a digest of a user is due.
type DigestRule struct {
	Every  int       // after this number of messages of the user; 0: never
	DayEnd time.Time // at the end of the user's day, if messages are pending
}

// Import holds the fields of an imported session.
type Import struct {
	Title         string
	Metadata      string
	MemorizeEvery *int
	CreatedAt     time.Time // zero: Append.At
	UpdatedAt     time.Time // zero: Append.At; set again after every batch
	From          int64     // number of messages in earlier batches of the import
	Before        int64     // Session.Last before the first batch; needed when From is not 0
}

// Rules combine the configuration and the user's settings for a session.
type Rules struct {
	TTL time.Duration // the window expires after this long without a message; 0: never
	// MemorizeEvery is the number of people's messages after which the pending messages are considered, unless the session has its own
	// number; 0 means never, not even after Idle.
	MemorizeEvery int
	Idle          time.Duration // also after this long without a message; at most TTL
	// SummarizeAfter is the number of unsummarised messages of the window at which a summary becomes due; 0 means never.
	SummarizeAfter int64
}

// Pause returns the time without a message after which the pending messages are considered; 0 means never.
func (r Rules) Pause() time.Duration {
	if r.Idle <= 0 || r.TTL > 0 && r.TTL < r.Idle {
		return max(r.TTL, 0)
	}
	return r.Idle
}

// Appended is the result of Append.
type Appended struct {
	Session   Session
	Created   bool
	Added     int
	Positions []int64 // of the messages, in order, including existing ones
	// Excluded are the messages excluded from windows and considerations. The Writer fills it in.
	Excluded []ExcludedMessage
}

// ExcludedMessage is a message excluded from windows and considerations.
type ExcludedMessage struct {
	Position int64
	Reason   Exclusion
}

// Record is an Append whose messages are those of the acceptance's dialogue.
type Record struct {
	Append
	Acceptance queue.Acceptance
}

// Pending describes the messages of a session that are not yet considered.
type Pending struct {
	Session  Session
	Scope    memory.Scope // of the oldest pending message: its speaker, its agent
	Speakers []string     // of all pending messages; the scope's user first
	Last     int64        // position of the last one
}

// Take selects the pending messages of a session for considering.
type Take struct {
	Namespace, SessionID string
	Last                 int64
	Acceptance           queue.Acceptance
}

// Patch is a change of a session; nil fields stay unchanged.
type Patch struct {
	Title, Metadata *string
	MemorizeEvery   **int // an inner nil removes it
	At              time.Time
}

// Deleted counts what Delete deleted.
type Deleted struct {
	Messages       int64
	Considerations int64 // pending ones
}

// Forgotten counts what Forget deleted.
type Forgotten struct {
	Messages int64
	Sessions int64
}

// MessageQuery asks for a page of messages.
type MessageQuery struct {
	NewestFirst bool
	Start       int64  // the first position; 0: the first or last of all
	After       string // next of the previous page
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

// WindowQuery selects messages of a window. Excluded ones are never selected.
type WindowQuery struct {
	Limit   int
	AgentID *string
	Tools   bool // include tool messages, and messages that only call tools
	System  bool // include system messages
}

// Window is the newest part of a session.
type Window struct {
	Session  Session
	Messages []Message // oldest first, none from before Session.WindowStart
	Summary  *Summary  // of the requested agent, or of all
	ReadAt   time.Time // see Store.MarkRead; zero: not yet
}

// Older is the input of a summary.
type Older struct {
	Session   Session
	Messages  []Message // without excluded, system and tool messages
	Summaries []Summary
	Revision  int64
	ReadAt    time.Time // see Store.MarkRead; zero: not yet
}

// DueKind is the kind of due work.
type DueKind string

// The kinds of due work.
const (
	DueConsider  DueKind = "consider"
	DueSummarize DueKind = "summarize"
)

// Due is a session with due work.
type Due struct {
	Namespace, SessionID string
	Ref                  string // Session.Ref
	Kind                 DueKind
	At                   time.Time
}

// Expiry selects the messages to delete.
type Expiry struct {
	Namespace string
	Before    time.Time
	Limit     int // messages deleted in one step
}
