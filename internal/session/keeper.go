package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Settings reads users' settings.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
}

// Considerer has the pending messages of a session considered for the long-term memory.
type Considerer interface {
	// ConsiderPending may be called when no message is pending. After memory.ErrUnavailable, a *memory.OverloadError or a
	// *memory.TransientError it is called again later.
	ConsiderPending(ctx context.Context, namespace, sessionID string) error
}

// Summarizer makes a summary stand for what it stood for before and for more messages.
type Summarizer interface {
	// Name is "extract", or the model as "provider/model".
	Name() string
	// Summarize returns the new text. A failure that may pass is a *memory.TransientError.
	Summarize(ctx context.Context, s Summarizing) (string, error)
}

// Summarizing is what is to be summarised.
type Summarizing struct {
	Previous string // the text until now, or ""
	Lines    []Line // what was said since, oldest first, never empty
	Language string // of the conversation, as lexical.Language names it
}

// Line is a message in a summary.
type Line struct {
	Label   string // who said it, on one line
	Role    memory.Role
	Content string
	Time    time.Time // that is written on it
}

// Traces records calls.
type Traces interface {
	Enabled() bool
	Record(record trace.Record)
}

// Parts is what a Keeper works with.
type Parts struct {
	Considerer Considerer
	Summarizer Summarizer // nil: no summaries are made
	// Extract summarises without a model: when the model's answers cannot be used, when it refuses, when a token budget is used
	// up, and while a caller waits what the summary does not cover yet. nil: none of these is done.
	Extract Summarizer
	Traces  Traces
	// StorageProblem says why storage is down, or "".
	StorageProblem func() string
	// WriteProblem says why storage takes no writes although it can be read, or "". Optional.
	WriteProblem func() string
}

// Policy is the configuration of a namespace.
type Policy struct {
	Enabled bool // conversations are stored
	// MemorizeEvery is the number of people's messages after which the pending messages are considered; 0 is never, not after Idle either.
	MemorizeEvery int
	Idle          time.Duration // pause after which the rest is considered, never later than TTL; 0 is with TTL
	TTL           time.Duration // pause after which the window expires; 0 never
	Retention     time.Duration // how long messages are kept; 0 for ever
}

// Options describes a Keeper.
type Options struct {
	// Window is the usual window: what it drops is summarised.
	Window Limits
	// Budget is the time for a Context.
	Budget time.Duration
	// Labels are names by the id of an agent or a user.
	Labels   map[string]string
	Wordings Wordings
	// Workers is how many sessions are considered or summarised at once.
	Workers int
	// BackoffMin and BackoffMax bound the pauses after failures.
	BackoffMin, BackoffMax time.Duration
	Log                    *slog.Logger
	// Fallback is called with the reason whenever Extract summarised instead of the model. Optional.
	Fallback func(reason string)
	// Unavailable says whether the model is that summaries need. Optional.
	Unavailable retry.Unavailable
	// Heartbeat receives the result of each session's work, and of each look that found no work. Optional.
	Heartbeat background.Heartbeat
}

// Keeper keeps conversations: it appends to them, cuts windows from them, and in the background has them considered,
// summarises what their windows dropped, and deletes what is too old.
type Keeper struct {
	*Writer
	Parts
	options Options

	ctx    context.Context
	cancel context.CancelFunc
	loop   sync.WaitGroup
	tasks  sync.WaitGroup

	postponed retry.Due
	failures  retry.Counts[task]

	mu       sync.Mutex
	running  map[task]context.CancelFunc
	handled  map[task]time.Time // what was done of what was due then
	notUntil time.Time          // storage was found down
	keepAt   time.Time          // when what is too old is looked for; the zero time is at once
	keeping  bool
}

// NewKeeper returns a Keeper; Start sets its background work going.
func NewKeeper(writer *Writer, parts Parts, options Options) *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	return &Keeper{
		Writer:    writer,
		Parts:     parts,
		options:   options,
		ctx:       ctx,
		cancel:    cancel,
		running:   map[task]context.CancelFunc{},
		handled:   map[task]time.Time{},
		postponed: retry.Due{Every: keepEvery},
		failures:  retry.Counts[task]{Pauses: retry.Pauses{Min: options.BackoffMin, Max: options.BackoffMax}},
	}
}
