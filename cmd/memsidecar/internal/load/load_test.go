package load_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
)

func TestRunCountsWhatCallersSaw(t *testing.T) {
	broken := errors.New("broken")
	var mu sync.Mutex
	seen := map[int64]bool{}
	stats := load.Run(t.Context(), load.Limits{Callers: 4, Calls: 100}, func(_ context.Context, n int64) (load.Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		if seen[n] {
			t.Errorf("call %d is made twice", n)
		}
		seen[n] = true
		switch n % 10 {
		case 0:
			return load.Answer{}, broken
		case 1:
			return load.Answer{Degraded: true}, nil
		}
		return load.Answer{}, nil
	})
	if len(seen) != 100 || stats.Calls != 90 || stats.Errors != 10 || stats.Degraded != 10 || !errors.Is(stats.FirstError, broken) {
		t.Errorf("%d calls made, %+v", len(seen), stats)
	}
	if stats.PerSecond() <= 0 || stats.Percentile(50) > stats.Percentile(100) {
		t.Errorf("%v calls a second, median %v, longest %v", stats.PerSecond(), stats.Percentile(50), stats.Percentile(100))
	}
}

// TestRunEnds: A caller makes one call at a time, and starts none after the end.
func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const callers = 3
	running := make(chan struct{}, callers)
	var begun sync.WaitGroup
	begun.Add(callers)
	go func() {
		begun.Wait()
		cancel()
	}()
	stats := load.Run(ctx, load.Limits{Callers: callers, Duration: time.Hour}, func(ctx context.Context, _ int64) (load.Answer, error) {
		select {
		case running <- struct{}{}:
		default:
			t.Error("more calls than callers")
			return load.Answer{}, nil
		}
		begun.Done()
		<-ctx.Done()
		return load.Answer{}, ctx.Err()
	})
	if stats.Calls != 0 || stats.Errors != 0 {
		t.Errorf("calls that were cut off count: %+v", stats)
	}
}

// TestShortRunMeasuresOneCall: One call is measured even if the time is over before the callers start.
func TestShortRunMeasuresOneCall(t *testing.T) {
	stats := load.Run(t.Context(), load.Limits{Callers: 3, Duration: 1}, func(context.Context, int64) (load.Answer, error) { return load.Answer{}, nil })
	if stats.Calls != 1 {
		t.Errorf("%d calls", stats.Calls)
	}
}

func TestPercentiles(t *testing.T) {
	stats := load.Run(t.Context(), load.Limits{Callers: 1, Calls: 1}, func(context.Context, int64) (load.Answer, error) {
		for started := time.Now(); time.Since(started) < 2*time.Millisecond; {
		}
		return load.Answer{}, nil
	})
	if got := stats.Percentile(100); got < 2*time.Millisecond {
		t.Errorf("a call of 2 ms is measured as %s", got)
	}
}

func TestTexts(t *testing.T) {
	seen := map[string]int{}
	for n := range 10_000 { // bench's maximum
		text := load.Statement(n)
		if before, ok := seen[text]; ok {
			t.Fatalf("%q is both number %d and %d", text, before, n)
		}
		seen[text] = n
	}
	if first, again := load.Question(7), load.Question(7); first != again {
		t.Errorf("the same number gives %q and %q", first, again)
	}
}
