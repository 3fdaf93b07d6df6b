package retrieve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const (
	budget = 800 * time.Millisecond
	late   = 5 * time.Second
)

// answer is how a fake behaves: it takes some time, with or without observing the context, and then succeeds or fails.
type answer struct {
	after          time.Duration
	ignoresContext bool
	err            error
}

func (a answer) wait(ctx context.Context) error {
	done := ctx.Done()
	if a.ignoresContext {
		done = nil
	}
	// Not time.After: under the race detector Go 1.26's runtime sometimes crashes on a timer's channel that is ready when select reads it
	// in a synctest bubble.
	elapsed := make(chan struct{})
	if a.after > 0 {
		defer time.AfterFunc(a.after, func() { close(elapsed) }).Stop()
	} else {
		close(elapsed)
	}
	select {
	case <-elapsed:
		return a.err
	case <-done:
		return ctx.Err()
	}
}

// world implements all dependencies of a Retriever, as a test sets them.
type world struct {
	embedder, keyword, vector, settings answer
	always                              answer // the standing memories
	model                               bool   // the embedder is a model, not hashed n-grams
	hitsByKeyword, hitsByVector         []vectorstore.Hit
	standing                            []*memory.Memory
	seen                                []vectorstore.Filter // with which these were read
	userSettings                        memory.Settings
	problem                             string // the storage's

	mu     sync.Mutex
	used   []vectorstore.Use
	traces []trace.Record
	log    bytes.Buffer
}

func (w *world) Fingerprint() embed.Fingerprint {
	return embed.Fingerprint{Provider: "test", Model: "m", Dimensions: 2, Version: 1}
}

func (w *world) Calibration() embed.Calibration {
	if w.model {
		return embed.ModelCalibration
	}
	return embed.Calibration{MemoryWeight: 0.3, MessageWeight: 0.03, Noise: 0.1}
}

func (w *world) Embed(ctx context.Context, _ embed.Purpose, texts []string) ([][]float32, error) {
	if err := w.embedder.wait(ctx); err != nil {
		return nil, err
	}
	return make([][]float32, len(texts)), nil
}

func (w *world) SearchKeyword(ctx context.Context, _ memory.User, _ string, _ vectorstore.Filter, _ int) ([]vectorstore.Hit, error) {
	if err := w.keyword.wait(ctx); err != nil {
		return nil, err
	}
	return w.hitsByKeyword, nil
}

func (w *world) SearchVector(ctx context.Context, _ memory.User, fingerprint string, _ []float32, _ vectorstore.Filter, _ int) ([]vectorstore.Hit, error) {
	if fingerprint != w.Fingerprint().String() {
		return nil, fmt.Errorf("searched for vectors of %s", fingerprint)
	}
	if err := w.vector.wait(ctx); err != nil {
		return nil, err
	}
	return w.hitsByVector, nil
}

func (w *world) Standing(ctx context.Context, _ memory.User, filter vectorstore.Filter) ([]*memory.Memory, error) {
	w.mu.Lock()
	w.seen = append(w.seen, filter)
	w.mu.Unlock()
	if err := w.always.wait(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(w.standing), nil
}

func (w *world) MarkUsed(_ context.Context, uses []vectorstore.Use) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = append(w.used, uses...)
	return nil
}

func (w *world) Get(ctx context.Context, _ memory.User) (memory.Settings, error) {
	return w.userSettings, w.settings.wait(ctx)
}

func (w *world) Problem() string { return w.problem }

func (w *world) WriteProblem() string { return "" }

func (w *world) Enabled() bool { return true }

func (w *world) Record(record trace.Record) { w.traces = append(w.traces, record) }

