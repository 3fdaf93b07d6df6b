package server

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const maxRequestIDBytes = 128

// ConsiderMemorizing implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ConsiderMemorizing(
	ctx context.Context, r *memsidecarv1.ConsiderMemorizingRequest,
) (*memsidecarv1.ConsiderMemorizingResponse, error) {
	var v memory.Violations
	request := decide.Request{
		Dialogue:  memory.Dialogue{Scope: scopeOf(r.GetScope(), true, &v)},
		RequestID: r.GetRequestId(),
		Wait:      toDuration(r.GetWait(), "wait", &v),
	}
	if request.Wait < 0 {
		v.Add("wait", "is negative")
	}
	checkRequestID(r.GetRequestId(), &v)
	v.Check("turn_id", memory.IDProblem(r.GetTurnId()))
	if len(r.GetMessages()) > 0 {
		request.Dialogue.Messages = toMessages(r.GetMessages(), &v)
		v = append(v, request.Dialogue.Validate()...)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	accepted, err := s.Considerer.Consider(ctx, request)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ConsiderMemorizingResponse{Consideration: fromConsideration(accepted.Consideration)}
	if refused := accepted.NotRecorded; refused != nil {
		resp.NotRecorded, resp.NotRecordedReason = refusals[refused.Refusal], refused.Error()
	}
	return resp, nil
}

// refusals maps the session's reasons for not recording a dialogue.
var refusals = map[session.Refusal]memsidecarv1.NotRecorded{
	session.OtherChannel: memsidecarv1.NotRecorded_NOT_RECORDED_OTHER_CHANNEL,
	session.OtherUsers:   memsidecarv1.NotRecorded_NOT_RECORDED_OTHER_USERS,
	session.UserNeeded:   memsidecarv1.NotRecorded_NOT_RECORDED_OTHER_USERS, // cannot occur: a dialogue always names its user
}

func checkRequestID(id string, v *memory.Violations) {
	v.Check("request_id", memory.IDProblem(id))
	if len(id) > maxRequestIDBytes {
		v.Add("request_id", "is longer than %d bytes: use a random UUID", maxRequestIDBytes)
	}
}

// GetConsideration implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) GetConsideration(ctx context.Context, r *memsidecarv1.GetConsiderationRequest) (*memsidecarv1.GetConsiderationResponse, error) {
	scope, err := named(r.GetScope(), "consideration_id", r.GetConsiderationId())
	if err != nil {
		return nil, err
	}
	c, err := s.Queue.Get(ctx, scope.User(), r.GetConsiderationId(), s.options.audience(scope))
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.GetConsiderationResponse{Consideration: fromConsideration(c)}, nil
}

// named checks a request that names one resource of a user.
func named(p *memsidecarv1.Scope, field, id string) (memory.Scope, error) {
	var v memory.Violations
	scope := scopeOf(p, true, &v)
	if id == "" {
		v.Add(field, "is required")
	}
	v.Check(field, memory.IDProblem(id))
	return scope, v.Err()
}

// ListConsiderations implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ListConsiderations(ctx context.Context, r *memsidecarv1.ListConsiderationsRequest) (*memsidecarv1.ListConsiderationsResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	q := queue.ListQuery{Audience: s.options.audience(scope)}
	q.Limit, q.After = page(r, defaultPageSize, &v)
	for i, p := range r.GetStates() {
		state, ok := states.toDomain[p]
		if !ok {
			v.Add("states", "[%d] is not a known state", i)
		}
		q.States = append(q.States, state)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	jobs, next, err := s.Queue.List(ctx, scope.User(), q)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListConsiderationsResponse{}
	for _, job := range jobs {
		resp.Considerations = append(resp.Considerations, fromConsideration(job.Consideration))
	}
	resp.NextPageToken = next
	return resp, nil
}

// RetryConsideration implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) RetryConsideration(ctx context.Context, r *memsidecarv1.RetryConsiderationRequest) (*memsidecarv1.RetryConsiderationResponse, error) {
	scope, err := named(r.GetScope(), "consideration_id", r.GetConsiderationId())
	if err != nil {
		return nil, err
	}
	c, err := s.Considerer.Retry(ctx, scope.User(), r.GetConsiderationId(), s.options.audience(scope))
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.RetryConsiderationResponse{Consideration: fromConsideration(c)}, nil
}
