package trace_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// store keeps records in memory.
type store struct {
	mu      sync.Mutex
	records []trace.Record
	pruned  []time.Time
	err     error
}

func (s *store) Append(_ context.Context, records []trace.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, records...)
	return s.err
}

func (s *store) Prune(_ context.Context, before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pruned = append(s.pruned, before)
	return s.err
}

func (s *store) Forget(_ context.Context, user memory.User) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.records)
	s.records = slices.DeleteFunc(s.records, func(r trace.Record) bool { return r.User == user })
	return int64(before - len(s.records)), s.err
}

func (s *store) ids() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		ids = append(ids, r.ID)
	}
	return ids
}

var (
	ann = memory.User{Namespace: "test", ID: "ann"}
	ben = memory.User{Namespace: "test", ID: "ben"}
)

func bubble(t *testing.T, retention time.Duration, run func(t *testing.T, s *store, r *trace.Recorder)) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		run(t, &s, trace.NewRecorder(&s, trace.Options{Retention: retention, Log: slog.New(slog.DiscardHandler)}))
	})
}

func TestRecords(t *testing.T) {
	bubble(t, time.Hour, func(t *testing.T, s *store, r *trace.Recorder) {
		r.Record(trace.Record{ID: "1", User: ann})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.Record(trace.Record{ID: "2", User: ann})
		if got := s.ids(); !slices.Equal(got, []string{"1"}) {
			t.Errorf("written %q", got)
		}
		r.Close()
		if got := s.ids(); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("after Close %q", got)
		}
	})
}

func TestDisabled(t *testing.T) {
	bubble(t, 0, func(t *testing.T, s *store, r *trace.Recorder) {
		if r.Enabled() {
			t.Error("enabled without retention")
		}
		r.Record(trace.Record{ID: "1", User: ann})
		r.Close()
		if got := s.ids(); got != nil {
			t.Errorf("written %q", got)
		}
	})
}

// TestForget: records that wait are forgotten too, and those of others are not.
func TestForget(t *testing.T) {
	bubble(t, time.Hour, func(t *testing.T, s *store, r *trace.Recorder) {
		defer r.Close()
		r.Record(trace.Record{ID: "1", User: ann})
		time.Sleep(2 * time.Second)
		r.Record(trace.Record{ID: "2", User: ann})
		r.Record(trace.Record{ID: "3", User: ben})
		if n, err := r.Forget(t.Context(), ann); n != 2 || err != nil {
			t.Errorf("forgot %d, %v", n, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.ids(); !slices.Equal(got, []string{"3"}) {
			t.Errorf("left %q", got)
		}
		s.mu.Lock()
		s.err = errors.New("away")
		s.mu.Unlock()
		if _, err := r.Forget(t.Context(), ann); !errors.Is(err, s.err) {
			t.Errorf("got %v", err)
		}
	})
}

// TestPrune: what is older than the retention is deleted now and then, also when that failed before.
func TestPrune(t *testing.T) {
	bubble(t, 24*time.Hour, func(t *testing.T, s *store, r *trace.Recorder) {
		defer r.Close()
		s.mu.Lock()
		s.err = errors.New("away")
		s.mu.Unlock()
		begin := time.Now()
		time.Sleep(3*time.Hour + time.Minute)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.pruned) < 3 {
			t.Fatalf("pruned %d times in three hours", len(s.pruned))
		}
		for _, before := range s.pruned {
			if before.Before(begin.Add(-24*time.Hour)) || before.After(time.Now().Add(-24*time.Hour)) {
				t.Errorf("pruned what is older than %s", before)
			}
		}
	})
}

func TestNewID(t *testing.T) {
	if a, b := trace.NewID(), trace.NewID(); a == b || len(a) < 20 || a[:4] != "trc_" {
		t.Errorf("%q and %q", a, b)
	}
}
