package server

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

var traceKinds = newNames(map[memsidecarv1.TraceKind]trace.Kind{
	memsidecarv1.TraceKind_TRACE_KIND_UNSPECIFIED: "",
	memsidecarv1.TraceKind_TRACE_KIND_RETRIEVE:    trace.KindRetrieve,
	memsidecarv1.TraceKind_TRACE_KIND_CONSIDER:    trace.KindConsider,
	memsidecarv1.TraceKind_TRACE_KIND_CONTEXT:     trace.KindContext,
})

// Traces reads recorded traces.
type Traces interface {
	Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (trace.Record, error)
	List(ctx context.Context, q trace.ListQuery) (records []trace.Record, next string, err error)
}

// traceService implements memsidecarv1.TraceServiceServer.
type traceService struct {
	memsidecarv1.UnimplementedTraceServiceServer
	Traces  Traces
	options Options
	// describe returns a session that the viewer may see, with its newest messages.
	describe func(ctx context.Context, viewer session.Viewer, id string, recent int) (*memsidecarv1.GetSessionResponse, error)
}

// GetTrace implements memsidecarv1.TraceServiceServer.
func (s *traceService) GetTrace(ctx context.Context, r *memsidecarv1.GetTraceRequest) (*memsidecarv1.GetTraceResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), false, &v)
	if r.GetTraceId() == "" {
		v.Add("trace_id", "is required")
	}
	v.Check("trace_id", memory.IDProblem(r.GetTraceId()))
	if err := v.Err(); err != nil {
		return nil, err
	}
	record, err := s.Traces.Get(ctx, scope.User(), r.GetTraceId(), s.options.audience(scope))
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.GetTraceResponse{Trace: fromTrace(record)}
	if r.GetIncludeSession() && record.Scope.SessionID != "" {
		resp.Session, err = s.describe(ctx, s.options.viewer(scope), record.Scope.SessionID, recentMessages)
		if errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrPrecondition) {
			err = nil // the trace exists nevertheless
		}
	}
	return resp, err
}

// ListTraces implements memsidecarv1.TraceServiceServer.
func (s *traceService) ListTraces(ctx context.Context, r *memsidecarv1.ListTracesRequest) (*memsidecarv1.ListTracesResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), false, &v)
	q := trace.ListQuery{
		User: scope.User(), Audience: s.options.audience(scope), SessionID: scope.SessionID, TurnID: r.GetTurnId(),
		From: toTime(r.GetAfterTime(), "after_time", &v), Before: toTime(r.GetBeforeTime(), "before_time", &v),
	}
	q.Limit, q.After = page(r, defaultPageSize, &v)
	v.Check("turn_id", memory.IDProblem(r.GetTurnId()))
	kind, ok := traceKinds.toDomain[r.GetKind()]
	if !ok {
		v.Add("kind", "is not a known kind")
	}
	q.Kind = kind
	if err := v.Err(); err != nil {
		return nil, err
	}
	records, next, err := s.Traces.List(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListTracesResponse{}
	for _, record := range records {
		resp.Traces = append(resp.Traces, fromTrace(record))
	}
	resp.NextPageToken = next
	return resp, nil
}

func fromTrace(r trace.Record) *memsidecarv1.Trace {
	p := &memsidecarv1.Trace{
		Id: r.ID, Kind: traceKinds.toProto[r.Kind()], Scope: fromScope(r.Scope), TurnId: r.TurnID, OtelTraceId: r.OTelTraceID,
		StartTime: fromTime(r.At), Duration: fromDuration(r.Duration), Error: r.Error, ToolCalls: fromToolCalls(r.ToolCalls),
	}
	p.Degraded = fromDegraded(r.Degraded)
	for _, c := range r.ModelCalls {
		p.ModelCalls = append(p.ModelCalls, &memsidecarv1.ModelCall{
			Part: c.Part, Model: c.Model, StartTime: fromTime(c.At), Latency: fromDuration(c.Latency),
			InputTokenCount: c.InputTokens, OutputTokenCount: c.OutputTokens, Error: c.Error,
		})
	}
	switch {
	case r.Retrieve != nil:
		p.Detail = &memsidecarv1.Trace_Retrieve{Retrieve: fromRetrieveDetail(r.Retrieve)}
	case r.Consider != nil:
		p.Detail = &memsidecarv1.Trace_Consider{Consider: &memsidecarv1.ConsiderTrace{
			ConsiderationId: r.Consider.ConsiderationID, Attempt: clamped(r.Consider.Attempt),
			MessageCount: clamped(r.Consider.Messages), State: states.toProto[r.Consider.State], Reason: r.Consider.Reason,
			DecidedBy: r.Consider.DecidedBy, Changes: fromChanges(r.Consider.Changes), Prompts: fromPrompts(r.Consider.Prompts),
		}}
	case r.Context != nil:
		p.Detail = &memsidecarv1.Trace_Context{Context: &memsidecarv1.ContextTrace{
			MaxMessages: clamped(r.Context.MaxMessages), MaxTurns: clamped(r.Context.MaxTurns), MaxChars: clamped(r.Context.MaxRunes),
			FirstPosition: r.Context.First, LastPosition: r.Context.Last, MessageCount: clamped(r.Context.Messages),
			DroppedCount: r.Context.Dropped, SummaryLastPosition: r.Context.SummaryLast,
		}}
	}
	return p
}

func fromRetrieveDetail(d *trace.RetrieveDetail) *memsidecarv1.RetrieveTrace {
	p := &memsidecarv1.RetrieveTrace{
		Query: d.Query, TopK: clamped(d.TopK), MinRelevance: d.MinRelevance, MemoryCount: clamped(d.Memories),
		MessageCount: clamped(d.Messages), ReadTime: fromTime(d.ReadTime),
	}
	for _, c := range d.Candidates {
		p.Candidates = append(p.Candidates, &memsidecarv1.TraceCandidate{
			MemoryId: c.MemoryID, SessionId: c.SessionID, Position: c.Position, Score: c.Score, Returned: c.Returned,
			Parts: &memsidecarv1.ScoreParts{
				Relevance: c.Relevance, Similarity: c.Similarity, Keyword: c.Keyword, Neighbors: c.Neighbors, Recency: c.Recency, Importance: c.Importance,
			},
		})
	}
	return p
}

func fromDegraded(missing []trace.Degradation) []*memsidecarv1.Degradation {
	var list []*memsidecarv1.Degradation
	for _, d := range missing {
		list = append(list, &memsidecarv1.Degradation{
			Component: components.toProto[retrieve.Component(d.Component)], Reason: d.Reason,
		})
	}
	return list
}

func fromPrompts(prompts []trace.Prompt) []*memsidecarv1.TracePrompt {
	var list []*memsidecarv1.TracePrompt
	for _, p := range prompts {
		list = append(list, &memsidecarv1.TracePrompt{
			Part: p.Part, Version: p.Version, KnownMemoryCount: clamped(p.Known), EarlierMessageCount: clamped(p.Earlier),
		})
	}
	return list
}
