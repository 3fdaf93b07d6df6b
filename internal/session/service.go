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

// Considerer considers the pending messages of a session.
type Considerer interface {
	// ConsiderPending may be called when no message is pending. After memory.ErrUnavailable, a *memory.OverloadError or a
	// *memory.TransientError it is retried later.
	ConsiderPending(ctx context.Context, namespace, sessionID string) error
}

// Summarizer extends a summary to cover more messages.
type Summarizer interface {
	// Name is "extract", or the model as "provider/model".
	Name() string
	// Summarize returns the new text. A temporary failure is a *memory.TransientError.
	Summarize(ctx context.Context, s Summarizing) (string, error)
}

// Summarizing is the input of a summary.
type Summarizing struct {
	Previous string // the summary so far, or ""
	Lines    []Line // the messages since, oldest first, never empty
	Language string // of the conversation, as lexical.Language names it
}

// Line is a message in a summary.
type Line struct {
	Label   string // who said it, on one line
	Role    memory.Role
	Content string
	Time    time.Time // shown with it
}

// Traces records calls.
type Traces interface {
	Enabled() bool
	Record(record trace.Record)
}

// Deps is what a Service works with.
type Deps struct {
	Considerer Considerer
	Summarizer Summarizer // nil: no summaries are made
	// Extract summarises without a model: when the model refuses or its answers cannot be used, when a token budget is used up, and for
	// messages not yet summarised when a caller needs them. nil: none of these.
	Extract Summarizer
	Topics  Topics
	Traces  Traces
	Storage memory.Storage
}

// Policy is the configuration of a namespace.
type Policy struct {
	Enabled bool // conversations are stored
	// MemorizeEvery is the number of people's messages after which the pending messages are considered; 0 means never, not even after
	// Idle.
	MemorizeEvery int
	Idle          time.Duration // pause after which the rest is considered, at most TTL; 0 means TTL
	TTL           time.Duration // pause after which the window expires; 0: never
	Retention     time.Duration // how long messages are kept; 0: forever
}

// Options describes a Service.
type Options struct {
	// Window is the default window. Messages that it drops are summarised.
	Window Limits
	// Budget is the time limit of Context.
	Budget time.Duration
	// Labels are display names by the id of an agent or a user.
	Labels   map[string]string
	Wordings Wordings
	// Workers is the number of sessions considered or summarised concurrently.
	Workers int
	// BackoffMin and BackoffMax bound the pauses after failures.
	BackoffMin, BackoffMax time.Duration
	Log                    *slog.Logger
	// Fallback is called with the reason when Extract replaced the model. Optional.
	Fallback func(reason string)
	// Unavailable reports whether the model is unavailable. Optional.
	Unavailable retry.Unavailable
	// Heartbeat receives the result of each session's work, and of each poll that found no work. Optional.
	Heartbeat background.Heartbeat
}

// Service reads conversations: it cuts windows from them and, in the background, considers them, summarises the messages that windows
// drop, and deletes old messages.
type Service struct {
	*Writer
	Deps
	options Options

	ctx    context.Context
	cancel context.CancelFunc
	loop   sync.WaitGroup
	tasks  sync.WaitGroup

	postponed retry.Due
	failures  retry.Counts[task]

	mu       sync.Mutex
	running  map[task]context.CancelFunc
	handled  map[task]time.Time // due times of the tasks done
	notUntil time.Time          // when to retry unavailable storage
	keepAt   time.Time          // time of the next deletion of old messages; zero: now
	keeping  bool
	asked    map[Due]bool // sessions whose context was asked for, to be marked
}

// NewService returns a Service; Start starts its background work.
func NewService(writer *Writer, parts Deps, options Options) *Service {
	ctx, cancel := context.WithCancel(context.Background())
	return &Service{
		Writer:    writer,
		Deps:      parts,
		options:   options,
		ctx:       ctx,
		cancel:    cancel,
		running:   map[task]context.CancelFunc{},
		asked:     map[Due]bool{},
		handled:   map[task]time.Time{},
		postponed: retry.Due{Every: keepEvery},
		failures:  retry.Counts[task]{Pauses: retry.Pauses{Min: options.BackoffMin, Max: options.BackoffMax}},
	}
}