func (w *world) retriever() *Retriever {
	return New(Deps{
		Store: w, Settings: w, Embedder: w, Traces: w, Storage: w,
	}, Options{
		Budget: budget, RecencyHalfLife: 30 * 24 * time.Hour, Prompts: DefaultPrompts(), Location: time.UTC,
		StandingRunes: 300, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
}

func hit(id string, score float64) vectorstore.Hit {
	return vectorstore.Hit{Score: score, Memory: &memory.Memory{
		ID: id, Text: "text of " + id, Language: "en", Importance: 0.5, LastSaidAt: time.Now(), ObservedAt: time.Now(),
	}}
}

func query() Query {
	return Query{Scope: memory.Scope{Namespace: "n", UserID: "u"}, Text: "q", TopK: 10, MaxContextRunes: 2000}
}

// TestAnswerComesWithinTheBudget: Whatever is late or fails, the answer comes within the budget with the available results, and reports
// what is missing.
func TestAnswerComesWithinTheBudget(t *testing.T) {
	lateReason := "no answer within the budget (800ms)"
	outage := fmt.Errorf("%w: disk full", memory.ErrUnavailable)
	limited := &memory.TransientError{Err: errors.New("rate limited")}
	broken := errors.New("secret: nil pointer in adapter")
	for name, test := range map[string]struct {
		world    *world
		took     time.Duration
		hits     string
		degraded []Degradation
		logged   bool
	}{
		"all well": {&world{}, 0, "both keyword vector", nil, false},
		"all just in time": {
			&world{
				embedder: answer{after: 400 * time.Millisecond}, vector: answer{after: 399 * time.Millisecond},
				keyword: answer{after: 799 * time.Millisecond}, settings: answer{after: 799 * time.Millisecond},
			}, 799 * time.Millisecond,
			"both keyword vector", nil, false,
		},
		"embedder late": {&world{embedder: answer{after: late}}, budget, "both keyword", []Degradation{{Embedding, Late, lateReason}}, false},
		"embedder late, ignoring its context": {
			&world{embedder: answer{after: late, ignoresContext: true}}, budget, "both keyword",
			[]Degradation{{Embedding, Late, lateReason}},
			false,
		},
		"embedder refuses": {
			&world{embedder: answer{err: limited}}, 0, "both keyword",
			[]Degradation{{Embedding, Unavailable, "rate limited"}},
			false,
		},
		"embedder broken": {
			&world{embedder: answer{err: broken}}, 0, "both keyword",
			[]Degradation{{Embedding, Internal, "internal error"}},
			true,
		},
		"vector search late":    {&world{vector: answer{after: late}}, budget, "both keyword", []Degradation{{Embedding, Late, lateReason}}, false},
		"keyword search late":   {&world{keyword: answer{after: late}}, budget, "both vector", []Degradation{{Storage, Late, lateReason}}, false},
		"keyword search broken": {&world{keyword: answer{err: broken}}, 0, "both vector", []Degradation{{Storage, Internal, "internal error"}}, true},
		"both searches late": {
			&world{keyword: answer{after: late}, vector: answer{after: late}}, budget, "",
			[]Degradation{{Storage, Late, lateReason}},
			false,
		},
		"both late, ignoring its context": {
			&world{keyword: answer{after: late, ignoresContext: true}, embedder: answer{after: late, ignoresContext: true}}, budget,
			"",
			[]Degradation{{Storage, Late, lateReason}, {Embedding, Late, lateReason}},
			false,
		},
		"settings late":   {&world{settings: answer{after: late, ignoresContext: true}}, budget, "both keyword vector", nil, false},
		"settings broken": {&world{settings: answer{err: broken}}, 0, "both keyword vector", nil, false},
		"storage outage, cold": {&world{
			problem: "disk full", keyword: answer{err: outage}, vector: answer{err: outage},
			settings: answer{err: outage},
		}, 0, "", []Degradation{{Storage, Unavailable, "disk full"}}, false},
		"storage outage, hot": {
			&world{problem: "disk full", settings: answer{err: outage}}, 0, "both keyword vector",
			[]Degradation{{Storage, Unavailable, "disk full"}},
			false,
		},
		"storage outage in between": {
			&world{keyword: answer{err: outage}, vector: answer{err: outage}}, 0, "",
			[]Degradation{{Storage, Unavailable, "storage is unavailable: disk full"}},
			false,
		},
		"storage and embedder outage": {
			&world{problem: "disk full", keyword: answer{err: outage}, embedder: answer{err: limited}}, 0, "",
			[]Degradation{{Storage, Unavailable, "disk full"}, {Embedding, Unavailable, "rate limited"}},
			false,
		},
		"hot, embedder late": {
			&world{problem: "disk full", embedder: answer{after: late}}, budget, "both keyword",
			[]Degradation{{Storage, Unavailable, "disk full"}, {Embedding, Late, lateReason}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := test.world
				w.hitsByKeyword = []vectorstore.Hit{hit("both", 0.9), hit("keyword", 0.5)}
				w.hitsByVector = []vectorstore.Hit{{Score: 0.9, Memory: w.hitsByKeyword[0].Memory}, hit("vector", 0.7)}
				r := w.retriever()
				started := time.Now()
				result, err := r.Retrieve(t.Context(), query())
				took := time.Since(started)
				r.Close()
				time.Sleep(2 * late) // in synctest time: until calls that ignore their context have ended
				if err != nil {
					t.Fatal(err)
				}
				var ids []string
				for _, h := range result.Hits {
					ids = append(ids, h.Memory.ID)
				}
				if got := strings.Join(ids, " "); got != test.hits {
					t.Errorf("found %q, want %q", got, test.hits)
				}
				if took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
				if fmt.Sprint(result.Degraded) != fmt.Sprint(test.degraded) {
					t.Errorf("degraded %v, want %v", result.Degraded, test.degraded)
				}
				if logged := strings.Contains(w.log.String(), "secret"); logged != test.logged {
					t.Errorf("logged %q", w.log.String())
				}
				if (result.PromptContext == "") != (test.hits == "") || result.TraceID == "" {
					t.Errorf("the prompt is %q, the trace %q", result.PromptContext, result.TraceID)
				}
				if len(w.used) != len(result.Hits) || len(w.traces) != 1 || w.traces[0].ID != result.TraceID {
					t.Errorf("%d uses and %d traces are recorded", len(w.used), len(w.traces))
				}
			})
		})
	}
}

