package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// TestUnavailableDependencyLimitsProbes: while a dependency is unavailable, the pool probes it with one job at a time.
// After recovery all jobs run, including those that were never tried.
func TestUnavailableDependencyLimitsProbes(t *testing.T) {
	bubble(t, func(b *bench) {
		const openFor = 30 * time.Second
		var mu sync.Mutex
		working, failed, until := true, 0, time.Time{}
		running, most := 0, 0
		b.options.Unavailable = func() (time.Time, bool) {
			mu.Lock()
			defer mu.Unlock()
			return until, !until.IsZero()
		}
		pool := b.start(func(context.Context, queue.Job) (memory.State, memory.Outcome, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second) // long enough for other jobs to overlap
			mu.Lock()
			defer mu.Unlock()
			running--
			if !working {
				failed++
				until = time.Now().Add(openFor)
				return "", memory.Outcome{}, &memory.TransientError{Err: errors.New("away")}
			}
			until = time.Time{}
			return remembered()
		})
		defer b.stop(pool)
		set := func(is bool) {
			mu.Lock()
			defer mu.Unlock()
			working = is
		}
		set(false)
		var ids []string
		for i := range 40 {
			ids = append(ids, b.accept(fmt.Sprint("user", i)))
		}
		pool.Wake()
		time.Sleep(10 * time.Second)
		mu.Lock()
		before := failed // of which some had been claimed already
		if before > 2*b.options.Workers {
			b.Errorf("%d jobs were tried at the beginning", before)
		}
		most = 0
		mu.Unlock()
		time.Sleep(time.Hour)
		mu.Lock()
		if n := failed - before; n < 100 || n > int(time.Hour/openFor) || most != 1 {
			b.Errorf("within an hour %d jobs were tried, %d simultaneously", n, most)
		}
		mu.Unlock()
		set(true)
		time.Sleep(2*openFor + time.Duration(len(ids)/b.options.Workers)*time.Second)
		synctest.Wait()
		ended := 0
		for i, id := range ids {
			if b.get(id, fmt.Sprint("user", i)).State == memory.StateRemembered {
				ended++
			}
		}
		if ended < len(ids)*3/4 { // the pauses of a few are not over
			b.Errorf("%d of %d jobs ended soon after recovery", ended, len(ids))
		}
		mu.Lock()
		if most > b.options.Workers {
			b.Errorf("%d jobs ran simultaneously", most)
		}
		mu.Unlock()
		time.Sleep(2 * b.options.BackoffMax)
		for i, id := range ids {
			b.is(id, fmt.Sprint("user", i), memory.StateRemembered)
		}
	})
}
