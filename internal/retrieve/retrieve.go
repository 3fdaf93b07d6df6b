// Package retrieve is the read path: from a query to the memories and the past messages that help to answer it, within a
// budget of time, and with what it has when something behind it is down.
package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Store is searched.
type Store interface {
	SearchVector(ctx context.Context, user memory.User, fingerprint string, vector []float32, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
	SearchKeyword(ctx context.Context, user memory.User, query string, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
	Standing(ctx context.Context, user memory.User, filter vectorstore.Filter) ([]*memory.Memory, error)
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

// Deps is what a Retriever works with.
type Deps struct {
	Store    Store
	Messages recall.Store // nil: no messages are found
	// Sessions reports whether a namespace has sessions, the source of messages. Optional.
	Sessions interface{ CheckEnabled(namespace string) error }
	Settings Settings
	Embedder embed.Embedder
	Traces   Traces
	Storage  memory.Storage // while it is unavailable, what is in memory is still searched
}

// Options describes a Retriever.
type Options struct {
	Budget time.Duration // for the whole of a call
	// VectorWeight is how far a cosine similarity of 1 is evidence of relevance, 0 to 1; 0 is what suits the embedder.
	VectorWeight float64
	// NeighborWeight is how much of its keyword score a good message gives the one after it in its session, 0 to 1.
	NeighborWeight  float64
	RecencyHalfLife time.Duration
	// StandingRunes limits the lines of standing memories in the prompt; 0: there are none in any answer.
	StandingRunes int
	// Contradicts reports whether a statement takes the place of an older one. Optional.
	Contradicts func(newer, older *memory.Memory) bool
	Prompts     Prompts
	Labels      map[string]string // what messages of agents and users are headed by in the prompt, by id
	Location    *time.Location    // for dates in the prompt, for users who set no time zone
	Now         func() time.Time  // the clock; by default time.Now
	Log         *slog.Logger
	// Answered is called after each answer with what was missing in it. Optional; it must not block.
	Answered func(missing []Degradation)
}

// Query asks for memories, for messages of the past, or for both.
type Query struct {
	Scope           memory.Scope
	Text            string
	Sources         []Source           // empty: memories
	Filter          vectorstore.Filter // for messages: the audience, the agent, and Created as the time they were said
	TopK            int                // of each source
	Neighbors       int                // messages around each message found
	MinRelevance    float64
	MaxContextRunes int
	ExcludeStanding bool // standing memories are hits like others
	// ReadTime is the present for recency, for expiry and for what was said: what was said later is not found. Zero: now. Of messages
	// the same holds for their neighbors.
	ReadTime time.Time
}

// at makes the filter that of the query's read time, if it has one, and returns the present of the query.
func (q *Query) at(now time.Time) time.Time {
	if q.ReadTime.IsZero() {
		return now
	}
	q.Filter.At = q.ReadTime
	until := q.ReadTime.Truncate(time.Microsecond).Add(time.Microsecond) // times are stored to the microsecond
	if before := q.Filter.Observed.Before; before.IsZero() || until.Before(before) {
		q.Filter.Observed.Before = until
	}
	return q.ReadTime
}

// Result is what was found, best first.
type Result struct {
	Standing      []*memory.Memory // what belongs in every answer; shared: it must not be modified
	Hits          []Hit            // other memories
	Messages      []MessageHit     // messages
	PromptContext string
	Degraded      []Degradation
	TraceID       string
}

// Hit is a memory, or a message of the past, with its score. What it points to is shared: it must not be modified.
type Hit struct {
	Memory  *memory.Memory   // nil for a message
	Message *session.Message // nil for a memory
	Score   float64
	Parts   ScoreBreakdown
}

// ScoreBreakdown is what a score is made of, each 0 to 1.
type ScoreBreakdown struct {
	Relevance, Similarity, Keyword, Neighbors, Recency, Importance float64
}

// Component names what can be missing while the rest answers.
type Component string

// The components.
const (
	Embedding Component = "embedding"
	Storage   Component = "storage"
)

// Cause is the kind of a degradation, for counting: there are few of them.
type Cause string

// The causes.
const (
	Late        Cause = "late"        // it was not there within the budget
	Unavailable Cause = "unavailable" // it is away, or fails for now
	Refused     Cause = "refused"     // it does not take this query
	Damaged     Cause = "damaged"     // what is stored of it cannot be read
	ReadOnly    Cause = "read_only"   // it answers, and what was said lately could not be stored
	Internal    Cause = "internal"    // a fault of this program, which the log tells
)

// Causes are all there are.
var Causes = []Cause{Late, Unavailable, Refused, Damaged, ReadOnly, Internal}

// Degradation is one thing that was missing.
type Degradation struct {
	Component Component
	Cause     Cause
	Reason    string // in words
}

// Retriever answers queries.
type Retriever struct {
	Deps
	options Options
	uses    *background.BatchWriter[vectorstore.Use]
}

// New returns a Retriever that works until Close.
func New(parts Deps, options Options) *Retriever {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Retriever{Deps: parts, options: options, uses: background.NewBatchWriter(parts.Store.MarkUsed, background.BatchOptions{
		Name: "use counts", Every: time.Second, Max: 10_000, Log: options.Log,
	})}
}

// Close writes the use counts that wait.
func (r *Retriever) Close() { r.uses.Close() }

// Retrieve answers a query. It returns an error only when the caller gave up, or asks for messages in a namespace without sessions.
func (r *Retriever) Retrieve(ctx context.Context, q Query) (Result, error) {
	if r.Sessions != nil && slices.Contains(q.Sources, Messages) {
		if err := r.Sessions.CheckEnabled(q.Scope.Namespace); err != nil {
			return Result{}, err
		}
	}
	ctx, recording := trace.Begin(ctx, q.Scope)
	started := recording.At()
	now := q.at(r.options.Now())
	budget, cancel := context.WithTimeout(ctx, r.options.Budget)
	defer cancel()

	settings := make(chan memory.Settings, 1)
	go func() {
		s, _ := r.Settings.Get(budget, q.Scope.User()) // an outage shows in the search; the defaults do
		settings <- s
	}()
	standing := make(chan standingAnswer, 1)
	go func() { standing <- r.readStanding(budget, q) }()
	searches, cancelSearches := r.searchBudget(budget, q, started)
	defer cancelSearches()
	found := r.search(searches, q)
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	result := Result{TraceID: recording.ID()}
	always := within(budget, standing, standingAnswer{err: errLate})
	result.Standing = always.memories
	memories, messages := r.rank(found, fromMemories, now), r.rank(found, fromMessages, now)
	memories = result.others(memories)
	result.Hits = cut(memories, q)
	messageHits := cut(messages, q)
	var problem error
	result.Messages, problem = r.withNeighbors(budget, q, messageHits)
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	result.Degraded = r.degraded(cmp.Or(found.err(byKeyword), problem, always.err), found.err(byVector))
	s := within(budget, settings, memory.Settings{})
	result.PromptContext = r.options.Prompts.render(result, q.Scope.UserID, r.options.Labels, s, r.options.Location, q.MaxContextRunes, now)
	if r.options.Answered != nil {
		r.options.Answered(result.Degraded)
	}
	r.note(q, slices.Concat(memories, messages), slices.Concat(result.Hits, messageHits), result.Degraded, recording)
	r.noteUse(q, result.Standing)
	return result, nil
}

// within waits for a value until the budget is spent, and then takes it only if it is ready.
func within[T any](budget context.Context, values <-chan T, otherwise T) T {
	select {
	case v := <-values:
		return v
	case <-budget.Done():
		select {
		case v := <-values:
			return v
		default:
			return otherwise
		}
	}
}

// degraded says what was missing, given how the two halves failed.
func (r *Retriever) degraded(keyword, vector error) []Degradation {
	var missing []Degradation
	if problem := r.Storage.Problem(); problem != "" {
		missing = append(missing, Degradation{Storage, Unavailable, problem})
	} else if keyword != nil {
		// The keyword half needs nothing but the store.
		missing = append(missing, r.explain(Storage, keyword))
	}
	var embedding *embeddingError
	switch {
	case vector == nil, len(missing) > 0 && !errors.As(vector, &embedding):
	default:
		missing = append(missing, r.explain(Embedding, vector))
	}
	if problem := r.Storage.WriteProblem(); problem != "" {
		missing = append(missing, Degradation{Storage, ReadOnly, problem})
	}
	return missing
}

// explain describes an error to a caller. Unexpected errors are logged and not described.
func (r *Retriever) explain(component Component, err error) Degradation {
	var transient *memory.TransientError
	var refused *memory.RefusedError
	switch {
	case errors.Is(err, errLate), errors.Is(err, context.DeadlineExceeded):
		return Degradation{component, Late, fmt.Sprintf("%s (%s)", errLate, r.options.Budget)}
	case errors.Is(err, memory.ErrUnavailable), errors.As(err, &transient):
		return Degradation{component, Unavailable, err.Error()}
	case errors.Is(err, memory.ErrDamaged):
		return Degradation{component, Damaged, err.Error()}
	case errors.As(err, &refused):
		return Degradation{component, Refused, err.Error()}
	}
	r.options.Log.Error("retrieving", "error", err)
	return Degradation{component, Internal, "internal error"}
}

// rank fuses the candidates of both halves. Either half alone is evidence of relevance, so they are combined as
// independent evidence is (noisy or), and a half that is missing takes nothing away from the other.
func (r *Retriever) rank(found searched, from origin, now time.Time) []Hit {
	keyword, vector := found[search{from, byKeyword}].hits, found[search{from, byVector}].hits
	ranked := make([]Hit, 0, len(keyword)+len(vector))
	places := make(map[hitKey]int, len(keyword)+len(vector)) // in ranked
	parts := func(h Hit) *ScoreBreakdown {
		i, known := places[keyOf(h)]
		if !known {
			i = len(ranked)
			places[keyOf(h)] = i
			ranked = append(ranked, h)
		}
		return &ranked[i].Parts
	}
	for _, s := range keyword {
		p := parts(s.Hit)
		p.Keyword, p.Neighbors = s.score, s.neighbors
	}
	for _, s := range vector {
		parts(s.Hit).Similarity = min(1, max(0, s.score))
	}
	evidence := r.vectorEvidence(from)
	for i := range ranked {
		h := &ranked[i]
		p := &h.Parts
		p.Relevance = 1 - (1-p.Keyword)*(1-p.Neighbors)*(1-evidence(p.Similarity))
		p.Recency = r.recency(h.saidAt(), now)
		p.Importance = h.importance()
		h.Score = p.Relevance * (0.8 + 0.1*p.Recency + 0.1*p.Importance)
	}
	slices.SortFunc(ranked, func(a, b Hit) int {
		// Not cmp.Or: two scores are hardly ever the same, and the rest costs more than they do.
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		return cmp.Or(b.saidAt().Compare(a.saidAt()), keyOf(a).compare(keyOf(b)))
	})
	return ranked
}

// saidAt is when the user last said it.
func (h *Hit) saidAt() time.Time {
	if h.Memory != nil {
		return h.Memory.LastSaidAt
	}
	return h.Message.Time
}

// messageImportance is the importance of every message.
const messageImportance = 0.5

func (h *Hit) importance() float64 {
	if h.Memory != nil {
		return h.Memory.Importance
	}
	return messageImportance
}

// compare orders what is otherwise equal, always in the same way.
func (k hitKey) compare(other hitKey) int {
	return cmp.Or(cmp.Compare(k.memory, other.memory), cmp.Compare(k.session, other.session), cmp.Compare(other.position, k.position))
}

// vectorEvidence turns a similarity into evidence, both 0 to 1.
func (r *Retriever) vectorEvidence(from origin) func(similarity float64) float64 {
	c := r.Embedder.Calibration()
	weight := c.MemoryWeight
	if from == fromMessages {
		weight = c.MessageWeight
	}
	if r.options.VectorWeight > 0 {
		weight = r.options.VectorWeight
	}
	return func(similarity float64) float64 { return weight * max(0, similarity-c.Noise) / (1 - c.Noise) }
}

// recency is 1 for a new memory and halves with every half-life.
func (r *Retriever) recency(saidAt, now time.Time) float64 {
	age := max(0, now.Sub(saidAt))
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
