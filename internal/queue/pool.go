package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
)

// Handler runs a job. It may be called again for a job that it ran before: after a crash, or when the result could not be
// stored. It returns a final state with its outcome, or an error. After a *memory.TransientError the job is retried later, after
// memory.ErrUnavailable once storage has recovered. Any other error fails the job.
type Handler func(ctx context.Context, job Job) (memory.State, memory.Outcome, error)

// Options describes a pool.
type Options struct {
	Workers int // jobs handled concurrently; as many more may be claimed, or storing their results
	// MaxAge is how long a job is retried; then it fails.
	MaxAge time.Duration
	// BackoffMin and BackoffMax bound the pauses between attempts, before a jitter of up to half of the pause.
	BackoffMin, BackoffMax time.Duration
	// Retention is how long ended considerations are kept, FailedRetention how long failed ones; 0 means forever.
	Retention, FailedRetention time.Duration
	Log                        *slog.Logger
	// Now is the clock; by default time.Now.
	Now func() time.Time
	// Unavailable reports whether something that every job needs is unavailable. Optional.
	Unavailable retry.Unavailable
	// Heartbeat is called at each poll for jobs. Optional.
	Heartbeat background.Heartbeat
	// Ended is called after the end of an attempt was stored, with the state and the time since the job was accepted. Optional;
	// it must not block.
	Ended func(state memory.State, after time.Duration)
}

// Postpones reports whether a job is retried after the error: always when storage is unavailable, and after a transient error
// until the job is older than MaxAge.
func (o Options) Postpones(job Job, err error, now time.Time) bool {
	var transient *memory.TransientError
	return errors.Is(err, memory.ErrUnavailable) || errors.As(err, &transient) && now.Before(job.AcceptedAt.Add(o.MaxAge))
}

// storagePoll is the retry interval for an unavailable store, without a call of Wake.
const storagePoll = 5 * time.Second

// Pool runs the jobs of a store.
type Pool struct {
	store   Store
	handler Handler
	options Options

	notifier background.Notifier
	slots    chan struct{} // a token for each job in the handler
	cancel   context.CancelFunc
	ctx      context.Context
	loop     sync.WaitGroup
	jobs     sync.WaitGroup

	mu       sync.Mutex
	running  map[int64]*runningJob
	blocked  []memory.User                // users whose words no job may use now
	resume   bool                         // postponed jobs must be made due
	checked  time.Time                    // last check for due times that are too late
	failures retry.Counts[int64]          // of jobs, by Seq
	watchers map[watchKey][]chan struct{} // closed when the consideration is final
	recover  bool                         // rows marked as running may have no job in this process
}

type runningJob struct {
	job    Job
	cancel context.CancelCauseFunc
	done   chan struct{}
}

type watchKey struct {
	id   string
	user memory.User
}

var errForgetting = errors.New("the user is being forgotten")

// NewPool returns a pool; Start starts it.
func NewPool(store Store, handler Handler, options Options) *Pool {
	if options.Now == nil {
		options.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{
		store: store, handler: handler, options: options,
		notifier: background.NewNotifier(), slots: make(chan struct{}, options.Workers), ctx: ctx, cancel: cancel,
		running: map[int64]*runningJob{}, watchers: map[watchKey][]chan struct{}{},
		recover:  true, // what an earlier process left running
		resume:   true, // and what it postponed
		failures: retry.Counts[int64]{Pauses: retry.Pauses{Min: options.BackoffMin, Max: options.BackoffMax}},
	}
}

// Start starts running jobs.
func (p *Pool) Start() {
	p.Wake()
	p.loop.Go(p.run)
	p.loop.Go(p.expireRegularly)
}

// Stop claims no more jobs, waits for the running ones until the context ends, then cancels them. A cancelled job runs again
// after the next Start on the same store.
func (p *Pool) Stop(ctx context.Context) {
	p.cancel()
	p.loop.Wait()
	finished := make(chan struct{})
	go func() {
		p.jobs.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		p.mu.Lock()
		for _, r := range p.running {
			r.cancel(ctx.Err())
		}
		p.mu.Unlock()
		<-finished
	}
}

// Wake makes the pool look for jobs now. Call it when a job was accepted or storage has recovered.
func (p *Pool) Wake() { p.notifier.Notify() }

// Resume makes postponed jobs due now and looks for jobs. Call it when what they need is available again.
func (p *Pool) Resume() {
	p.mu.Lock()
	p.resume = true
	p.mu.Unlock()
	p.Wake()
}

// Watch returns a channel that is closed when the user's view of the consideration becomes final in this process. The
// caller must ask the store after calling Watch, and must call stop.
func (p *Pool) Watch(user memory.User, id string) (final <-chan struct{}, stop func()) {
	key := watchKey{id, user}
	c := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers[key] = append(p.watchers[key], c)
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watchers[key] = slices.DeleteFunc(p.watchers[key], func(other chan struct{}) bool { return other == c })
		if len(p.watchers[key]) == 0 {
			delete(p.watchers, key)
		}
	}
}

