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

	"go.uber.org/goleak"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a pool over a real queue, in a bubble of its own.
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
		storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := storage.Close(); err != nil {
				t.Error(err)
			}
		}()
		run(&bench{T: t, store: sqlite.NewQueue(storage), options: queue.Options{
			Workers: 4, MaxAge: 24 * time.Hour, BackoffMin: time.Second, BackoffMax: time.Minute, Log: discard,
		}})
	})
}

// start sets a pool going; it must be stopped.
func (b *bench) start(handler queue.Handler) *queue.Pool {
	pool := queue.NewPool(b.store, handler, b.options)
	pool.Start()
	return pool
}

// stop gives the running jobs no time.
func (b *bench) stop(pool *queue.Pool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	pool.Stop(ctx)
}

const namespace = "test"

func user(id string) memory.User { return memory.User{Namespace: namespace, ID: id} }

// accept stores a dialogue of these people, in a group when they are several, and returns its id.
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

// is checks how a consideration stands.
func (b *bench) is(id, person string, want memory.State) memory.Consideration {
	b.Helper()
	c := b.get(id, person)
	if c.State != want {
		b.Errorf("%s of %s is %s (%+v), want %s", id, person, c.State, c.Outcome, want)
	}
	return c
}

// diary notes when jobs ran.
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

// TestOrder: one job of a user at a time and in order, of several users as many as there are workers.
func TestOrder(t *testing.T) {
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
			b.Errorf("after %s two workers have done %d jobs, %d at once at most", time.Since(begin), len(lines), most)
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

// TestBackoff: what may be cured by time is tried again after growing pauses, which differ from each other's multiples.
func TestBackoff(t *testing.T) {
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
			b.Errorf("in the end %+v", c)
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

// TestRetryAfter: a provider that says how long to wait is obeyed.
func TestRetryAfter(t *testing.T) {
	bubble(t, func(b *bench) {
		var attempts diary
		pool := b.start(func(_ context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			attempts.note(name(job))
			if job.Consideration.Attempts == 1 {
				return "", memory.Outcome{}, &memory.TransientError{Err: errors.New("busy"), RetryAfter: time.Hour}
			}
			return remembered()
		})
		defer b.stop(pool)
		id := b.accept("ann")
		pool.Wake()
		time.Sleep(59 * time.Minute)
		b.is(id, "ann", memory.StatePending)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
		if _, times := attempts.read(); len(times) != 2 || times[1].Sub(times[0]) < time.Hour {
			b.Errorf("attempts at %v", times)
		}
	})
}

// TestMaxAge: what time does not cure fails in the end, and visibly; the next of the line has its turn.
func TestMaxAge(t *testing.T) {
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

		// A retry has the whole time again.
		if _, err := b.store.Retry(b.Context(), user("ann"), first, memory.Everything(), time.Now()); err != nil {
			b.Fatal(err)
		}
		pool.Wake()
		synctest.Wait()
		b.is(first, "ann", memory.StatePending)
	})
}

// TestPermanentFailure: an error that time does not cure, and a panic, fail the job at once and nobody else's.
func TestPermanentFailure(t *testing.T) {
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

// TestStop: jobs are given the time that there is; one that is cut off is done by the next pool, from its checkpoint.
func TestStop(t *testing.T) {
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
		b.stop(queue.NewPool(b.store, nil, b.options)) // never started: returns
	})
}

// TestBar: while a user is being forgotten no job touches their words, not even as another speaker; other jobs go on.
func TestBar(t *testing.T) {
	bubble(t, func(b *bench) {
		group, own, others := b.accept("ann", "ben"), b.accept("ben"), b.accept("eve")
		var cancelled diary
		proceed := make(chan struct{})
		pool := b.start(func(ctx context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
			select {
			case <-ctx.Done():
				cancelled.note(name(job))
				time.Sleep(time.Second) // takes its time to notice
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
		meanwhile := b.accept("ben", "ann")
		pool.Wake()
		time.Sleep(time.Minute)
		synctest.Wait()
		b.is(others, "eve", memory.StateRemembered)
		for _, c := range []memory.Consideration{b.get(group, "ann"), b.get(group, "ben"), b.get(own, "ben"), b.get(meanwhile, "ann")} {
			if c.State.Final() {
				b.Errorf("%s of %s was done while the user is barred", c.ID, c.Scope.UserID)
			}
		}
		release()
		synctest.Wait()
		for _, person := range []string{"ann", "ben"} {
			if c := b.is(group, person, memory.StateRemembered); c.Attempts != 2 {
				b.Errorf("%s of %s took %d attempts", group, person, c.Attempts)
			}
			b.is(meanwhile, person, memory.StateRemembered)
		}
		b.is(own, "ben", memory.StateRemembered)
	})
}

// TestBarBeforeTheJob: a job that comes while its user is barred has its turn afterwards.
func TestBarBeforeTheJob(t *testing.T) {
	bubble(t, func(b *bench) {
		pool := b.start(func(context.Context, queue.Job) (memory.State, memory.Outcome, error) { return remembered() })
		defer b.stop(pool)
		synctest.Wait()
		var releases []func()
		for range 2 { // two calls that forget the same user
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
				b.Errorf("it is %s while the user is barred", c.State)
			}
			release()
		}
		synctest.Wait()
		b.is(id, "ann", memory.StateRemembered)
	})
}

// TestBarGivesUp: a job that does not notice its cancellation in time is not lost when the caller gives up.
func TestBarGivesUp(t *testing.T) {
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

func TestWatch(t *testing.T) {
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
			b.Error("only the view that has failed is final")
		}
		b.is(id, "ben", memory.StateFailed)
		time.Sleep(90 * time.Second)
		if !closed(ann) || !closed(annToo) || closed(gone) || closed(other) {
			b.Errorf("closed: %t, %t, stopped %t, another's %t", closed(ann), closed(annToo), closed(gone), closed(other))
		}
		b.is(id, "ann", memory.StateRemembered)
		stopAnn() // also after it was closed
	})
}