// TestCallerGivesUp: If the caller gives up, the call fails immediately and returns nothing.
func TestCallerGivesUp(t *testing.T) {
	for name, ignores := range map[string]bool{"observes the context": false, "ignores the context": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{embedder: answer{after: late, ignoresContext: ignores}, keyword: answer{after: late, ignoresContext: ignores}}
				r := w.retriever()
				defer r.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				started := time.Now()
				_, err := r.Retrieve(ctx, query())
				if took := time.Since(started); !errors.Is(err, context.DeadlineExceeded) || took != 300*time.Millisecond {
					t.Errorf("%v after %s", err, took)
				}
				cancelled, cancelNow := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, cancelNow)
				started = time.Now()
				_, err = r.Retrieve(cancelled, query())
				if took := time.Since(started); !errors.Is(err, context.Canceled) || took != 100*time.Millisecond {
					t.Errorf("%v after %s", err, took)
				}
				time.Sleep(2 * late) // in synctest time: until calls that ignore their context have ended
				if len(w.traces) != 0 {
					t.Error("an answer that was not returned is recorded")
				}
			})
		})
	}
}

// TestSettingsCountWhenTheBudgetIsSpent: Settings that were read are used, even if other calls took the whole budget.
func TestSettingsCountWhenTheBudgetIsSpent(t *testing.T) {
	for range 50 { // select chooses at random
		synctest.Test(t, func(t *testing.T) {
			w := &world{embedder: answer{after: late}, hitsByKeyword: []vectorstore.Hit{hit("a", 1)}, userSettings: memory.Settings{Language: "zh"}}
			r := w.retriever()
			defer r.Close()
			result, err := r.Retrieve(t.Context(), query())
			if err != nil || !strings.HasPrefix(result.PromptContext, DefaultPrompts()["zh"].Header) {
				t.Fatalf("%v, %q", err, result.PromptContext)
			}
		})
	}
}