// Bar cancels the running jobs that hold the user's words, waits for them, and blocks such jobs until release is called.
func (p *Pool) Bar(ctx context.Context, user memory.User) (release func(), err error) {
	p.mu.Lock()
	p.blocked = append(p.blocked, user)
	var waitFor []*runningJob
	for _, r := range p.running {
		if holds(&r.job, user) {
			r.cancel(errForgetting)
			waitFor = append(waitFor, r)
		}
	}
	p.mu.Unlock()
	release = func() {
		p.mu.Lock()
		i := slices.Index(p.blocked, user)
		p.blocked = slices.Delete(p.blocked, i, i+1)
		p.mu.Unlock()
		p.Wake()
	}
	for _, r := range waitFor {
		select {
		case <-r.done:
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

// holds reports whether the job's dialogue has words of the user.
func holds(job *Job, user memory.User) bool {
	return job.Dialogue.Scope.Namespace == user.Namespace &&
		(job.Consideration.Scope.UserID == user.ID || slices.Contains(job.Dialogue.Speakers(), user.ID))
}

// run claims jobs whenever there is room, until it is stopped.
func (p *Pool) run() {
	background.Run(p.ctx, p.options.Now, p.notifier, func() (again time.Time) {
		if pause := p.claim(); pause >= 0 {
			again = p.options.Now().Add(pause)
		}
		return again
	})
}

// claim starts the due jobs and returns how long until the next is due, negative when none is.
func (p *Pool) claim() time.Duration {
	p.mu.Lock()
	// Claiming a job and storing its result take a commit each. So more jobs are claimed than there are workers, or workers
	// would be idle during the commits.
	free := 2*p.options.Workers - len(p.running)
	recovering := p.recover && len(p.blocked) == 0
	if recovering {
		p.recover = false
	}
	mine := slices.Collect(maps.Keys(p.running))
	p.mu.Unlock()

	if recovering {
		if err := p.store.Recover(p.ctx, mine, p.options.Now()); err != nil {
			return p.claimFailed("recovering jobs", err)
		}
	}
	if err := p.makeDue(); err != nil {
		return p.claimFailed("making postponed jobs due", err)
	}
	// Claiming jobs that would only be postponed costs two commits and a record for each user.
	allowed, wait := p.options.Unavailable.Now(free, len(mine))
	if wait > 0 {
		return wait
	}
	if allowed <= 0 {
		return -1 // the end of a job wakes the pool
	}
	jobs, next, err := p.store.Claim(p.ctx, p.options.Now(), allowed)
	if err != nil {
		return p.claimFailed("claiming jobs", err)
	}
	p.options.Heartbeat.Beat(nil)
	for _, job := range jobs {
		p.start(job)
	}
	if next.IsZero() {
		return -1
	}
	// The clock may have been set forward when the job was postponed. The longest backoff limits the wait.
	return min(max(0, next.Sub(p.options.Now())), p.failures.Pauses.Longest())
}

// checkEvery is the interval of checks for due times that are too late.
const checkEvery = time.Minute

// makeDue makes postponed jobs due if the model recovered or the process just started. Otherwise it makes only those due whose due time
// is later than this clock can have set, because the clock was ahead and has been corrected.
func (p *Pool) makeDue() error {
	now := p.options.Now()
	p.mu.Lock()
	resume := p.resume
	if !resume && now.Sub(p.checked) < checkEvery {
		p.mu.Unlock()
		return nil
	}
	p.resume, p.checked = false, now
	p.mu.Unlock()
	after := now
	if !resume {
		after = now.Add(p.failures.Pauses.Longest())
	}
	err := p.store.MakeDue(p.ctx, after, now)
	if err != nil {
		p.mu.Lock()
		p.resume = p.resume || resume
		p.checked = time.Time{}
		p.mu.Unlock()
	}
	return err
}

// claimFailed returns how long to wait before the next claim.
func (p *Pool) claimFailed(doing string, err error) time.Duration {
	p.mu.Lock()
	p.recover = true // the write may have succeeded despite the error
	p.mu.Unlock()
	p.logFailure(p.ctx, doing, err)
	if p.ctx.Err() == nil {
		p.options.Heartbeat.Beat(err)
	}
	return storagePoll
}

// logFailure logs an error of the store, unless storage is unavailable, which is logged elsewhere, or the context has ended.
func (p *Pool) logFailure(ctx context.Context, doing string, err error) {
	if ctx.Err() == nil && !errors.Is(err, memory.ErrUnavailable) {
		p.options.Log.Error("the queue's storage failed", "doing", doing, "error", err)
	}
}

func (p *Pool) start(job Job) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(p.ctx))
	r := &runningJob{job: job, cancel: cancel, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, user := range p.blocked {
		if holds(&job, user) {
			cancel(nil)
			p.recover = true // to run the job when the user is no longer blocked
			return
		}
	}
	p.running[job.Seq] = r
	p.jobs.Go(func() {
		final, err := p.attempt(ctx, job)
		cancel(nil)
		p.mu.Lock()
		delete(p.running, job.Seq)
		if err != nil {
			p.recover = true // together with the deletion: as long as the job is among the running it is not recovered
		}
		if final {
			key := watchKey{job.Consideration.ID, job.User()}
			for _, c := range p.watchers[key] {
				close(c)
			}
			delete(p.watchers, key)
		}
		p.mu.Unlock()
		close(r.done)
		p.Wake()
	})
}

// attempt runs the job once, stores the result, and reports whether it is final. An error means that nothing was stored: the job is
// still marked as running.
func (p *Pool) attempt(ctx context.Context, job Job) (final bool, err error) {
	log := p.options.Log.With("consideration", job.Consideration.ID, "namespace", job.Dialogue.Scope.Namespace)
	attempts := job.Consideration.Attempts
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done(): // the user is blocked
		return false, ctx.Err()
	case <-p.ctx.Done(): // stopping before the job has begun
		return false, p.ctx.Err()
	}
	state, outcome, err := p.handle(ctx, job)
	<-p.slots
	if ctx.Err() != nil {
		return false, ctx.Err() // blocked or stopping: the job runs again later
	}
	now := p.options.Now()
	var due time.Time // of the next attempt
	var transient *memory.TransientError
	switch {
	case err == nil:
	case errors.Is(err, memory.ErrUnavailable):
		due = now.Add(storagePoll)
	case errors.As(err, &transient) && p.options.Postpones(job, err, now):
		due = now.Add(p.failures.Failed(job.Seq, err))
		// The model's breaker logs when it opens; a line for each pending dialogue would flood the log.
		log.Debug("consideration postponed", "error", err, "attempts", attempts, "until", due)
	default:
		log.Log(ctx, failureLevel(err), "consideration failed", "error", err, "attempts", attempts)
		state, outcome = memory.StateFailed, memory.Outcome{Error: err.Error()}
	}
	if due.IsZero() {
		p.failures.Done(job.Seq)
	}
	if !due.IsZero() {
		state = memory.StatePending
		err = p.store.Postpone(ctx, job.Seq, due, memory.Outcome{Error: err.Error()}, now)
	} else {
		err = p.store.Finish(ctx, job.Seq, state, outcome, now)
	}
	if err != nil {
		p.logFailure(ctx, "storing the result of a job", err)
	} else if p.options.Ended != nil {
		p.options.Ended(state, now.Sub(job.AcceptedAt))
	}
	return err == nil && due.IsZero(), err
}

// failureLevel is the level at which a failure is logged. A used-up quota is not an error of the sidecar.
func failureLevel(err error) slog.Level {
	if _, over := errors.AsType[*memory.QuotaError](err); over {
		return slog.LevelWarn
	}
	return slog.LevelError
}

// handle calls the handler. A panic is a bug that would occur again with every attempt, so it fails the job.
func (p *Pool) handle(ctx context.Context, job Job) (state memory.State, outcome memory.Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.options.Log.Error("panic while considering", "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error while considering: %v", v)
		}
	}()
	return p.handler(ctx, job)
}
