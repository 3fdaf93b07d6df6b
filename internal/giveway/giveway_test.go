package giveway_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/giveway"
)

// begun calls what may wait, and returns a channel that is closed when it has returned.
func begun(what func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		what()
	}()
	synctest.Wait()
	return done
}

func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestWaitsForAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := giveway.New(2)
		first, second := w.Call(), w.Call()
		pause := begun(func() { w.Pause(t.Context()) })
		step := begun(func() { w.Step(t.Context())() })
		first()
		synctest.Wait()
		if over(pause) || over(step) {
			t.Error("the background goes on while a call is under way")
		}
		began := time.Now()
		second()
		<-pause
		<-step
		if waited := time.Since(began); waited > 0 {
			t.Errorf("with the last call over it waits for another %s", waited)
		}
		third := w.Call()
		if over(begun(func() { w.Pause(t.Context()) })) {
			t.Error("it does not wait for a call that comes later")
		}
		third()
	})
}

// TestNeverStarves: with calls under way all the time each step waits for Patience, and no longer.
func TestNeverStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := giveway.New(2)
		defer w.Call()()
		began := time.Now()
		const steps = 10
		for range steps {
			w.Step(t.Context())()
		}
		if took := time.Since(began); took != steps*giveway.Patience {
			t.Errorf("%d steps waited for %s", steps, took)
		}
	})
}

func TestAloneNothingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := giveway.New(2)
		w.Call()() // one that is over
		began := time.Now()
		w.Pause(t.Context())
		w.Step(t.Context())()
		if took := time.Since(began); took > 0 {
			t.Errorf("nobody calls, and the background waits for %s", took)
		}
	})
}

// TestLeavesAProcessor: as many steps at once as there are processors but one.
func TestLeavesAProcessor(t *testing.T) {
	for _, test := range []struct{ processors, want int }{{1, 1}, {2, 1}, {4, 3}} {
		synctest.Test(t, func(t *testing.T) {
			w := giveway.New(test.processors)
			var ends []func()
			for range test.want {
				ends = append(ends, w.Step(t.Context()))
			}
			next := begun(func() { w.Step(t.Context())() })
			if over(next) {
				t.Errorf("%d processors: more than %d steps at once", test.processors, test.want)
			}
			for _, end := range ends {
				end()
			}
			<-next
		})
	}
}

// TestStops: who is told to stop waits for nothing, and what ends then leaves the others their turns.
func TestStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := giveway.New(1)
		ctx, cancel := context.WithCancel(t.Context())
		call := w.Call()
		pause := begun(func() { w.Pause(ctx) })
		cancel()
		<-pause
		call()
		end := w.Step(t.Context())
		w.Step(ctx)() // there is no turn for it
		next := begun(func() { w.Step(t.Context())() })
		if over(next) {
			t.Error("two steps at once on one processor")
		}
		end()
		<-next
	})
}
