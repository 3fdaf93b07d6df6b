package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// TestFinishedConsiderationsExpire: Finished considerations are deleted after their retention, within an hour or at the next start, and in
// steps. Failed ones have their own retention; 0 means forever.
func TestFinishedConsiderationsExpire(t *testing.T) {
	bubble(t, func(b *bench) {
		b.options.Retention = 24 * time.Hour
		handler := func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			if job.User().ID == "ben" {
				return "", memory.Outcome{}, errors.New("no")
			}
			return memory.StateSkipped, memory.Outcome{}, nil
		}
		pool := b.start(handler)
		var done []string
		for range 90 { // at most 100 of a user may be pending
			done = append(done, b.accept("ann"), b.accept("eve"), b.accept("zoe"))
		}
		broken := b.accept("ben")
		pool.Wake()
		left := func() (n int) {
			for _, id := range []string{"ann", "eve", "zoe"} {
				jobs, _, err := b.store.List(b.Context(), user(id), queue.ListQuery{Audience: memory.Everything(), Limit: 1000})
				if err != nil {
					b.Fatal(err)
				}
				n += len(jobs)
			}
			return n
		}
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if n := left(); n != len(done) {
			b.Errorf("after 23 hours %d remain", n)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := left(); n != 0 {
			b.Errorf("after 25 hours %d remain", n)
		}
		b.is(broken, "ben", memory.StateFailed)
		b.stop(pool)
		b.options.FailedRetention = 48 * time.Hour
		time.Sleep(24 * time.Hour)
		pool = b.start(handler) // a process that lives less than an hour deletes them too
		synctest.Wait()
		b.stop(pool)
		if _, err := b.store.Get(b.Context(), user("ben"), broken, memory.Everything()); !errors.Is(err, memory.ErrNotFound) {
			b.Errorf("a failed consideration is not kept: %v", err)
		}
	})
}
