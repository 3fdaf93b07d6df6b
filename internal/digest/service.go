package digest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Settings reads users' settings.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
}

// Memories is the part of vectorstore.Store that digests need.
type Memories interface {
	Apply(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error)
	Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Memory, error)
	SearchVector(ctx context.Context, user memory.User, fingerprint string, vector []float32, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
	SearchKeyword(ctx context.Context, user memory.User, query string, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
}

// Vectors embeds texts for storage, as decide.Vectors does.
type Vectors interface {
	Embeddings(ctx context.Context, texts []string) ([]vectorstore.Embedding, error)
}

// Topics counts what was talked about.
type Topics interface {
	Count(ctx context.Context, q topics.Query, limit int) (topics.Report, error)
}

// Deps is what a Service works with.
type Deps struct {
	Store    Store
	Settings Settings
	Memories Memories
	Vectors  Vectors
	Topics   Topics
	// Extractor finds the content of digests; Rules replace it when its answers cannot be used.
	Extractor Extractor
	Rules     Extractor
	Scorer    Scorer
	// Echoes removes what Retrieve returned from the messages. Optional.
	Echoes *decide.Echoes
	// Changed is called with users whose digests changed, and the days. Optional.
	Changed func(ctx context.Context, user memory.User, days []string)
}

// Options describes a Service.
type Options struct {
	Enabled   bool // digests are made automatically
	Every     int  // messages of a user that trigger a digest; 0: only the end of the day does
	MaxTokens int  // of one piece of a conversation
	Location  *time.Location
	Templates Templates
	// Now is the clock; by default time.Now.
	Now func() time.Time
	// Workers is the number of users whose digests are made concurrently.
	Workers                int
	BackoffMin, BackoffMax time.Duration
	Log                    *slog.Logger
	// Unavailable reports whether the model is unavailable. Optional.
	Unavailable retry.Unavailable
	// Heartbeat receives the result of each user's digest, and of each poll that found no work. Optional.
	Heartbeat background.Heartbeat
}

// Service makes digests, in the background and on request.
type Service struct {
	Deps
	options Options

	notifier background.Notifier
	ctx      context.Context
	cancel   context.CancelFunc
	loop     sync.WaitGroup

	failures retry.Counts[memory.User]

	postponed retry.Due

	mu   sync.Mutex
	busy map[memory.User]*turn
}

// turn is a lock on a user's digests.
type turn struct {
	free   chan struct{} // holds a value while unlocked
	cancel context.CancelFunc
	users  int // callers that hold the lock or wait for it
}

// storagePoll is the pause after a failure of the store.
const storagePoll = 5 * time.Second

// leastPause is the shortest pause between two polls for due work.
const leastPause = 10 * time.Millisecond

// lookEvery is the longest pause between two polls for due work: the machine's clock may have been set.
const lookEvery = time.Hour

// NewService returns a Service; Start starts its background work.
func NewService(parts Deps, options Options) *Service {
	if options.Now == nil {
		options.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Service{
		Deps: parts, options: options, notifier: background.NewNotifier(), ctx: ctx, cancel: cancel,
		busy: map[memory.User]*turn{}, postponed: retry.Due{Every: lookEvery},
		failures: retry.Counts[memory.User]{Pauses: retry.Pauses{Min: options.BackoffMin, Max: options.BackoffMax}},
	}
}

// Rule returns when the digest of a user with these settings is due; ok is false when digests are made on request only.
func (k *Service) Rule(settings memory.Settings) (rule Rule, ok bool) {
	now := k.options.Now()
	return Rule{Now: now, Every: k.options.Every, DayEnd: nextDay(now, settings.Location(k.options.Location))}, k.options.Enabled && !settings.Paused
}

// Start starts making due digests, including those that earlier processes left.
func (k *Service) Start() {
	k.Wake()
	k.loop.Go(k.run)
}

// Stop starts no new work, cancels what runs, and waits for it. Cancelled work is due again at the next start.
func (k *Service) Stop() {
	k.cancel()
	k.loop.Wait()
}

// Wake polls for due digests now.
func (k *Service) Wake() { k.notifier.Notify() }

// Resume makes postponed digests due. Call it when a model recovered.
func (k *Service) Resume() {
	k.postponed.Resume()
	k.Wake()
}

func (k *Service) makeDue(now time.Time) error {
	return k.postponed.Run(now, func(all bool) error {
		o := Overdue{Now: now, Every: k.options.Every}
		if !all {
			o.Longest = k.failures.Pauses.Longest()
		}
		return k.Store.MakeDue(k.ctx, o)
	})
}

// run makes due digests until Stop.
func (k *Service) run() {
	background.Run(k.ctx, k.options.Now, k.notifier, func() time.Time {
		next := k.round()
		return k.options.Now().Add(max(leastPause, next.Sub(k.options.Now())))
	})
}

// round makes the digests that are due and returns when to look again.
func (k *Service) round() time.Time {
	now := k.options.Now()
	allowed, wait := k.options.Unavailable.Now(k.options.Workers, 0)
	if wait > 0 {
		return now.Add(wait)
	}
	err := k.makeDue(now)
	var due []memory.User
	var next time.Time
	if err == nil {
		due, next, err = k.Store.Due(k.ctx, now, allowed)
	}
	if err != nil {
		if k.ctx.Err() == nil {
			k.options.Heartbeat.Beat(err)
		}
		if k.ctx.Err() == nil && !errors.Is(err, memory.ErrUnavailable) {
			k.options.Log.Error("the storage of digests failed", "error", err)
		}
		return k.options.Now().Add(storagePoll)
	}
	var group sync.WaitGroup
	for _, user := range due {
		group.Go(func() { k.attempt(user) })
	}
	group.Wait()
	if len(due) > 0 { // what failed is postponed, so look again immediately
		return k.options.Now()
	}
	k.options.Heartbeat.Beat(nil)
	if latest := k.options.Now().Add(lookEvery); next.IsZero() || next.After(latest) {
		return latest
	}
	return next
}

// attempt makes the due digest of a user, or postpones it.
func (k *Service) attempt(user memory.User) {
	err := k.due(user)
	switch {
	case k.ctx.Err() != nil:
	case err == nil:
		k.failures.Done(user)
		k.options.Heartbeat.Beat(nil)
	default:
		k.options.Heartbeat.Beat(err)
		pause := k.failures.Failed(user, err)
		if !errors.Is(err, memory.ErrUnavailable) && !errors.Is(err, context.Canceled) {
			k.options.Log.Log(k.ctx, retry.LogLevel(err), "a digest was postponed", "namespace", user.Namespace, "error", err, "for", pause)
		}
		if err := k.Store.Postpone(k.ctx, user, k.options.Now().Add(pause)); err != nil && !errors.Is(err, memory.ErrUnavailable) {
			k.options.Log.Error("postponing a digest failed", "error", err)
		}
	}
}

func (k *Service) due(user memory.User) error {
	ctx, done, err := k.take(k.ctx, user)
	if err != nil {
		return err
	}
	defer done()
	settings, err := k.Settings.Get(ctx, user)
	if err != nil {
		return err
	}
	if !settings.Paused {
		if err := k.look(ctx, user, settings, PendingQuery{ByItself: true}); err != nil {
			return err
		}
	}
	rule, _ := k.Rule(settings)
	if settings.Paused { // earlier messages stay pending until remembering resumes
		rule.Every = 0
	}
	return k.Store.Done(ctx, user, rule)
}

// take waits for the lock on a user's digests. The context is cancelled when the user is blocked.
func (k *Service) take(parent context.Context, user memory.User) (ctx context.Context, done func(), err error) {
	k.mu.Lock()
	t := k.busy[user]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		k.busy[user] = t
	}
	t.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(k.busy, user)
		}
	}
	select {
	case <-t.free:
	case <-parent.Done():
		leave()
		return nil, nil, parent.Err()
	}
	ctx, cancel := context.WithCancel(parent)
	k.mu.Lock()
	t.cancel = cancel
	k.mu.Unlock()
	return ctx, func() {
		cancel()
		t.free <- struct{}{}
		leave()
	}, nil
}

// Bar cancels the work on a user's digests and blocks new work until release is called.
func (k *Service) Bar(ctx context.Context, user memory.User) (release func(), err error) {
	k.mu.Lock()
	if t := k.busy[user]; t != nil && t.cancel != nil {
		t.cancel()
	}
	k.mu.Unlock()
	_, done, err := k.take(ctx, user)
	return done, err
}
