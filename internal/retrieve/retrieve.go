// Package retrieve is the read path: from a query to the memories that help to answer it, within a budget of time, and
// with what it has when something behind it is down.
package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/memsidecar/memsidecar/internal/batch"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Store is searched.
type Store interface {
	SearchVector(ctx context.Context, user memory.User, fingerprint string, vector []float32, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
	SearchKeyword(ctx context.Context, user memory.User, query string, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
	MarkUsed(ctx context.Context, uses []vectorstore.Use) error
}

// Settings reads users' settings.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
}

// Traces records calls.
type Traces interface {
	Enabled() bool
	Record(record trace.Record)
}

// Parts is what a Retriever works with.
type Parts struct {
	Store    Store
	Settings Settings
	Embedder embed.Embedder
	Traces   Traces
	// StorageProblem says why storage is down, or "". What is in memory is still searched then.
	StorageProblem func() string
}

// Options describes a Retriever.
type Options struct {
	Budget time.Duration // for the whole of a call
	// VectorWeight is how far a cosine similarity of 1 is evidence of relevance, 0 to 1; 0 is what suits the embedder.
	VectorWeight    float64
	RecencyHalfLife time.Duration
	Prompts         Prompts
	Location        *time.Location // for dates in the prompt, for users who set no time zone
	Log             *slog.Logger
}

// Query asks for memories.
type Query struct {
	Scope           memory.Scope
	Text            string
	Filter          vectorstore.Filter
	TopK            int
	MinRelevance    float64
	MaxContextRunes int
}

// Result is what was found, best first.
type Result struct {
	Hits          []Hit
	PromptContext string
	Degraded      []Degradation
	TraceID       string
}

// Hit is a memory with its score. The memory is shared: it must not be modified.
type Hit struct {
	Memory *memory.Memory
	Score  float64
	Parts  ScoreParts
}

// ScoreParts is what a score is made of, each 0 to 1.
type ScoreParts struct {
	Relevance, Similarity, Keyword, Recency, Importance float64
}

// Component names what can be missing while the rest answers.
type Component string

// The components.
const (
	Embedding Component = "embedding"
	Storage   Component = "storage"
)

// Degradation is one thing that was missing.
type Degradation struct {
	Component Component `json:"component"`
	Reason    string    `json:"reason"`
}

// candidates is how many memories each half of the search supplies at least.
const candidates = 100

// Retriever answers queries.
type Retriever struct {
	Parts
	options Options
	uses    *batch.Writer[vectorstore.Use]
}

// New returns a Retriever that works until Close.
func New(parts Parts, options Options) *Retriever {
	return &Retriever{Parts: parts, options: options, uses: batch.NewWriter(parts.Store.MarkUsed, batch.Options{
		Name: "use counts", Every: time.Second, Max: 10_000, Log: options.Log,
	})}
}

// Close writes the use counts that wait.
func (r *Retriever) Close() { r.uses.Close() }

// half is what one of the two searches answered.
type half struct {
	hits []vectorstore.Hit
	err  error
}

// Retrieve answers a query. It returns an error only when the caller gave up.
func (r *Retriever) Retrieve(ctx context.Context, q Query) (Result, error) {
	started := time.Now()
	budget, cancel := context.WithTimeout(ctx, r.options.Budget)
	defer cancel()

	var embedded atomic.Bool
	keyword, vector := r.search(budget, q, &embedded)
	settings := make(chan memory.Settings, 1)
	go func() {
		s, _ := r.Settings.Get(budget, q.Scope.User()) // an outage shows in the search; the defaults do
		settings <- s
	}()
	var byKeyword, byVector half
	byKeyword.err, byVector.err = errLate, errLate
	for range 2 {
		select {
		case byKeyword = <-keyword:
		case byVector = <-vector:
		case <-budget.Done():
			// What arrived in the last moment counts: select chooses at random.
			select {
			case byKeyword = <-keyword:
			case byVector = <-vector:
			default:
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if errors.Is(byVector.err, errLate) && !embedded.Load() {
		byVector.err = &embeddingError{errLate}
	}
	result := Result{TraceID: trace.NewID(), Degraded: r.degraded(byKeyword.err, byVector.err)}
	ranked := r.rank(byKeyword.hits, byVector.hits, started)
	result.Hits = cut(ranked, q)
	s := memory.Settings{}
	select {
	case s = <-settings:
	case <-budget.Done():
		// What is there counts, also when something else has spent the budget.
		select {
		case s = <-settings:
		default:
		}
	}
	result.PromptContext = r.options.Prompts.render(result.Hits, s, r.options.Location, q.MaxContextRunes)
	r.note(q, ranked, result, started)
	return result, nil
}

var errLate = errors.New("no answer within the budget")

// search starts both halves at once. Each answers on its channel, within the budget or not at all. embedded is set when the
// query is.
func (r *Retriever) search(ctx context.Context, q Query, embedded *atomic.Bool) (keyword, vector <-chan half) {
	limit := max(candidates, 5*q.TopK)
	user := q.Scope.User()
	k, v := make(chan half, 1), make(chan half, 1)
	go func() {
		hits, err := r.Store.SearchKeyword(ctx, user, q.Text, q.Filter, limit)
		k <- half{hits, err}
	}()
	go func() {
		vectors, err := r.Embedder.Embed(ctx, embed.ForQuery, []string{q.Text})
		if err != nil {
			v <- half{err: &embeddingError{err}}
			return
		}
		embedded.Store(true)
		hits, err := r.Store.SearchVector(ctx, user, r.Embedder.Fingerprint().String(), vectors[0], q.Filter, limit)
		v <- half{hits, err}
	}()
	return k, v
}

// embeddingError tells a failure to embed from one to search.
type embeddingError struct{ err error }

func (e *embeddingError) Error() string { return e.err.Error() }
func (e *embeddingError) Unwrap() error { return e.err }

// degraded says what was missing, given how the two halves failed.
func (r *Retriever) degraded(keyword, vector error) []Degradation {
	var missing []Degradation
	if problem := r.StorageProblem(); problem != "" {
		missing = append(missing, Degradation{Storage, problem})
	} else if keyword != nil {
		// The keyword half needs nothing but the store.
		missing = append(missing, Degradation{Storage, r.explain(keyword)})
	}
	var embedding *embeddingError
	switch {
	case vector == nil, len(missing) > 0 && !errors.As(vector, &embedding):
	default:
		missing = append(missing, Degradation{Embedding, r.explain(vector)})
	}
	return missing
}

// explain turns an error into words for a caller. What nobody expected is logged, not told.
func (r *Retriever) explain(err error) string {
	var transient *memory.TransientError
	var refused *memory.RefusedError
	switch {
	case errors.Is(err, errLate), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s (%s)", errLate, r.options.Budget)
	case errors.Is(err, memory.ErrUnavailable), errors.As(err, &transient), errors.As(err, &refused):
		return err.Error()
	}
	r.options.Log.Error("retrieving", "error", err)
	return "internal error"
}

// rank fuses the candidates of both halves. Either half alone is evidence of relevance, so they are combined as
// independent evidence is (noisy or), and a half that is missing takes nothing away from the other.
func (r *Retriever) rank(byKeyword, byVector []vectorstore.Hit, now time.Time) []Hit {
	ranked := make([]Hit, 0, len(byKeyword)+len(byVector))
	places := make(map[string]int, len(byKeyword)+len(byVector)) // of memories in ranked
	parts := func(m *memory.Memory) *ScoreParts {
		i, known := places[m.ID]
		if !known {
			i = len(ranked)
			places[m.ID] = i
			ranked = append(ranked, Hit{Memory: m})
		}
		return &ranked[i].Parts
	}
	for _, h := range byKeyword {
		parts(h.Memory).Keyword = h.Score
	}
	for _, h := range byVector {
		parts(h.Memory).Similarity = min(1, max(0, h.Score))
	}
	evidence := r.vectorEvidence()
	for i := range ranked {
		h := &ranked[i]
		p := &h.Parts
		p.Relevance = 1 - (1-p.Keyword)*(1-evidence(p.Similarity))
		p.Recency = r.recency(h.Memory, now)
		p.Importance = h.Memory.Importance
		h.Score = p.Relevance * (0.8 + 0.1*p.Recency + 0.1*p.Importance)
	}
	slices.SortFunc(ranked, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Memory.LastSaidAt.Compare(a.Memory.LastSaidAt),
			cmp.Compare(a.Memory.ID, b.Memory.ID))
	})
	return ranked
}

// How far a cosine similarity is evidence of relevance belongs to the embedder. Hashed n-grams repeat much of what the
// keywords say, and texts that have nothing in common still collide up to about localNoise.
const (
	localVectorWeight = 0.3
	localNoise        = 0.1
	modelVectorWeight = 0.8
)

// vectorEvidence turns a similarity into evidence, both 0 to 1.
func (r *Retriever) vectorEvidence() func(similarity float64) float64 {
	weight, noise := modelVectorWeight, 0.0
	if r.Embedder.Fingerprint().Provider == "local" {
		weight, noise = localVectorWeight, localNoise
	}
	if r.options.VectorWeight > 0 {
		weight = r.options.VectorWeight
	}
	return func(similarity float64) float64 { return weight * max(0, similarity-noise) / (1 - noise) }
}

// recency is 1 for what was said just now and halves with every half-life.
func (r *Retriever) recency(m *memory.Memory, now time.Time) float64 {
	age := max(0, now.Sub(m.LastSaidAt))
	return math.Exp2(-float64(age) / float64(r.options.RecencyHalfLife))
}

// cut keeps the best that are relevant enough.
func cut(ranked []Hit, q Query) []Hit {
	var kept []Hit
	for _, h := range ranked {
		if len(kept) == q.TopK {
			break
		}
		if h.Parts.Relevance > 0 && h.Parts.Relevance >= q.MinRelevance {
			kept = append(kept, h)
		}
	}
	return kept
}
