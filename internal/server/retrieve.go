package server

import (
	"context"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Limits of RetrieveRequest.
const (
	maxQueryRunes      = 32_000
	maxTopK            = 100
	minContextChars    = 200
	maxMaxContextChars = 100_000
	usualNeighbors     = 1
	maxNeighbors       = 20
)

var retrieveSources = newNames(map[memsidecarv1.RetrieveSource]retrieve.Source{
	memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MEMORIES: retrieve.Memories,
	memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES: retrieve.Messages,
})

var components = newNames(map[memsidecarv1.DegradedComponent]retrieve.Component{
	memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_EMBEDDING: retrieve.Embedding,
	memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_STORAGE:   retrieve.Storage,
	memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_DECISION:  "decision", // in traces of considerations
	memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_SUMMARY:   "summary",
	memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_RECONCILE: "reconcile",
})

// Retrieve implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) Retrieve(ctx context.Context, r *memsidecarv1.RetrieveRequest) (*memsidecarv1.RetrieveResponse, error) {
	q, err := s.query(r)
	if err != nil {
		return nil, err
	}
	result, err := s.Retriever.Retrieve(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.RetrieveResponse{PromptContext: result.PromptContext, TraceId: result.TraceID}
	now := q.ReadTime
	if now.IsZero() {
		now = s.options.Now()
	}
	for _, m := range result.Standing {
		resp.Standing = append(resp.Standing, fromMemory(m, now))
	}
	for _, h := range result.Hits {
		resp.Memories = append(resp.Memories, &memsidecarv1.RetrievedMemory{
			Memory: fromMemory(h.Memory, now), Score: h.Score,
			Parts: fromParts(h.Parts),
		})
	}
	for _, m := range result.Messages {
		found := &memsidecarv1.RetrievedMessage{
			Message: fromSessionMessage(&m.Message), Score: m.Score, Parts: fromParts(m.Parts),
			Before: fromSessionMessages(m.Before), After: fromSessionMessages(m.After),
		}
		if m.Later != nil {
			found.SupersededById, found.SupersededByText = m.Later.MemoryID, m.Later.Text
		}
		resp.Messages = append(resp.Messages, found)
	}
	for _, d := range result.Degraded {
		resp.Degraded = append(resp.Degraded, &memsidecarv1.Degradation{Component: components.toProto[d.Component], Reason: d.Reason})
	}
	return resp, nil
}

func fromParts(p retrieve.ScoreBreakdown) *memsidecarv1.ScoreParts {
	return &memsidecarv1.ScoreParts{
		Relevance: p.Relevance, Similarity: p.Similarity, Keyword: p.Keyword, Neighbors: p.Neighbors, Recency: p.Recency, Importance: p.Importance,
	}
}

// query converts and checks the request, and fills in the defaults.
func (s *memoryService) query(r *memsidecarv1.RetrieveRequest) (retrieve.Query, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	q := retrieve.Query{
		Scope: scope, Text: r.GetQuery(), TopK: s.options.TopK, MinRelevance: s.options.MinRelevance,
		ExcludeStanding: r.GetExcludeStanding(), MaxContextRunes: s.options.MaxContextChars, ReadTime: toTime(r.GetReadTime(), "read_time", &v),
		Filter: vectorstore.Filter{Audience: s.options.audience(scope), Created: vectorstore.Period{
			From: toTime(r.GetCreatedAfterTime(), "created_after_time", &v), Before: toTime(r.GetCreatedBeforeTime(), "created_before_time", &v),
		}},
	}
	switch n := utf8.RuneCountInString(q.Text); {
	case n == 0:
		v.Add("query", "is required: send the user's latest message")
	case n > maxQueryRunes:
		v.Add("query", "is %d characters, more than %d", n, maxQueryRunes)
	}
	if r.TopK != nil {
		q.TopK = int(r.GetTopK())
		if q.TopK < 1 || q.TopK > maxTopK {
			v.Add("top_k", "is not between 1 and %d", maxTopK)
		}
	}
	if r.MinRelevance != nil {
		q.MinRelevance = r.GetMinRelevance()
		if !(q.MinRelevance >= 0 && q.MinRelevance <= 1) { // NaN included
			v.Add("min_relevance", "is not between 0 and 1")
		}
	}
	if r.MaxContextChars != nil {
		q.MaxContextRunes = int(r.GetMaxContextChars())
		if q.MaxContextRunes < minContextChars || q.MaxContextRunes > maxMaxContextChars {
			v.Add("max_context_chars", "is not between %d and %d", minContextChars, maxMaxContextChars)
		}
	}
	q.Neighbors = limit(r.NeighborCount != nil, r.GetNeighborCount(), usualNeighbors, 0, maxNeighbors, "neighbor_count", &v)
	v.Check("turn_id", memory.IDProblem(r.GetTurnId()))
	for i, p := range r.GetSources() {
		source, ok := retrieveSources.toDomain[p]
		if !ok {
			v.Add("sources", "[%d] is not a known source", i)
		}
		q.Sources = append(q.Sources, source)
	}
	for i, p := range r.GetKinds() {
		kind, ok := kinds.toDomain[p]
		if !ok {
			v.Add("kinds", "[%d] is not a known kind", i)
		}
		q.Filter.Kinds = append(q.Filter.Kinds, kind)
	}
	if r.GetIncludeHistory() {
		q.Filter.Statuses = []memory.Status{memory.StatusActive, memory.StatusSuperseded, memory.StatusExpired}
	}
	q.Filter.AgentID = s.options.learnedBy(r.GetAgent(), scope, &v)
	return q, v.Err()
}
