package retention

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const (
	// leastPause is the least time between two rounds. Every write wakes the Sweeper.
	leastPause = 200 * time.Millisecond
	// storagePoll is the retry interval for an unavailable store, without a call of Wake.
	storagePoll = 5 * time.Second
	// lookEvery is the longest time between two polls for due work: the machine's clock may have been set.
	lookEvery = time.Hour
	// skew is how far a stored time may be ahead of the clock, which may have been adjusted since.
	skew = time.Minute
	// step is the number of memories deleted in one transaction: all other writes wait for it.
	step = 100
	// crowdsAtOnce is the number of users over the cap handled in one round.
	crowdsAtOnce = 16
	// slack is the fraction (1/slack) of the cap that an eviction frees in addition, so that not every new memory of a user at the cap
	// causes another.
	slack = 50
)

// Purger removes deleted bytes from the disk, see sqlite.Access.
type Purger interface {
	Purge(ctx context.Context) (bool, error)
}

// Options decides which memories are kept.
type Options struct {
	Curve          Curve
	MaxPerUser     int           // memories per user; 0: no limit
	WithdrawnGrace time.Duration // how long a withdrawn memory can be restored; 0: never
	ExpiredKeep    time.Duration // how long expired memories are kept; 0: for ever
	HistoryKeep    time.Duration // how long superseded memories are kept; 0: for ever
	// Now is the clock; by default time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Sweeper deletes memories in the background. All its state is in the store: after a crash the next process continues.
type Sweeper struct {
	store   vectorstore.Sweep
	purger  Purger
	options Options

	notifier background.Notifier
	ctx      context.Context
	cancel   context.CancelFunc
	loop     sync.WaitGroup
	full     map[string]int64 // as last logged
}

// NewSweeper returns a Sweeper; Start starts it.
func NewSweeper(store vectorstore.Sweep, purger Purger, options Options) *Sweeper {
	if options.Now == nil {
		options.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Sweeper{store: store, purger: purger, options: options, notifier: background.NewNotifier(), ctx: ctx, cancel: cancel}
}

// Start starts the deletions, including those left by earlier processes.
func (s *Sweeper) Start() {
	s.store.OnWrite(s.Wake)
	s.Wake()
	s.loop.Go(s.run)
}

// Stop stops the deletions. The next start continues them.
func (s *Sweeper) Stop() {
	s.cancel()
	s.loop.Wait()
}

// Wake polls for due deletions now.
func (s *Sweeper) Wake() { s.notifier.Notify() }

// Full returns the number of users of the namespace whose explicit memories reach the cap. Explicit memories are never evicted, so new
// learned memories of those users are evicted soon.
func (s *Sweeper) Full(ctx context.Context, namespace string) (int64, error) {
	if s.options.MaxPerUser == 0 {
		return 0, nil
	}
	full, err := s.store.Full(ctx, s.options.MaxPerUser)
	return full[namespace], err
}

// run deletes due memories until Stop.
func (s *Sweeper) run() {
	background.Run(s.ctx, s.options.Now, s.notifier, func() time.Time {
		next := s.round()
		background.Sleep(s.ctx, leastPause)
		return next
	})
}

// round deletes some due memories and returns when to run again. A panic is a bug, but must not end the sidecar.
func (s *Sweeper) round() (next time.Time) {
	defer func() {
		if v := recover(); v != nil {
			s.options.Log.Error("panic while deleting expired memories", "panic", v, "stack", string(debug.Stack()))
			next = s.options.Now().Add(lookEvery)
		}
	}()
	next, err := s.sweep(s.options.Now())
	if err == nil {
		return next
	}
	if s.ctx.Err() == nil && !errors.Is(err, memory.ErrUnavailable) { // an outage has its own log line
		s.options.Log.Error("deleting expired memories failed", "error", err)
	}
	return s.options.Now().Add(storagePoll)
}

// sweep does a bounded part of the due work and returns when more will be due.
func (s *Sweeper) sweep(now time.Time) (next time.Time, err error) {
	next = now.Add(lookEvery)
	if err := s.store.ResetClock(s.ctx, now.Add(skew), now); err != nil {
		return next, err
	}
	dropped := 0
	for _, rule := range []struct {
		how  memory.Status
		keep time.Duration
		on   bool
	}{
		{memory.StatusWithdrawn, s.options.WithdrawnGrace, true},
		{memory.StatusExpired, s.options.ExpiredKeep, s.options.ExpiredKeep > 0},
		{memory.StatusSuperseded, s.options.HistoryKeep, s.options.HistoryKeep > 0},
	} {
		if !rule.on {
			continue
		}
		n, at, err := s.drop(rule.how, rule.keep, now)
		dropped += n
		if err != nil {
			return next, err
		}
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	if dropped > 0 {
		// The rows are deleted. The storage retries a failed purge.
		if _, err := s.purger.Purge(s.ctx); err != nil {
			return next, err
		}
	}
	if s.options.MaxPerUser == 0 {
		return next, nil
	}
	more, err := s.evict(now)
	if more {
		next = now
	}
	if err != nil {
		return next, err
	}
	return next, s.logFull()
}

// drop deletes memories that ended longer than keep ago, and returns when the next one is due, or zero.
func (s *Sweeper) drop(how memory.Status, keep time.Duration, now time.Time) (dropped int, due time.Time, err error) {
	before := now.Add(-keep)
	ended, next, err := s.store.Ended(s.ctx, how, before, step)
	if err != nil {
		return 0, due, err
	}
	if !next.IsZero() {
		due = next.Add(keep)
	}
	byUser := map[memory.User][]string{}
	for _, ref := range ended {
		byUser[ref.User] = append(byUser[ref.User], ref.ID)
	}
	for user, ids := range byUser {
		n, err := s.store.Drop(s.ctx, user, ids, how, before)
		if err != nil {
			return dropped, due, err
		}
		dropped += n
		if n > 0 {
			s.options.Log.Info("deleted expired memories", "namespace", user.Namespace, "memories", n, "because", how)
		}
	}
	return dropped, due, nil
}

// evict reduces the memories of users over the cap, and reports whether more such users may be left.
func (s *Sweeper) evict(now time.Time) (more bool, err error) {
	crowds, err := s.store.Crowded(s.ctx, s.options.MaxPerUser, crowdsAtOnce)
	if err != nil {
		return false, err
	}
	for _, c := range crowds {
		evicted, err := s.evictFrom(c, now)
		if evicted > 0 {
			s.options.Log.Info("evicted the memories that were least likely to be needed", "namespace", c.User.Namespace,
				"memories", evicted, "max_per_user", s.options.MaxPerUser)
		}
		if err != nil {
			return false, err
		}
	}
	return len(crowds) == crowdsAtOnce, nil
}

// candidate is a memory that may be evicted.
type candidate struct {
	id      string
	history bool // not retrievable
	score   float64
}

// evictFrom evicts the excess memories of a user, step by step: history first, then the lowest scores.
func (s *Sweeper) evictFrom(c vectorstore.Crowd, now time.Time) (evicted int, err error) {
	keep := s.options.MaxPerUser - min(s.options.MaxPerUser, c.Memories-c.Explicit)/slack
	candidates := make([]candidate, 0, c.Memories-c.Explicit)
	err = s.store.Evictable(s.ctx, c.User, func(m *memory.Memory) {
		candidates = append(candidates, candidate{m.ID, m.StatusAt(now) != memory.StatusActive, s.options.Curve.Score(m, now)})
	})
	if err != nil {
		return 0, err
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		if a.history != b.history {
			if a.history {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.id, b.id))
	})
	candidates = candidates[:min(len(candidates), max(0, c.Memories-keep))]
	for batch := range slices.Chunk(candidates, step) {
		ids := make([]string, len(batch))
		for i, each := range batch {
			ids[i] = each.id
		}
		n, err := s.store.Evict(s.ctx, c.User, ids, keep)
		evicted += n
		if err != nil {
			return evicted, err
		}
	}
	return evicted, nil
}

// logFull logs which namespaces have users whose explicit memories reach the cap, when that changes.
func (s *Sweeper) logFull() error {
	full, err := s.store.Full(s.ctx, s.options.MaxPerUser)
	if err != nil {
		return err
	}
	for namespace, users := range full {
		if users != s.full[namespace] {
			s.options.Log.Warn("some users have explicit memories up to the limit; those are never evicted, all other new memories are",
				"namespace", namespace, "users", users, "max_per_user", s.options.MaxPerUser)
		}
	}
	s.full = full
	return nil
}
