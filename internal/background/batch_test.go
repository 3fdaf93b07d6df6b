package background_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
)

// sink collects what is written.
type sink struct {
	mu      sync.Mutex
	batches [][]int
	err     error
	slow    time.Duration
}

func (s *sink) write(_ context.Context, items []int) error {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.batches = append(s.batches, slices.Clone(items))
	return nil
}

func (s *sink) all() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.batches...)
}

func options(log *bytes.Buffer) background.BatchOptions {
	return background.BatchOptions{Name: "numbers", Every: time.Second, Max: 5, Log: slog.New(slog.NewTextHandler(log, nil))}
}

func TestItemsAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		w := background.NewBatchWriter(s.write, options(new(bytes.Buffer)))
		for i := range 2 {
			w.Add(i)
		}
		synctest.Wait()
		if got := s.all(); got != nil {
			t.Errorf("written immediately: %v", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		w.Add(2)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := s.batches; len(got) != 2 || !slices.Equal(got[0], []int{0, 1}) || !slices.Equal(got[1], []int{2}) {
			t.Errorf("written %v", got)
		}
		w.Add(3)
		w.Close()
		if got := s.all(); !slices.Equal(got, []int{0, 1, 2, 3}) {
			t.Errorf("after Close %v", got)
		}
	})
}

// TestFullBatchIsWrittenEarly: While writing is fast enough, no item is dropped, however many are added between two intervals.
func TestFullBatchIsWrittenEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		var log bytes.Buffer
		w := background.NewBatchWriter(s.write, options(&log))
		begin := time.Now()
		for i := range 100 {
			w.Add(i)
			synctest.Wait() // writing is fast enough
		}
		if d := time.Since(begin); d != 0 || len(s.all()) < 97 {
			t.Errorf("after %s %v is written", d, s.all())
		}
		w.Close()
		if len(s.all()) != 100 || log.Len() > 0 {
			t.Errorf("written %v, logged %q", s.all(), log.String())
		}
	})
}

// TestFlushWritesEarlierItems: Flush returns after everything added before it is written, also by a batch that is being written.
func TestFlushWritesEarlierItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{slow: 3 * time.Second}
		w := background.NewBatchWriter(s.write, options(new(bytes.Buffer)))
		defer w.Close()
		w.Add(1)
		time.Sleep(1500 * time.Millisecond) // the first batch is being written
		begin := time.Now()
		w.Flush(t.Context())
		if got, d := s.all(), time.Since(begin); !slices.Equal(got, []int{1}) || d != 2500*time.Millisecond {
			t.Errorf("flushed %v after %s", got, d)
		}

		w.Add(2)
		time.Sleep(1500 * time.Millisecond) // the second one is being written
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		w.Flush(ctx)
		if d := time.Since(begin); d != time.Second {
			t.Errorf("the caller who gave up waited %s", d)
		}
	})
}

// TestExcessItemsAreDropped: Items above the limit are dropped and counted in the log. Add never blocks.
func TestExcessItemsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{slow: time.Minute}
		var log bytes.Buffer
		w := background.NewBatchWriter(s.write, options(&log))
		w.Add(-1)
		time.Sleep(2 * time.Second) // it is being written
		begin := time.Now()
		for i := range 8 {
			w.Add(i)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("adding took %s", d)
		}
		time.Sleep(time.Hour)
		w.Close()
		if got := s.all(); !slices.Equal(got, []int{-1, 0, 1, 2, 3, 4}) {
			t.Errorf("written %v", got)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "what=numbers count=3") {
			t.Errorf("logged %q", got)
		}
	})
}

// TestDropsAreLoggedOnceAMinute: The log reports drops once a minute, and counts all of them.
func TestDropsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		var log bytes.Buffer
		w := background.NewBatchWriter(s.write, options(&log))
		const seconds, each = 150, 7
		for range seconds {
			for i := range each {
				w.Add(i)
			}
			time.Sleep(time.Second)
		}
		w.Close()
		lines, dropped := strings.Split(strings.TrimSpace(log.String()), "\n"), 0
		for _, line := range lines {
			_, count, _ := strings.Cut(line, "count=")
			n, err := strconv.Atoi(count)
			if err != nil {
				t.Fatal(line, err)
			}
			dropped += n
		}
		if got := len(s.all()) + dropped; len(lines) != 4 || got != seconds*each {
			t.Errorf("%d of %d are written or logged as dropped, in %d lines:\n%s", got, seconds*each, len(lines), &log)
		}
	})
}

// TestFailedBatchIsLost: Items that cannot be written are lost. Later ones are not.
func TestFailedBatchIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink{err: errors.New("unavailable")}
		var log bytes.Buffer
		w := background.NewBatchWriter(s.write, options(&log))
		w.Add(1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		w.Add(2)
		w.Close()
		if got := s.all(); !slices.Equal(got, []int{2}) {
			t.Errorf("written %v", got)
		}
		if log.Len() != 0 { // the storage logs its outage itself
			t.Errorf("logged %q", &log)
		}
	})
}

func TestConcurrentCallsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		o := options(new(bytes.Buffer))
		o.Max = 10_000
		w := background.NewBatchWriter(s.write, o)
		var tasks sync.WaitGroup
		for i := range 4 {
			tasks.Go(func() {
				for j := range 200 {
					w.Add(i*200 + j)
					if j%50 == 0 {
						w.Flush(t.Context())
					}
				}
			})
		}
		tasks.Wait()
		w.Close()
		got := s.all()
		slices.Sort(got)
		if len(got) != 800 || len(slices.Compact(got)) != 800 {
			t.Errorf("%d written", len(got))
		}
	})
}
