package queue_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// TestStopInterruptsJobs: Stop waits for running jobs up to its limit. The next pool continues an interrupted job from its checkpoint.
func TestStopInterruptsJobs(t *testing.T) {
	bubble(t, func(b *bench) {
		quick, slow, late := b.accept("ann"), b.accept("ben"), b.accept("ann")
		pool := b.start(func(ctx context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			if job.Consideration.ID == quick {
				time.Sleep(time.Second)
				return remembered()
			}
			if err := b.store.Checkpoint(ctx, job.Seq, []byte(`{"half":"done"}`)); err != nil {
				b.Error(err)
			}
			<-ctx.Done()
			return "", memory.Outcome{}, ctx.Err()
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		pool.Stop(ctx)
		if d := time.Since(begin); d != 10*time.Second {
			b.Errorf("stopping took %s", d)
		}
		b.is(quick, "ann", memory.StateRemembered)
		b.is(slow, "ben", memory.StateRunning)
		b.is(late, "ann", memory.StatePending)

		var again diary
		pool = b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			again.note(name(job) + " " + string(job.Checkpoint))
			return remembered()
		})
		defer b.stop(pool)
		synctest.Wait()
		lines, _ := again.read()
		slices.Sort(lines)
		if want := []string{"ann " + late + " ", "ben " + slow + ` {"half":"done"}`}; !slices.Equal(lines, want) {
			b.Errorf("the next pool did %q, want %q", lines, want)
		}
	})
	bubble(t, func(b *bench) {
		b.stop(queue.NewPool(b.store, nil, b.options)) // never started: returns immediately
	})
}

// TestClaimedJobsDoNotBeginAfterStop: A worker that finishes a job has the next one claimed. Claimed jobs that did not begin before Stop
// do not begin, delay nothing, and run in the next pool.
func TestClaimedJobsDoNotBeginAfterStop(t *testing.T) {
	bubble(t, func(b *bench) {
		b.options.Workers = 2
		ids := map[string]string{}
		for _, person := range []string{"ann", "ben", "cleo", "dan", "eve"} {
			ids[person] = b.accept(person)
		}
		proceed := make(chan struct{})
		var begun diary
		handler := func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			begun.note(job.User().ID)
			<-proceed
			return remembered()
		}
		pool := b.start(handler)
		synctest.Wait()
		first, _ := begun.read()
		claimed := 0
		for person, id := range ids {
			if b.get(id, person).State == memory.StateRunning {
				claimed++
			}
		}
		if len(first) != 2 || claimed != 4 {
			t.Errorf("%d jobs are begun and %d claimed, want 2 and 4", len(first), claimed)
		}
		stopped := make(chan struct{})
		go func() {
			pool.Stop(b.Context())
			close(stopped)
		}()
		synctest.Wait()
		close(proceed)
		<-stopped
		if all, _ := begun.read(); len(all) != 2 {
			t.Errorf("%q were begun, want only %q", all, first)
		}
		pool = b.start(handler)
		defer b.stop(pool)
		synctest.Wait()
		for person, id := range ids {
			b.is(id, person, memory.StateRemembered)
		}
		if all, _ := begun.read(); len(all) != 5 {
			t.Errorf("%q were begun, want each once", all)
		}
	})
}

