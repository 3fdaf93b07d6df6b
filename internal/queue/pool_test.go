package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// bench is a pool over a real queue, with a clock of its own.
type bench struct {
	*testing.T
	store   queue.Store
	options queue.Options
	count   int
}

func bubble(t *testing.T, run func(b *bench)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		discard := slog.New(slog.DiscardHandler)
		storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, CheckEvery: time.Hour, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := storage.Close(); err != nil {
				t.Error(err)
			}
		}()
		run(&bench{T: t, store: sqlstore.NewQueue(storage), options: queue.Options{
			Workers: 4, MaxAge: 24 * time.Hour, BackoffMin: time.Second, BackoffMax: time.Minute, Log: discard,
		}})
	})
}

// start starts a pool. The caller stops it.
func (b *bench) start(handler queue.Handler) *queue.Pool {
	pool := queue.NewPool(b.store, handler, b.options)
	pool.Start()
	return pool
}

// stop ends a pool without waiting for running jobs.
func (b *bench) stop(pool *queue.Pool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	pool.Stop(ctx)
}

const namespace = "test"

func user(id string) memory.User { return memory.User{Namespace: namespace, ID: id} }

// accept stores a dialogue of these people and returns its id. Several people are in a group.
func (b *bench) accept(people ...string) string {
	b.Helper()
	b.count++
	d := memory.Dialogue{Scope: memory.Scope{Namespace: namespace, UserID: people[0]}}
	for _, p := range people {
		d.Messages = append(d.Messages, memory.Message{Role: memory.RoleUser, Speaker: p, Content: "hello", Time: time.Now()})
	}
	c, err := b.store.Accept(b.Context(), queue.Acceptance{
		ID: fmt.Sprint("con_", b.count), Dialogue: d, Speakers: d.Speakers(), At: time.Now(), MaxPending: 100,
	})
	if err != nil {
		b.Fatal(err)
	}
	return c.ID
}

func (b *bench) get(id, person string) memory.Consideration {
	b.Helper()
	c, err := b.store.Get(b.Context(), user(person), id, memory.Everything())
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// is checks a consideration's state.
func (b *bench) is(id, person string, want memory.State) memory.Consideration {
	b.Helper()
	c := b.get(id, person)
	if c.State != want {
		b.Errorf("%s of %s is %s (%+v), want %s", id, person, c.State, c.Outcome, want)
	}
	return c
}

// diary records when jobs ran.
type diary struct {
	mu    sync.Mutex
	lines []string
	times []time.Time
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
	d.times = append(d.times, time.Now())
}

func (d *diary) read() ([]string, []time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines), slices.Clone(d.times)
}

func name(job queue.Job) string { return job.User().ID + " " + job.Consideration.ID }

func remembered() (memory.State, memory.Outcome, error) {
	return memory.StateRemembered, memory.Outcome{Reason: "done"}, nil
}

// TestUsersJobsRunInOrder: A user's jobs run in order, one at a time. Different users' jobs run simultaneously, one for each worker.
func TestUsersJobsRunInOrder(t *testing.T) {
	bubble(t, func(b *bench) {
		b.options.Workers = 2
		var mu sync.Mutex
		running, most := map[memory.User]bool{}, 0
		var ends diary
		pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			mu.Lock()
			if running[job.User()] {
				b.Errorf("%s began while another of this user runs", name(job))
			}
			running[job.User()] = true
			most = max(most, len(running))
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			delete(running, job.User())
			mu.Unlock()
			ends.note(name(job))
			return remembered()
		})
		defer b.stop(pool)
		begin := time.Now()
		want := map[string][]string{}
		for range 3 {
			for _, person := range []string{"ann", "ben", "eve"} {
				want[person] = append(want[person], person+" "+b.accept(person))
			}
		}
		pool.Wake()
		time.Sleep(4500 * time.Millisecond)
		synctest.Wait()
		lines, _ := ends.read()
		if len(lines) != 8 || most != 2 {
			b.Errorf("after %s two workers ran %d jobs, at most %d simultaneously", time.Since(begin), len(lines), most)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		lines, _ = ends.read()
		for person, jobs := range want {
			own := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return line[:3] != person })
			if !slices.Equal(own, jobs) {
				b.Errorf("%s: %q, want %q", person, own, jobs)
			}
		}
	})
}

