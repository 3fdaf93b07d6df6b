package retrieve

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/observe/span"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// candidates is how many memories, and messages, each half of the search supplies at least.
const candidates = 100

// origin is what is searched, half how.
type (
	origin int
	half   int
)

const (
	fromMemories origin = iota
	fromMessages
)

const (
	byKeyword half = iota
	byVector
)

// search is one of the searches that a query needs.
type search struct {
	origin
	half
}

// names are the searches' in spans.
var names = map[search]string{
	{fromMemories, byKeyword}: "memories by keyword", {fromMemories, byVector}: "memories by vector",
	{fromMessages, byKeyword}: "messages by keyword", {fromMessages, byVector}: "messages by vector",
}

// scored is what a search found, with the search's own score.
type scored struct {
	Hit
	score     float64
	neighbors float64 // what those around a message give it
}

// outcome is what a search answered.
type outcome struct {
	hits []scored
	err  error
}

// searched are all searches of a query.
type searched map[search]outcome

// err says how a half failed: that the query could not be embedded says more than that its vector found nothing.
func (s searched) err(of half) (first error) {
	for _, from := range []origin{fromMemories, fromMessages} {
		err := s[search{from, of}].err
		var embedding *embeddingError
		if first == nil || errors.As(err, &embedding) {
			first = err
		}
	}
	return first
}

var errLate = errors.New("no answer within the budget")

// embeddingError tells a failure to embed from one to search.
type embeddingError struct{ err error }

func (e *embeddingError) Error() string { return e.err.Error() }
func (e *embeddingError) Unwrap() error { return e.err }

// neighborsTime is the part of the budget that is reserved for reading the messages around hits. It is fast, but the last step.
const neighborsTime = 0.05

// searchBudget ends the searches.
func (r *Retriever) searchBudget(ctx context.Context, q Query, started time.Time) (context.Context, context.CancelFunc) {
	budget := r.options.Budget
	if q.Neighbors > 0 && slices.Contains(r.sources(q), fromMessages) {
		budget -= time.Duration(neighborsTime * float64(budget))
	}
	return context.WithDeadline(ctx, started.Add(budget))
}

// sources are the origins that a query asks for.
func (r *Retriever) sources(q Query) (from []origin) {
	if len(q.Sources) == 0 {
		return []origin{fromMemories}
	}
	for _, source := range q.Sources {
		switch {
		case source == Memories:
			from = append(from, fromMemories)
		case source == Messages && r.Messages != nil:
			from = append(from, fromMessages)
		}
	}
	return from
}

// search does all searches at once and waits for them within the budget.
func (r *Retriever) search(ctx context.Context, q Query) searched {
	type answer struct {
		search
		outcome
	}
	found := searched{}
	answers := make(chan answer, 4) // nobody waits for late ones
	limit := max(candidates, 5*q.TopK)
	var embedded atomic.Bool
	vector := make(chan struct{}) // closed when the query has a vector, or none
	var vectors [][]float32
	var problem error
	go func() {
		defer close(vector)
		ctx, end := span.Start(ctx, "embed query")
		defer func() { end(problem) }()
		if vectors, problem = r.Embedder.Embed(ctx, embed.ForQuery, []string{q.Text}); problem == nil {
			embedded.Store(true)
		}
	}()
	for _, from := range r.sources(q) {
		for _, half := range []half{byKeyword, byVector} {
			search := search{from, half}
			found[search] = outcome{err: errLate}
			go func() {
				var a outcome
				ctx, end := span.Start(ctx, "search "+names[search])
				defer func() { end(a.err) }()
				if half == byKeyword {
					a.hits, a.err = r.searchKeyword(ctx, q, from, limit)
				} else if <-vector; problem != nil {
					a.err = &embeddingError{problem}
				} else {
					a.hits, a.err = r.searchVector(ctx, q, from, vectors[0], limit)
				}
				answers <- answer{search, a}
			}()
		}
	}
	for range len(found) {
		select {
		case a := <-answers:
			found[a.search] = a.outcome
		case <-ctx.Done():
			// What arrived in the last moment counts: select chooses at random.
			select {
			case a := <-answers:
				found[a.search] = a.outcome
			default:
			}
		}
	}
	for search, a := range found {
		if search.half == byVector && errors.Is(a.err, errLate) && !embedded.Load() {
			found[search] = outcome{err: &embeddingError{errLate}}
		}
	}
	return found
}