// TestBarKeepsJobsFromTheUser: While a user is being forgotten, no job reads their messages, not even as another speaker. Other jobs run.
func TestBarKeepsJobsFromTheUser(t *testing.T) {
	bubble(t, func(b *bench) {
		group, own, others := b.accept("ann", "ben"), b.accept("ben"), b.accept("eve")
		var cancelled diary
		proceed := make(chan struct{})
		pool := b.start(func(ctx context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			select {
			case <-ctx.Done():
				cancelled.note(name(job))
				time.Sleep(time.Second) // slow to react
				return "", memory.Outcome{}, ctx.Err()
			case <-proceed:
				return remembered()
			}
		})
		defer b.stop(pool)
		synctest.Wait()
		begin := time.Now()
		release, err := pool.Bar(b.Context(), user("ben"))
		if err != nil {
			b.Fatal(err)
		}
		if d := time.Since(begin); d != time.Second {
			b.Errorf("Bar returned after %s, want it to wait for the jobs", d)
		}
		lines, _ := cancelled.read()
		slices.Sort(lines)
		if want := []string{"ann " + group, "ben " + group}; !slices.Equal(lines, want) {
			b.Errorf("cancelled %q, want %q", lines, want)
		}
		close(proceed)
		duringBar := b.accept("ben", "ann")
		pool.Wake()
		time.Sleep(time.Minute)
		synctest.Wait()
		b.is(others, "eve", memory.StateRemembered)
		for _, c := range []memory.Consideration{b.get(group, "ann"), b.get(group, "ben"), b.get(own, "ben"), b.get(duringBar, "ann")} {
			if c.State.Final() {
				b.Errorf("%s of %s ran while its user was barred", c.ID, c.Scope.UserID)
			}
		}
		release()
		synctest.Wait()
		for _, person := range []string{"ann", "ben"} {
			if c := b.is(group, person, memory.StateRemembered); c.Attempts != 2 {
				b.Errorf("%s of %s took %d attempts", group, person, c.Attempts)
			}
			b.is(duringBar, person, memory.StateRemembered)
		}
		b.is(own, "ben", memory.StateRemembered)
	})
}

// TestBarredUsersJobRunsLater: A job that is accepted while its user is barred runs afterwards.
func TestBarredUsersJobRunsLater(t *testing.T) {
	bubble(t, func(b *bench) {
		pool := b.start(func(context.Context, queue.Job) (memory.State, memory.Outcome, error) { return remembered() })
		defer b.stop(pool)
		synctest.Wait()
		var releases []func()
		for range 2 { // two concurrent calls that forget the same user
			release, err := pool.Bar(b.Context(), user("ann"))
			if err != nil {
				b.Fatal(err)
			}
			releases = append(releases, release)
		}
		id := b.accept("ann")
		for _, release := range releases {
			pool.Wake()
			synctest.Wait()
			if c := b.get(id, "ann"); c.State.Final() {
				b.Errorf("the job is %s while its user is barred", c.State)
			}
			release()
		}
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
	})
}

// TestBarTimesOut: If a job ignores its cancellation and the caller gives up, the job is not lost.
func TestBarTimesOut(t *testing.T) {
	bubble(t, func(b *bench) {
		id := b.accept("ann")
		pool := b.start(func(ctx context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			if job.Consideration.Attempts == 1 {
				<-ctx.Done()
				time.Sleep(time.Minute)
			}
			return remembered()
		})
		defer b.stop(pool)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if _, err := pool.Bar(ctx, user("ann")); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("got %v", err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
	})
}

func TestWatchClosesAtAFinalState(t *testing.T) {
	bubble(t, func(b *bench) {
		pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			time.Sleep(time.Second)
			switch {
			case job.User().ID == "ben":
				return "", memory.Outcome{}, errors.New("cannot")
			case job.Consideration.Attempts == 1:
				return "", memory.Outcome{}, &memory.TransientError{Err: errors.New("busy"), RetryAfter: time.Minute}
			}
			return remembered()
		})
		defer b.stop(pool)
		id := b.accept("ann", "ben")
		closed := func(c <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		ann, stopAnn := pool.Watch(user("ann"), id)
		defer stopAnn()
		annToo, stopAnnToo := pool.Watch(user("ann"), id)
		defer stopAnnToo()
		ben, stopBen := pool.Watch(user("ben"), id)
		defer stopBen()
		gone, stopGone := pool.Watch(user("ann"), id)
		stopGone()
		other, stopOther := pool.Watch(memory.User{Namespace: "elsewhere", ID: "ann"}, id)
		defer stopOther()
		pool.Wake()
		time.Sleep(2 * time.Second)
		if closed(ann) || !closed(ben) {
			b.Error("Watch did not close exactly for the failed consideration")
		}
		b.is(id, "ben", memory.StateFailed)
		time.Sleep(90 * time.Second)
		if !closed(ann) || !closed(annToo) || closed(gone) || closed(other) {
			b.Errorf("closed: %t, %t, stopped %t, another's %t", closed(ann), closed(annToo), closed(gone), closed(other))
		}
		b.is(id, "ann", memory.StateRemembered)
		stopAnn() // also after the channel was closed
	})
}
