package embed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// fake embeds a text as its length, after a delay, and records its calls.
type fake struct {
	delay  time.Duration
	answer func(texts []string) ([][]float32, error) // instead of lengths

	mu    sync.Mutex
	calls [][]string
}

func (f *fake) Calibration() embed.Calibration { return embed.ModelCalibration }

func (f *fake) Fingerprint() embed.Fingerprint {
	return embed.Fingerprint{Provider: "fake", Model: "length", Dimensions: 1, Version: 1}
}

func (f *fake) Embed(ctx context.Context, _ embed.Purpose, texts []string) ([][]float32, error) {
	f.mu.Lock()
	f.calls = append(f.calls, slices.Clone(texts))
	f.mu.Unlock()
	select {
	case <-time.After(f.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.answer != nil {
		return f.answer(texts)
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{float32(len(text))}
	}
	return vectors, nil
}

func (f *fake) asked() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.calls)
}

// check embeds queries and compares the vectors, which are the texts' lengths.
func check(t *testing.T, e embed.Embedder, texts ...string) {
	t.Helper()
	vectors, err := e.Embed(t.Context(), embed.ForQuery, texts)
	if err != nil || len(vectors) != len(texts) {
		t.Fatalf("Embed(%q) = %v, %v", texts, vectors, err)
	}
	for i, v := range vectors {
		if len(v) != 1 || v[0] != float32(len(texts[i])) {
			t.Errorf("the vector of %q is %v", texts[i], v)
		}
	}
}

func TestCacheEmbedsAQueryOnce(t *testing.T) {
	inner := &fake{}
	e := embed.WithCache(inner, 10, nil)
	check(t, e, "a")
	check(t, e, "a")
	check(t, e, "bb", "a", "ccc")
	check(t, e, "ccc", "bb")
	check(t, e)
	if got, want := inner.asked(), "[[a] [bb ccc]]"; got != want {
		t.Errorf("embedded %s, want %s", got, want)
	}
	if e.Fingerprint() != inner.Fingerprint() {
		t.Error("the cache has another fingerprint")
	}
}

func TestCacheEvictsTheLeastRecentlyUsed(t *testing.T) {
	inner := &fake{}
	e := embed.WithCache(inner, 2, nil)
	for _, text := range []string{"a", "b", "a", "c", "a", "b"} {
		check(t, e, text)
	}
	if got, want := inner.asked(), "[[a] [b] [c] [b]]"; got != want {
		t.Errorf("embedded %s, want %s", got, want)
	}
}

func TestCacheDoesNotKeepDocuments(t *testing.T) {
	inner := &fake{}
	e := embed.WithCache(inner, 10, nil)
	check(t, e, "a")
	for range 2 {
		if _, err := e.Embed(t.Context(), embed.ForDocument, []string{"a"}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := inner.asked(), "[[a] [a] [a]]"; got != want {
		t.Errorf("embedded %s, want %s", got, want)
	}
}

func TestEmptyCacheReturnsTheEmbedder(t *testing.T) {
	inner := &fake{}
	if e := embed.WithCache(inner, 0, nil); e != embed.Embedder(inner) {
		t.Errorf("WithCache(inner, 0) is a %T", e)
	}
}

func TestCacheDoesNotKeepErrors(t *testing.T) {
	down := errors.New("down")
	inner := &fake{answer: func([]string) ([][]float32, error) { return nil, down }}
	e := embed.WithCache(inner, 10, nil)
	if _, err := e.Embed(t.Context(), embed.ForQuery, []string{"a"}); !errors.Is(err, down) {
		t.Fatalf("err = %v, want the embedder's", err)
	}
	inner.answer = nil
	check(t, e, "a")
}

func TestCacheRejectsAWrongNumberOfVectors(t *testing.T) {
	inner := &fake{answer: func([]string) ([][]float32, error) { return [][]float32{{1}}, nil }}
	e := embed.WithCache(inner, 10, nil)
	_, err := e.Embed(t.Context(), embed.ForQuery, []string{"a", "b"})
	if err == nil || !strings.Contains(err.Error(), "1 vectors for 2 texts") {
		t.Errorf("err = %v", err)
	}
}

func TestConcurrentQueriesShareACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fake{delay: time.Second}
		e := embed.WithCache(inner, 10, nil)
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() { check(t, e, "a", "bb") })
		}
		callers.Go(func() { check(t, e, "other") })
		callers.Wait()
		inner.mu.Lock()
		defer inner.mu.Unlock()
		if len(inner.calls) != 2 {
			t.Errorf("embedded %v", inner.calls)
		}
	})
}

func TestCancelledCallerDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fake{delay: time.Second}
		e := embed.WithCache(inner, 10, nil)
		first, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() { // begins the call and is cancelled
			began := time.Now()
			if _, err := e.Embed(first, embed.ForQuery, []string{"a"}); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled caller got %v", err)
			}
			if waited := time.Since(began); waited != 100*time.Millisecond {
				t.Errorf("the cancelled caller waited %s", waited)
			}
		})
		synctest.Wait()
		callers.Go(func() { check(t, e, "a") })
		time.Sleep(100 * time.Millisecond)
		leave()
		callers.Wait()
		if got, want := inner.asked(), "[[a]]"; got != want {
			t.Errorf("embedded %s, want %s", got, want)
		}
	})
}

func TestAbandonedCallFillsTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fake{delay: 5 * time.Second}
		e := embed.WithCache(inner, 10, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // Retrieve's budget
		defer cancel()
		if _, err := e.Embed(ctx, embed.ForQuery, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want the caller's deadline", err)
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		check(t, e, "a")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the second caller waited %s", waited)
		}
	})
}

func TestCallTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fake{delay: 24 * time.Hour}
		e := embed.WithCache(inner, 10, nil)
		began := time.Now()
		_, err := e.Embed(t.Context(), embed.ForQuery, []string{"a"})
		var transient *memory.TransientError
		if !errors.As(err, &transient) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want a transient error that is not the caller's deadline", err)
		}
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("the call took %s", waited)
		}
		inner.delay = 0
		check(t, e, "a")
	})
}

func TestCancelledCallerMakesNoCall(t *testing.T) {
	inner := &fake{}
	e := embed.WithCache(inner, 10, nil)
	check(t, e, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, embed.ForQuery, []string{"b"}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if got, want := inner.asked(), "[[a]]"; got != want {
		t.Errorf("embedded %s, want %s", got, want)
	}
}

type key struct{}

func TestCallHasTheValuesOfItsCallersContext(t *testing.T) {
	var seen any
	e := embed.WithCache(seeing{&fake{}, &seen}, 10, nil)
	check(t, e) // no text, no call
	if _, err := e.Embed(context.WithValue(t.Context(), key{}, "trace"), embed.ForQuery, []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if seen != "trace" {
		t.Errorf("the embedder saw %v", seen)
	}
}

type seeing struct {
	embed.Embedder
	seen *any
}

func (s seeing) Embed(ctx context.Context, p embed.Purpose, texts []string) ([][]float32, error) {
	*s.seen = ctx.Value(key{})
	return s.Embedder.Embed(ctx, p, texts)
}

func TestPanicReachesTheCaller(t *testing.T) {
	inner := &fake{answer: func([]string) ([][]float32, error) { panic("broken") }}
	e := embed.WithCache(inner, 10, nil)
	func() {
		defer func() {
			if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "broken\n") || !strings.Contains(p, "cache_test.go") {
				t.Errorf("recovered %q, want the embedder's panic and its stack", p)
			}
		}()
		_, _ = e.Embed(t.Context(), embed.ForQuery, []string{"a"})
	}()
	inner.answer = nil
	check(t, e, "a")
}
