package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// faulty is a store that fails on demand, before or after the call has taken effect.
type faulty struct {
	queue.Store
	fault func(method string) (before, after error)
}

func do(f *faulty, method string, call func() error) error {
	before, after := f.fault(method)
	if before != nil {
		return before
	}
	return errors.Join(call(), after)
}

func (f *faulty) Claim(ctx context.Context, now time.Time, limit int) (jobs []queue.Job, next time.Time, err error) {
	err = do(f, "Claim", func() (err error) {
		jobs, next, err = f.Store.Claim(ctx, now, limit)
		return err
	})
	if err != nil {
		jobs = nil
	}
	return jobs, next, err
}

func (f *faulty) Finish(ctx context.Context, seq int64, state memory.State, outcome memory.Outcome, at time.Time) error {
	return do(f, "Finish", func() error { return f.Store.Finish(ctx, seq, state, outcome, at) })
}

func (f *faulty) Postpone(ctx context.Context, seq int64, due time.Time, outcome memory.Outcome, at time.Time) error {
	return do(f, "Postpone", func() error { return f.Store.Postpone(ctx, seq, due, outcome, at) })
}

func (f *faulty) Recover(ctx context.Context, except []int64, at time.Time) error {
	return do(f, "Recover", func() error { return f.Store.Recover(ctx, except, at) })
}

var errOutage = fmt.Errorf("%w: for a test", memory.ErrUnavailable)

// TestStorageOutageRepeatsTheJob: A job that a storage outage interrupts runs again after the recovery, and ends once.
func TestStorageOutageRepeatsTheJob(t *testing.T) {
	for what, fail := range map[string]func(down bool) error{
		"the job returns the error": func(down bool) error { return map[bool]error{true: errOutage}[down] },
		"the result is not stored":  func(bool) error { return nil },
		"the pause is not stored": func(down bool) error {
			return map[bool]error{true: &memory.TransientError{Err: errors.New("busy")}}[down]
		},
		"the failure is not stored": func(down bool) error { return map[bool]error{true: errors.New("cannot")}[down] },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(b *bench) {
				var down atomic.Bool
				var ends, calls atomic.Int32
				b.store = &faulty{Store: b.store, fault: func(method string) (before, after error) {
					calls.Add(1)
					if down.Load() {
						return errOutage, nil
					}
					if method == "Finish" {
						ends.Add(1)
					}
					return nil, nil
				}}
				var runs atomic.Int32
				pool := b.start(func(context.Context, queue.Job) (memory.State, memory.Outcome, error) {
					runs.Add(1)
					time.Sleep(time.Second)
					if err := fail(down.Load()); err != nil {
						return "", memory.Outcome{}, err
					}
					return remembered()
				})
				defer b.stop(pool)
				id := b.accept("ann")
				pool.Wake()
				synctest.Wait()
				down.Store(true)
				calls.Store(0)
				time.Sleep(time.Hour)
				if n := runs.Load(); n != 1 {
					b.Errorf("during the outage the job ran %d times", n)
				}
				if n := calls.Load(); n > 2*3600/5 {
					b.Errorf("the store was asked %d times in an hour", n)
				}
				down.Store(false)
				pool.Wake()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				b.is(id, "ann", memory.StateRemembered)
				if runs.Load() != 2 || ends.Load() != 1 {
					b.Errorf("%d runs with %d ends", runs.Load(), ends.Load())
				}
			})
		})
	}
}

// TestTargetOutageRetriesTheJob: If a job's target is unavailable while the queue's storage works, the job is retried periodically for as
// long as it takes, never in a tight loop.
func TestTargetOutageRetriesTheJob(t *testing.T) {
	bubble(t, func(b *bench) {
		b.options.MaxAge = time.Minute
		var runs atomic.Int32
		var down atomic.Bool
		down.Store(true)
		pool := b.start(func(context.Context, queue.Job) (memory.State, memory.Outcome, error) {
			if runs.Add(1) > 10_000 {
				return "", memory.Outcome{}, errors.New("a tight loop")
			}
			if down.Load() {
				return "", memory.Outcome{}, errOutage
			}
			return remembered()
		})
		defer b.stop(pool)
		id := b.accept("ann")
		pool.Wake()
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		b.is(id, "ann", memory.StatePending)
		if n := runs.Load(); n < 10 || n > 3600/5+1 {
			b.Errorf("it ran %d times in an hour", n)
		}
		down.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
	})
}

// heldLog blocks the first line that is logged.
type heldLog struct {
	slog.Handler
	once      sync.Once
	held, let chan struct{}
}

func (h *heldLog) Enabled(context.Context, slog.Level) bool { return true }

func (h *heldLog) Handle(context.Context, slog.Record) error {
	h.once.Do(func() {
		close(h.held)
		<-h.let
	})
	return nil
}

// TestRecoveryDuringJobEndLosesNoJob: A job is not lost if the pool recovers jobs after the job's result could not be stored and before
// the job counts as ended.
func TestRecoveryDuringJobEndLosesNoJob(t *testing.T) {
	bubble(t, func(b *bench) {
		log := &heldLog{Handler: slog.DiscardHandler, held: make(chan struct{}), let: make(chan struct{})}
		b.options.Log = slog.New(log)
		var failed atomic.Bool
		b.store = &faulty{Store: b.store, fault: func(method string) (before, after error) {
			if method == "Finish" && failed.CompareAndSwap(false, true) {
				return errors.New("disk trouble"), nil
			}
			return nil, nil
		}}
		id := b.accept("ann")
		pool := b.start(func(context.Context, queue.Job) (memory.State, memory.Outcome, error) { return remembered() })
		defer b.stop(pool)
		<-log.held
		pool.Wake()
		synctest.Wait()
		close(log.let)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
	})
}

// TestEveryJobEndsDespiteStorageErrors: Every job ends, whatever call fails, also if the failed call took effect.
func TestEveryJobEndsDespiteStorageErrors(t *testing.T) {
	for seed := range uint64(5) {
		bubble(t, func(b *bench) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			number := func(below int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(below)
			}
			chance := func(percent int) bool { return number(100) < percent }
			b.store = &faulty{Store: b.store, fault: func(string) (before, after error) {
				switch n := number(100); {
				case n < 15:
					return errOutage, nil
				case n < 30:
					return nil, errOutage
				}
				return nil, nil
			}}
			var running sync.Map
			pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
				if other, twice := running.LoadOrStore(job.User(), name(job)); twice {
					b.Errorf("%s runs while %s does", name(job), other)
				}
				defer running.Delete(job.User())
				time.Sleep(time.Duration(number(100)) * time.Millisecond)
				switch {
				case chance(20):
					return "", memory.Outcome{}, &memory.TransientError{Err: errors.New("busy")}
				case chance(10):
					return "", memory.Outcome{}, errOutage
				}
				return remembered()
			})
			defer b.stop(pool)
			type view struct{ id, person string }
			var views []view
			people := []string{"ann", "ben", "eve"}
			for i := range 12 {
				person, other := people[i%3], people[(i+1)%3]
				id := b.accept(person, other)
				views = append(views, view{id, person}, view{id, other})
				pool.Wake()
				time.Sleep(50 * time.Millisecond)
			}
			time.Sleep(6 * time.Hour)
			synctest.Wait()
			for _, v := range views {
				b.is(v.id, v.person, memory.StateRemembered)
			}
		})
	}
}