// TestScoresMatchTheDesign checks the numbers of docs/design/recall.md.
func TestScoresMatchTheDesign(t *testing.T) {
	const halfLife = 30 * 24 * time.Hour
	for name, test := range map[string]struct {
		model                                 bool
		weight                                float64
		keyword, similarity, importance, ages float64 // age in half-lives
		relevance, recency                    float64
	}{
		"keyword alone":           {false, 0, 0.4, 0, 0.5, 0, 0.4, 1},
		"similarity alone, local": {false, 0, 0, 0.55, 0, 1, 0.3 * 0.5, 0.5},
		"similarity of noise":     {false, 0, 0.2, 0.1, 1, 2, 0.2, 0.25},
		"both, local":             {false, 0, 0.5, 1, 1, 0, 1 - 0.5*0.7, 1},
		"both, a model":           {true, 0, 0.5, 0.5, 0.3, 0, 1 - 0.5*0.6, 1},
		"a weight":                {true, 0.5, 0.5, 0.5, 0.3, 3, 1 - 0.5*0.75, 0.125},
		"negative similarity":     {true, 0, 0.5, -1, 0.3, 0, 0.5, 1},
		"similarity above 1":      {true, 1, 0, 1.0000001, 0.3, 0, 1, 1},
		"said in the future":      {false, 0, 0.5, 0, 0, -1, 0.5, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{model: test.model}
			h := hit("a", test.keyword)
			h.Memory.Importance, h.Memory.LastSaidAt = test.importance, time.Now().Add(-time.Duration(test.ages*float64(halfLife)))
			w.hitsByKeyword, w.hitsByVector = []vectorstore.Hit{h}, []vectorstore.Hit{{Memory: h.Memory, Score: test.similarity}}
			r := w.retriever()
			defer r.Close()
			r.options.VectorWeight = test.weight
			result, err := r.Retrieve(t.Context(), query())
			if err != nil || len(result.Hits) != 1 {
				t.Fatal(name, result, err)
			}
			got, score := result.Hits[0].Parts, result.Hits[0].Score
			want := ScoreBreakdown{
				Relevance: test.relevance, Similarity: min(1, max(0, test.similarity)), Keyword: test.keyword,
				Recency: test.recency, Importance: test.importance,
			}
			for _, pair := range [][2]float64{
				{got.Relevance, want.Relevance},
				{got.Similarity, want.Similarity},
				{got.Keyword, want.Keyword},
				{got.Recency, want.Recency},
				{got.Importance, want.Importance},
				{score, want.Relevance * (0.8 + 0.1*want.Recency + 0.1*want.Importance)},
			} {
				if math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Errorf("%s: %+v with score %v, want %+v", name, got, score, want)
					break
				}
			}
		})
	}
}

// TestCutAppliesLimitAndThreshold: At most the top k hits are returned, best first, and none below the threshold. Recency and importance
// do not count for the threshold.
func TestCutAppliesLimitAndThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		for i := range 10 {
			w.hitsByKeyword = append(w.hitsByKeyword, hit(fmt.Sprint(i), float64(i)/10))
		}
		old := hit("old", 0.65)
		old.Memory.LastSaidAt, old.Memory.Importance = time.Now().Add(-100*365*24*time.Hour), 0
		w.hitsByKeyword = append(w.hitsByKeyword, old)
		r := w.retriever()
		defer r.Close()
		for _, test := range []struct {
			top  int
			min  float64
			want string
		}{
			{100, 0, "9 8 7 6 old 5 4 3 2 1"},
			{3, 0, "9 8 7"},
			{100, 0.6, "9 8 7 6 old"},
			{100, 0.65, "9 8 7 old"},
			{100, 0.66, "9 8 7"},
			{100, 1, ""},
			{2, 0.85, "9"},
		} {
			q := query()
			q.TopK, q.MinRelevance = test.top, test.min
			result, err := r.Retrieve(t.Context(), q)
			var ids []string
			for _, h := range result.Hits {
				ids = append(ids, h.Memory.ID)
			}
			if got := strings.Join(ids, " "); err != nil || got != test.want {
				t.Errorf("top %d from %v: %q, want %q", test.top, test.min, got, test.want)
			}
		}
	})
}
