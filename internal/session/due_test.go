package session_test

import (
	"sync"
	"testing"
	"time"
)

// TestSummariesWaitForTheirModel: While the model is unavailable, no summary is tried and messages are still considered. After its
// recovery all summaries are made.
func TestSummariesWaitForTheirModel(t *testing.T) {
	bubble(t, func(w *world) {
		j := &joiner{}
		w.parts.Summarizer = j
		var mu sync.Mutex
		var until time.Time
		down := true
		w.options.Unavailable = func() (time.Time, bool) {
			mu.Lock()
			defer mu.Unlock()
			return until, down
		}
		set := func(next time.Time, is bool) {
			mu.Lock()
			defer mu.Unlock()
			until, down = next, is
		}
		set(time.Now().Add(time.Hour), true)
		w.restart()
		defer w.stop()
		for _, id := range []string{"a", "b", "c"} {
			w.exchange(scope("ann", id), 0, 10)
		}
		w.pass(10 * time.Minute)
		if len(j.asked) != 0 {
			w.Errorf("%d summaries were tried", len(j.asked))
		}
		if n := len(w.taker.words()); n != 30 {
			w.Errorf("%d of 30 messages were considered during the outage", n)
		}
		set(time.Time{}, false)
		w.Resume()
		w.pass(time.Second)
		for _, id := range []string{"a", "b", "c"} {
			if got := w.summary(scope("ann", id)); got.Last == 0 {
				w.Errorf("session %s has no summary", id)
			}
		}
	})
}
