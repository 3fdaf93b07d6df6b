package retrieve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// counted collects the sums of model costs.
type counted struct {
	mu         sync.Mutex
	namespaces []string
}

func (c *counted) AddUsage(_ context.Context, calls []usage.Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range calls {
		c.namespaces = append(c.namespaces, call.Namespace)
	}
	return nil
}

// TestTraceOfRetrieve: The record has the query, the hits and the model calls. A repeated query calls no model.
func TestTraceOfRetrieve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			embedder: answer{after: 10 * time.Millisecond}, model: true,
			hitsByKeyword: []vectorstore.Hit{hit("a", 0.9), hit("b", 0.5)}, hitsByVector: []vectorstore.Hit{hit("b", 0.5), hit("c", 0.1)},
		}
		var sums counted
		calls := usage.NewRecorder(&sums, slog.New(slog.DiscardHandler))
		r := w.retriever()
		defer r.Close()
		r.Embedder = embed.WithCache(embed.WithObserver(w, func(ctx context.Context, started time.Time, err error) {
			c := usage.Call{At: started, Part: "embedding", Model: "p/m", Latency: time.Since(started)}
			if err != nil {
				c.Error = err.Error()
			}
			calls.Record(ctx, c)
		}), 10, nil)
		q := query()
		q.TopK, q.MinRelevance = 2, 0.2
		q.Scope.SessionID, q.Scope.Channel = "s", memory.Channel{Kind: memory.ChannelDirect, ID: "dm"}
		call := trace.Call{TurnID: "turn-1", OTelTraceID: "0af7651916cd43dd8448eb211c80319c"}
		begun := time.Now()
		for range 2 {
			if _, err := r.Retrieve(trace.WithCall(t.Context(), call), q); err != nil {
				t.Fatal(err)
			}
		}
		w.embedder.err = &memory.TransientError{Err: errors.New("p/m: HTTP 429")}
		q.Text = "another"
		result, err := r.Retrieve(t.Context(), q)
		if err != nil || len(w.traces) != 3 {
			t.Fatalf("%d records, %v", len(w.traces), err)
		}
		first, again, failed := w.traces[0], w.traces[1], w.traces[2]
		if first.Scope != q.Scope || first.TurnID != call.TurnID || first.OTelTraceID != call.OTelTraceID || first.Kind() != trace.KindRetrieve ||
			!first.At.Equal(begun) || first.Duration != 10*time.Millisecond || first.Degraded != nil || first.Error != "" {
			t.Errorf("recorded %+v", first)
		}
		d := first.Retrieve
		if d.Query != "q" || d.TopK != 2 || d.MinRelevance != 0.2 || d.Memories != 2 || d.Messages != 0 {
			t.Errorf("detail %+v", d)
		}
		var shown []string
		for _, c := range d.Candidates {
			shown = append(shown, fmt.Sprintf("%s %t", c.MemoryID, c.Returned))
			if c.Score <= 0 || c.Relevance <= 0 || c.Recency <= 0 || c.Importance != 0.5 || c.Keyword+c.Similarity <= 0 {
				t.Errorf("candidate %+v", c)
			}
		}
		if got := strings.Join(shown, ", "); got != "a true, b true, c false" {
			t.Errorf("candidates %s", got)
		}
		if len(first.ModelCalls) != 1 || first.ModelCalls[0].Model != "p/m" || first.ModelCalls[0].Latency != 10*time.Millisecond {
			t.Errorf("model calls %+v", first.ModelCalls)
		}
		if len(again.ModelCalls) != 0 || again.ID == first.ID {
			t.Errorf("repeated: %+v", again)
		}
		if failed.ID != result.TraceID || len(failed.ModelCalls) != 1 || failed.ModelCalls[0].Error != "p/m: HTTP 429" || failed.TurnID != "" {
			t.Errorf("without the model: %+v", failed)
		}
		if len(failed.Degraded) != 1 || failed.Degraded[0] != (trace.Degradation{Component: "embedding", Reason: "p/m: HTTP 429"}) {
			t.Errorf("degraded %+v", failed.Degraded)
		}
		calls.Close()
		if fmt.Sprint(sums.namespaces) != "[n n]" {
			t.Errorf("the calls were counted for %q", sums.namespaces)
		}
	})
}

// TestTraceHasTheBestMisses: The record has all returned hits, and the best of each kind that were not returned.
func TestTraceHasTheBestMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(world)
		r := w.retriever()
		defer r.Close()
		var ranked, returned []Hit
		for i := range 60 {
			ranked = append(ranked, Hit{Memory: &memory.Memory{ID: fmt.Sprint(i)}, Score: 1})
			m := session.Message{SessionID: "s", Position: int64(i)}
			ranked = append(ranked, Hit{Message: &m, Score: 1})
		}
		for i, h := range ranked {
			if h.Memory != nil && i < 80 || h.Message != nil && i < 6 {
				returned = append(returned, h)
			}
		}
		_, recording := trace.Begin(t.Context(), query().Scope)
		r.note(query(), ranked, returned, nil, recording)
		d := w.traces[0].Retrieve
		if d.Memories != 40 || d.Messages != 3 || len(d.Candidates) != 45+10 {
			t.Fatalf("%d memories, %d messages, %d candidates", d.Memories, d.Messages, len(d.Candidates))
		}
		for i, c := range d.Candidates {
			message := i >= 45
			want := trace.Candidate{MemoryID: fmt.Sprint(i), Score: 1, Returned: i < 40}
			if message {
				want = trace.Candidate{SessionID: "s", Position: int64(i - 45), Score: 1, Returned: i < 48}
			}
			if c != want {
				t.Errorf("candidate %d: %+v, want %+v", i, c, want)
			}
		}
	})
}