func (r *Retriever) searchKeyword(ctx context.Context, q Query, from origin, limit int) ([]scored, error) {
	if from == fromMemories {
		hits, err := r.Store.SearchKeyword(ctx, q.Scope.User(), q.Text, q.Filter, limit)
		return ofMemories(hits, q.ReadTime), err
	}
	asked := messageQuery(q, limit)
	asked.NeighborWeight = r.options.NeighborWeight
	hits, err := r.Messages.SearchKeyword(ctx, asked, q.Text)
	return ofMessages(hits), err
}

func (r *Retriever) searchVector(ctx context.Context, q Query, from origin, vector []float32, limit int) ([]scored, error) {
	fingerprint := r.Embedder.Fingerprint().String()
	if from == fromMemories {
		hits, err := r.Store.SearchVector(ctx, q.Scope.User(), fingerprint, vector, q.Filter, limit)
		return ofMemories(hits, q.ReadTime), err
	}
	hits, err := r.Messages.SearchVector(ctx, messageQuery(q, limit), fingerprint, vector)
	return ofMessages(hits), err
}

// ofMemories are hits with their memories as of a time; zero is now.
func ofMemories(hits []vectorstore.Hit, at time.Time) []scored {
	list := make([]scored, len(hits))
	for i, h := range hits {
		m := h.Memory
		if !at.IsZero() {
			m = m.AsOf(at)
		}
		list[i] = scored{Hit: Hit{Memory: m}, score: h.Score}
	}
	return list
}

func ofMessages(hits []recall.Hit) []scored {
	list := make([]scored, len(hits))
	for i := range hits {
		list[i] = scored{Hit{Message: &hits[i].Message}, hits[i].Score, hits[i].Neighbors}
	}
	return list
}

// messageQuery is a query as the search for messages takes it.
func messageQuery(q Query, limit int) recall.Query {
	return recall.Query{User: q.Scope.User(), Limit: limit, Filter: recall.Filter{
		Audience: q.Filter.Audience, AgentID: q.Filter.AgentID, SaidFrom: q.Filter.Created.From, SaidBefore: q.Filter.Created.Before,
		SaidUntil: q.ReadTime,
	}}
}

// withNeighbors reads the messages around the hits. If it cannot, it returns the hits alone.
func (r *Retriever) withNeighbors(ctx context.Context, q Query, hits []Hit) ([]MessageHit, error) {
	var found []MessageHit
	for _, h := range hits {
		found = append(found, MessageHit{Message: *h.Message, Score: h.Score, Parts: h.Parts})
	}
	if len(found) == 0 {
		return found, nil
	}
	of := make([]session.Message, len(found))
	for i := range found {
		of[i] = found[i].Message
	}
	type answer struct {
		neighbors []recall.Neighbors
		err       error
	}
	answers := make(chan answer, 1)
	go func() {
		neighbors, err := r.Messages.Neighbors(ctx, messageQuery(q, 0), of, q.Neighbors)
		answers <- answer{neighbors, err}
	}()
	a := answer{err: errLate}
	select {
	case a = <-answers:
	case <-ctx.Done():
		select {
		case a = <-answers:
		default:
		}
	}
	if a.err != nil {
		return found, a.err
	}
	for i, n := range a.neighbors {
		found[i].Before, found[i].After, found[i].Later = n.Before, n.After, n.Later
	}
	return found, nil
}