// TestTransientFailureBacksOff: A transient failure is retried after growing pauses with jitter.
func TestTransientFailureBacksOff(t *testing.T) {
	bubble(t, func(b *bench) {
		const failures = 9
		var attempts diary
		pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			attempts.note(name(job))
			if job.Consideration.Attempts <= failures {
				return "", memory.Outcome{}, fmt.Errorf("deciding: %w", &memory.TransientError{Err: errors.New("busy")})
			}
			return remembered()
		})
		defer b.stop(pool)
		id := b.accept("ann")
		pool.Wake()
		synctest.Wait()
		if c := b.is(id, "ann", memory.StatePending); c.Outcome.Error != "deciding: busy" || c.Attempts != 1 || !c.NextAttemptAt.After(time.Now()) {
			b.Errorf("after the first attempt %+v", c)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if c := b.is(id, "ann", memory.StateRemembered); c.Attempts != failures+1 || c.Outcome.Error != "" {
			b.Errorf("at the end %+v", c)
		}
		_, times := attempts.read()
		exact := 0
		for i := range failures {
			pause, nominal := times[i+1].Sub(times[i]), min(b.options.BackoffMax, b.options.BackoffMin<<i)
			if pause < nominal/2 || pause > nominal+nominal/2+time.Millisecond {
				b.Errorf("pause %d is %s, want %s give or take half", i, pause, nominal)
			}
			if (pause - nominal).Abs() < time.Millisecond {
				exact++
			}
		}
		if exact > 1 {
			b.Errorf("%d pauses have no jitter", exact)
		}
	})
}

// TestProviderDelayPostponesNoJob: The delay that a provider asks for is the circuit breaker's, and postpones no job.
func TestProviderDelayPostponesNoJob(t *testing.T) {
	bubble(t, func(b *bench) {
		var attempts diary
		pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			attempts.note(name(job))
			if job.Consideration.Attempts == 1 {
				return "", memory.Outcome{}, &memory.TransientError{Err: errors.New("busy"), RetryAfter: 24 * time.Hour}
			}
			return remembered()
		})
		defer b.stop(pool)
		id := b.accept("ann")
		pool.Wake()
		time.Sleep(2 * b.options.BackoffMin)
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
		if _, times := attempts.read(); len(times) != 2 || times[1].Sub(times[0]) > 2*b.options.BackoffMin {
			b.Errorf("attempts at %v", times)
		}
	})
}

// TestJobFailsAtItsMaxAge: A job that keeps failing fails for good at its maximum age. Then the user's next job runs.
func TestJobFailsAtItsMaxAge(t *testing.T) {
	bubble(t, func(b *bench) {
		b.options.MaxAge = time.Hour
		first := b.accept("ann")
		second := b.accept("ann")
		var attempts diary
		pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			if job.Consideration.ID == second {
				return remembered()
			}
			attempts.note(name(job))
			return "", memory.Outcome{}, &memory.TransientError{Err: errors.New("busy")}
		})
		defer b.stop(pool)
		time.Sleep(59 * time.Minute)
		b.is(first, "ann", memory.StatePending)
		b.is(second, "ann", memory.StatePending)
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if c := b.is(first, "ann", memory.StateFailed); c.Outcome.Error != "busy" {
			b.Errorf("failed with %+v", c.Outcome)
		}
		b.is(second, "ann", memory.StateRemembered)

		// A retry restarts the age limit.
		if _, err := b.store.Retry(b.Context(), user("ann"), first, memory.Everything(), time.Now()); err != nil {
			b.Fatal(err)
		}
		pool.Wake()
		synctest.Wait()
		b.is(first, "ann", memory.StatePending)
	})
}

// TestPermanentErrorFailsOnlyItsJob: A permanent error or a panic fails the job immediately, and only that job.
func TestPermanentErrorFailsOnlyItsJob(t *testing.T) {
	for what, handle := range map[string]func(){
		"cannot parse the answer": nil,
		"oops":                    func() { panic("oops") },
	} {
		bubble(t, func(b *bench) {
			bad, good := b.accept("ann"), b.accept("ann")
			pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
				if job.Consideration.ID == good {
					return memory.StateSkipped, memory.Outcome{Reason: "small talk"}, nil
				}
				if handle != nil {
					handle()
				}
				return "", memory.Outcome{}, errors.New(what)
			})
			defer b.stop(pool)
			synctest.Wait()
			c := b.is(bad, "ann", memory.StateFailed)
			if c.Attempts != 1 || !strings.Contains(c.Outcome.Error, what) {
				b.Errorf("failed with %+v", c)
			}
			if c := b.is(good, "ann", memory.StateSkipped); c.Outcome.Reason != "small talk" {
				b.Errorf("skipped with %+v", c.Outcome)
			}
		})
	}
}
