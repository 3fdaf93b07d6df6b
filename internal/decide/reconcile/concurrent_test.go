package reconcile_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/reconcile"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// TestConcurrentUse: workers that compare the same texts at the same time, of which each is read but once, find what one alone finds.
func TestConcurrentUse(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	pairs := [][2]string{
		{"The user is looking for a job.", "The user found a new job."},
		{"The user likes jazz.", "The user no longer likes jazz."},
		{"用户住在上海", "用户搬到北京了"},
		{"用户喜欢喝咖啡，也喜欢爬山", "用户不再喜欢喝咖啡了"},
	}
	all := func() (found string) {
		for _, p := range pairs {
			known := memory.Memory{ID: "m", Text: p[0], CreatedAt: at, ObservedAt: at, LastSaidAt: at}
			said := memory.Statement{Text: p[1], ObservedAt: at.Add(time.Hour)}
			found += fmt.Sprintln(reconcile.Compare(said, []decide.Neighbor{{Memory: known}}), len(reconcile.New().Probes(said)))
		}
		return found
	}
	var workers sync.WaitGroup
	results := make([]string, 8)
	for i := range results {
		workers.Go(func() { results[i] = all() })
	}
	workers.Wait()
	want := all()
	for _, got := range results {
		if got != want {
			t.Errorf("at once %q, alone %q", got, want)
		}
	}
}
