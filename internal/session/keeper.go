package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/retry"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Settings reads users' settings.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
}

// Considerer hands what waits in a session to the long-term memory.
type Considerer interface {
	// ConsiderPending is safe to call when nothing waits. memory.ErrUnavailable, a *memory.OverloadError and a
	// *memory.TransientError mean that it is to be tried again later.
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
	Store      Store
	Settings   Settings
	Considerer Considerer
	Summarizer Summarizer // nil: no summaries are made
	// Extract summarises without a model: when the model's answers cannot be used, when it refuses, when a token budget is used
	// up, and while a caller waits what the summary does not cover yet. nil: none of these is done.
	Extract Summarizer
	Traces  Traces
	// Appended is told when messages were added, so that what is derived from them can be made. Optional.
	Appended func()
	// Digest says when a digest of somebody with these settings is due; ok is false when none is made unasked. Optional.
	Digest func(settings memory.Settings) (rule DigestRule, ok bool)
	// Lists returns the numbered lists that are shown where a scope's conversation takes place. Optional: without it no reply is
	// withheld for what it claims.
	Lists func(ctx context.Context, scope memory.Scope, audience memory.Audience) ([]ShownList, error)
	// StorageProblem says why storage is down, or "".
	StorageProblem func() string
	// WriteProblem says why storage takes no writes although it can be read, or "". Optional.
	WriteProblem func() string
}

// Policy is what holds in a namespace.
type Policy struct {
	Enabled bool // conversations are kept
	// MemorizeEvery is after how many messages of people what was said is considered; 0 is never, also not after Idle.
	MemorizeEvery int
	Idle          time.Duration // pause after which what is left is considered, never later than TTL; 0 is with TTL
	TTL           time.Duration // pause after which the window expires; 0 never
	Retention     time.Duration // how long messages are kept; 0 for ever
}

// Options describes a Keeper.
type Options struct {
	// Policy is asked whenever it matters.
	Policy func(namespace string) Policy
	// Window is the usual window: what it drops is summarised.
	Window Limits
	// Budget is the time for a Context.
	Budget time.Duration
	// FailureMaxRunes is the longest reply without a tool call that is withheld when it looks like a failure, 0 withholds
	// none; FailurePhrases are what a failure looks like, besides the built-in phrases.
	FailureMaxRunes int
	FailurePhrases  []string
	// ClaimMaxRunes is the longest reply without a tool call that is withheld when it claims a result that neither a tool nor a list has, in
	// Chinese characters or three Latin letters each, without URLs; 0 withholds none.
	ClaimMaxRunes int
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
	// Heartbeat is told how looking for what is due ended when nothing was, and how each session's work did. Optional.
	Heartbeat background.Heartbeat
}

// Keeper keeps conversations: it appends to them, cuts windows from them, and in the background has them considered,
// summarises what their windows dropped, and deletes what is too old.
type Keeper struct {
	Parts
	options Options
	guard   guard
	claims  claims

	notifier background.Notifier
	ctx      context.Context
	cancel   context.CancelFunc
	loop     sync.WaitGroup
	tasks    sync.WaitGroup

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
func NewKeeper(parts Parts, options Options) *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	return &Keeper{
		Parts: parts, options: options, guard: newGuard(options.FailureMaxRunes, options.FailurePhrases),
		claims:   claims{maxRunes: options.ClaimMaxRunes},
		notifier: background.NewNotifier(), ctx: ctx, cancel: cancel,
		running: map[task]context.CancelFunc{}, handled: map[task]time.Time{},
		postponed: retry.Due{Every: keepEvery}, failures: retry.Counts[task]{Pauses: retry.Pauses{Min: options.BackoffMin, Max: options.BackoffMax}},
	}
}

// Policy is what holds in a namespace.
func (k *Keeper) Policy(namespace string) Policy { return k.options.Policy(namespace) }

// AppendRequest is what is to be added to a session.
type AppendRequest struct {
	Scope    memory.Scope // SessionID "" is the current session, or a new one
	Audience memory.Audience
	Messages []memory.Message // valid, with speakers and times filled in
	// Hashes are over the messages as they were sent.
	Hashes  [][]byte
	Settled bool    // history only: never considered
	Import  *Import // see Append.Import
}

// Append adds messages at the end of a session, as Store.Append does.
func (k *Keeper) Append(ctx context.Context, r AppendRequest) (Appended, error) {
	a, err := k.append(ctx, r)
	if err != nil {
		return Appended{}, err
	}
	appended, err := k.Store.Append(ctx, a)
	if err == nil && (appended.Added > 0 || appended.Created) {
		k.added()
	}
	if len(appended.Positions) == len(a.Withheld) {
		for i, why := range a.Withheld {
			if why != NotWithheld {
				appended.Withheld = append(appended.Withheld, WithheldMessage{Position: appended.Positions[i], Reason: why})
			}
		}
	}
	return appended, err
}

// RecordRequest is a dialogue that is to be added to a session and considered.
type RecordRequest struct {
	AppendRequest
	Acceptance queue.Acceptance
}

// Record adds a dialogue to its session and accepts it for considering, as Store.Record does.
func (k *Keeper) Record(ctx context.Context, r RecordRequest) (memory.Consideration, error) {
	a, err := k.append(ctx, r.AppendRequest)
	if err != nil {
		return memory.Consideration{}, err
	}
	c, _, err := k.Store.Record(ctx, Record{Append: a, Acceptance: r.Acceptance})
	if err == nil {
		k.added()
	}
	return c, err
}

// added sets going what messages make due.
func (k *Keeper) added() {
	k.signal()
	if k.Appended != nil {
		k.Appended()
	}
}

// append completes what is to be added by what the configuration and the settings of those who speak say.
func (k *Keeper) append(ctx context.Context, r AppendRequest) (Append, error) {
	a := Append{
		Scope: r.Scope, Audience: r.Audience, NewID: NewID(), Messages: r.Messages, Hashes: r.Hashes, At: time.Now(),
		Withheld: k.withheldClaims(ctx, &r, k.guard.withheld(r.Messages)),
		Settled:  r.Settled, Import: r.Import, Paused: map[string]bool{}, Digests: map[string]DigestRule{},
	}
	policy := k.Policy(r.Scope.Namespace)
	a.Rules = Rules{TTL: policy.TTL, MemorizeEvery: policy.MemorizeEvery, Idle: policy.Idle, SummarizeAfter: k.summarizeAfter()}
	for _, speaker := range (memory.Dialogue{Scope: r.Scope, Messages: r.Messages}).Speakers() {
		if speaker == "" {
			continue
		}
		settings, err := k.Settings.Get(ctx, memory.User{Namespace: r.Scope.Namespace, ID: speaker})
		if err != nil {
			return a, err
		}
		if settings.Paused {
			a.Paused[speaker] = true
		}
		if k.Digest != nil {
			if rule, ok := k.Digest(settings); ok {
				a.Digests[speaker] = rule
			}
		}
		// A group is everybody's: one of them cannot say when the words of the others are considered. Who never wants to be
		// is left out when they are.
		if speaker == r.Scope.UserID && settings.MemorizeEvery != nil && r.Scope.Channel.Kind != memory.ChannelGroup {
			a.Rules.MemorizeEvery = *settings.MemorizeEvery
		}
	}
	return a, nil
}

// NewID returns an id for a session.
func NewID() string { return "ses_" + uuid.Must(uuid.NewV7()).String() }
