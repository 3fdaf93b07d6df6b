// Package trace records what the sidecar did and why: the query, the candidates, the model calls and the outcome. Recording is
// asynchronous and never delays a caller; a crash may lose the last records. Store declares the storage; tracetest is its
// conformance suite.
package trace

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Kind is the kind of a record.
type Kind string

// The kinds.
const (
	KindRetrieve Kind = "retrieve" // a call of Retrieve
	KindConsider Kind = "consider" // an attempt to consider what one person said in a dialogue
	KindContext  Kind = "context"  // a call of GetContext
)

// Record is the trace of one call, or of one attempt of a job. ForgetUser deletes records by their user, so a record must not
// hold the words of other users. It holds the query, texts of the user's own memories, and tool calls of dialogues in which only
// the user and the bot spoke (see ToolCalls).
type Record struct {
	ID          string       `json:"-"` // fields with their own column are not in the stored JSON
	Scope       memory.Scope `json:"-"` // the user may be empty
	TurnID      string       `json:"-"`
	OTelTraceID string       `json:"otel,omitempty"`
	At          time.Time    `json:"-"` // when it began, to the microsecond

	Duration   time.Duration     `json:"duration"`
	Error      string            `json:"error,omitempty"` // why it failed
	Degraded   []Degradation     `json:"degraded,omitempty"`
	ModelCalls []usage.Call      `json:"models,omitempty"`
	ToolCalls  []memory.ToolCall `json:"tools,omitempty"`

	// Exactly one of these is set and determines the kind of the record.
	Retrieve *RetrieveDetail `json:"retrieve,omitempty"`
	Consider *ConsiderDetail `json:"consider,omitempty"`
	Context  *ContextDetail  `json:"context,omitempty"`
}

// Kind returns the kind of the record.
func (r *Record) Kind() Kind {
	switch {
	case r.Retrieve != nil:
		return KindRetrieve
	case r.Consider != nil:
		return KindConsider
	case r.Context != nil:
		return KindContext
	}
	return ""
}

// Degradation is a component that was unavailable.
type Degradation struct {
	Component string `json:"component"` // as retrieve.Component
	Reason    string `json:"reason"`
}

// RetrieveDetail describes a call of Retrieve.
type RetrieveDetail struct {
	Query        string      `json:"query"`
	TopK         int         `json:"top_k"`
	MinRelevance float64     `json:"min_relevance"`
	ReadTime     time.Time   `json:"read_time,omitzero"`
	Candidates   []Candidate `json:"candidates,omitempty"` // memories, best first; then messages, best first
	Memories     int         `json:"memories"`             // how many were returned
	Messages     int         `json:"messages,omitempty"`
}

// Candidate is a memory or a message that was ranked, with its scores. Most of the stored bytes are candidates, so their names in
// JSON are short.
type Candidate struct {
	MemoryID  string `json:"id,omitempty"`
	SessionID string `json:"session,omitempty"` // of a message
	Position  int64  `json:"pos,omitempty"`     // of a message

	Score      float64 `json:"score,omitempty"`
	Relevance  float64 `json:"rel,omitempty"`
	Similarity float64 `json:"sim,omitempty"`
	Keyword    float64 `json:"key,omitempty"`
	Neighbors  float64 `json:"near,omitempty"`
	Recency    float64 `json:"rec,omitempty"`
	Importance float64 `json:"imp,omitempty"`
	Returned   bool    `json:"ret,omitempty"`
}

// ConsiderDetail describes one attempt of a consideration.
type ConsiderDetail struct {
	ConsiderationID string                `json:"consideration"`
	Attempt         int                   `json:"attempt"` // from 1
	Messages        int                   `json:"messages"`
	State           memory.State          `json:"state"` // afterwards
	Reason          string                `json:"reason,omitempty"`
	DecidedBy       string                `json:"decided_by,omitempty"`
	Changes         []memory.MemoryChange `json:"changes,omitempty"`
	Prompts         []Prompt              `json:"prompts,omitempty"` // that models were sent, in order
}

// Prompt describes a prompt that a model was sent. It holds none of its words.
type Prompt struct {
	Part    string `json:"part"`    // "decision" or "summary"
	Version string `json:"version"` // of the constant parts and the template
	Known   int    `json:"known"`   // how many existing memories were shown
	Earlier int    `json:"earlier"` // how many earlier messages were shown
}

// ContextDetail describes the result of GetContext.
type ContextDetail struct {
	// The limits in effect.
	MaxMessages int `json:"max_messages"`
	MaxTurns    int `json:"max_turns"`
	MaxRunes    int `json:"max_runes"`

	First       int64 `json:"first,omitempty"` // position of the first message; 0 if there is none
	Last        int64 `json:"last,omitempty"`
	Messages    int   `json:"messages"`
	Dropped     int64 `json:"dropped,omitempty"`      // number of messages before the window
	SummaryLast int64 `json:"summary_last,omitempty"` // last position that the summary covers; 0 if there is none
}

// NewID returns an id for a record.
func NewID() string { return "trc_" + uuid.Must(uuid.NewV7()).String() }

// Store keeps records. All methods are safe for concurrent use; errors wrap memory.ErrUnavailable when storage is unavailable.
type Store interface {
	// Append stores records. When it fails, some may be stored.
	Append(ctx context.Context, records []Record) error
	// Get returns a user's record that the audience may see, or memory.ErrNotFound. Records of calls without a user belong to the user
	// with the empty id.
	Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (Record, error)
	// List returns a page of a user's records. next is empty on the last page.
	List(ctx context.Context, q ListQuery) (records []Record, next string, err error)
	// Prune deletes up to limit of the oldest records: those that began before the time, and those beyond the newest keep. It returns
	// how many it deleted; fewer than limit means that none is left to delete.
	Prune(ctx context.Context, before time.Time, keep, limit int) (int64, error)
	// Forget deletes a user's records and returns how many there were.
	Forget(ctx context.Context, user memory.User) (int64, error)
	// ForgetSession deletes the records of a session of the channel.
	ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) (int64, error)
}

// ListQuery asks for a page of records, newest first unless OldestFirst.
type ListQuery struct {
	User      memory.User // without an id: calls without a user
	Audience  memory.Audience
	SessionID string // empty: any
	TurnID    string // empty: any
	Kind      Kind   // empty: any
	// Calls that began at or after From and before Before; a zero time sets no limit.
	From, Before time.Time
	OldestFirst  bool
	After        string // next of the previous page
	Limit        int
}
