package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// skewed is a store that receives the times of a clock that is ahead.
type skewed struct {
	queue.Store
	ahead atomic.Int64
}

func (s *skewed) time(t time.Time) time.Time { return t.Add(time.Duration(s.ahead.Load())) }

func (s *skewed) Accept(ctx context.Context, a queue.Acceptance) (memory.Consideration, error) {
	a.At = s.time(a.At)
	return s.Store.Accept(ctx, a)
}

func (s *skewed) Claim(ctx context.Context, now time.Time, limit int) ([]queue.Job, time.Time, error) {
	jobs, next, err := s.Store.Claim(ctx, s.time(now), limit)
	if !next.IsZero() {
		next = next.Add(-time.Duration(s.ahead.Load()))
	}
	return jobs, next, err
}

func (s *skewed) Postpone(ctx context.Context, seq int64, due time.Time, outcome memory.Outcome, at time.Time) error {
	return s.Store.Postpone(ctx, seq, s.time(due), outcome, s.time(at))
}

func (s *skewed) Finish(ctx context.Context, seq int64, state memory.State, outcome memory.Outcome, at time.Time) error {
	return s.Store.Finish(ctx, seq, state, outcome, s.time(at))
}

func (s *skewed) MakeDue(ctx context.Context, after, now time.Time) error {
	return s.Store.MakeDue(ctx, s.time(after), s.time(now))
}

// TestClockSetBack: While the queue runs, the clock is ahead and then corrected. Jobs that were postponed or accepted in between are due
// by the corrected clock, in each user's order.
func TestClockSetBack(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		bubble(t, func(b *bench) {
			store := &skewed{Store: b.store}
			b.store = store
			store.ahead.Store(int64(ahead))
			var works atomic.Bool
			pool := b.start(func(context.Context, queue.Job) (memory.State, memory.Outcome, error) {
				if !works.Load() {
					return "", memory.Outcome{}, &memory.TransientError{Err: errors.New("busy")}
				}
				return remembered()
			})
			defer b.stop(pool)
			const users = 12
			var ids []string
			for u := range users {
				ids = append(ids, b.accept(fmt.Sprint("user", u)), b.accept(fmt.Sprint("user", u)))
			}
			pool.Wake()
			time.Sleep(10 * time.Minute)
			store.ahead.Store(0)
			works.Store(true)
			late := b.accept("late") // by the corrected clock
			pool.Wake()
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			for i, id := range ids {
				b.is(id, fmt.Sprint("user", i/2), memory.StateRemembered)
			}
			b.is(late, "late", memory.StateRemembered)
		})
	}
}

// TestOwnPausesEndWithARecovery: A job's pause ends when the dependency it needs recovers, if not earlier.
func TestOwnPausesEndWithARecovery(t *testing.T) {
	bubble(t, func(b *bench) {
		b.options.BackoffMin, b.options.BackoffMax = time.Hour, time.Hour
		var attempts diary
		pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			attempts.note(name(job))
			if job.Consideration.Attempts == 1 {
				return "", memory.Outcome{}, &memory.TransientError{Err: errors.New("busy")}
			}
			return remembered()
		})
		defer b.stop(pool)
		id := b.accept("ann")
		pool.Wake()
		time.Sleep(20 * time.Minute)
		if lines, _ := attempts.read(); len(lines) != 1 {
			b.Errorf("tried %q", lines)
		}
		pool.Resume()
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
	})
}

// TestStartEndsPauses: Jobs that an earlier process postponed are due when the pool starts.
func TestStartEndsPauses(t *testing.T) {
	bubble(t, func(b *bench) {
		id := b.accept("ann")
		jobs, _, err := b.store.Claim(b.Context(), time.Now(), 1)
		if err != nil || len(jobs) != 1 {
			b.Fatal(jobs, err)
		}
		if err := b.store.Postpone(b.Context(), jobs[0].Seq, time.Now().Add(24*time.Hour), memory.Outcome{}, time.Now()); err != nil {
			b.Fatal(err)
		}
		pool := b.start(func(context.Context, queue.Job) (memory.State, memory.Outcome, error) { return remembered() })
		defer b.stop(pool)
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
	})
}
