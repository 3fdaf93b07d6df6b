package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const maxRequestIDBytes = 128

// ConsiderMemorizing implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ConsiderMemorizing(ctx context.Context, r *memsidecarv1.ConsiderMemorizingRequest) (*memsidecarv1.ConsiderMemorizingResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	wait := toDuration(r.GetWait(), "wait", &v)
	if wait < 0 {
		v.Add("wait", "is negative")
	}
	checkRequestID(r.GetRequestId(), &v)
	v.Check("turn_id", memory.IDProblem(r.GetTurnId()))
	if len(r.GetMessages()) == 0 && s.enabled(scope.Namespace) == nil {
		if err := v.Err(); err != nil {
			return nil, err
		}
		return s.considerSession(ctx, r, scope, wait)
	}
	d := memory.Dialogue{Scope: scope, Messages: s.options.toMessages(r.GetMessages(), &v)}
	payload, err := payloadHash(d)
	if err != nil {
		return nil, err
	}
	hashes, err := messageHashes(d.Messages)
	if err != nil {
		return nil, err
	}
	completeTimes(&d)
	v = append(v, d.Validate()...)
	if err := v.Err(); err != nil {
		return nil, err
	}
	completeSpeakers(&d) // not before: what is wrong with the scope is not the messages' fault
	request := decide.Request{Dialogue: d, RequestID: r.GetRequestId(), PayloadHash: payload, Wait: wait}
	if s.options.RecordConsidered && s.enabled(scope.Namespace) == nil {
		request.Accept = func(ctx context.Context, a queue.Acceptance) (memory.Consideration, error) {
			return s.Conversations.Record(ctx, session.RecordRequest{
				AppendRequest: session.AppendRequest{Scope: scope, Audience: s.options.audience(scope), Messages: d.Messages, Hashes: hashes},
				Acceptance:    a,
			})
		}
	}
	c, err := s.Considerer.Consider(ctx, request)
	resp := &memsidecarv1.ConsiderMemorizingResponse{}
	if refused, ok := errors.AsType[*session.RefusedError](err); ok && request.Accept != nil {
		// The session is none that this dialogue may be written to. The dialogue must not be lost for its label.
		resp.NotRecorded, resp.NotRecordedReason, request.Accept = refusals[refused.Refusal], err.Error(), nil
		c, err = s.Considerer.Consider(ctx, request)
	}
	if err != nil {
		return nil, err
	}
	resp.Consideration = fromConsideration(c)
	return resp, nil
}

// refusals are why a dialogue was not recorded, as the API names them.
var refusals = map[session.Refusal]memsidecarv1.NotRecorded{
	session.OtherChannel: memsidecarv1.NotRecorded_NOT_RECORDED_OTHER_CHANNEL,
	session.OtherUsers:   memsidecarv1.NotRecorded_NOT_RECORDED_OTHER_USERS,
	session.UserNeeded:   memsidecarv1.NotRecorded_NOT_RECORDED_OTHER_USERS, // a dialogue always names its user
}

// considerSession considers what waits in a session.
func (s *memoryService) considerSession(ctx context.Context, r *memsidecarv1.ConsiderMemorizingRequest, scope memory.Scope, wait time.Duration) (*memsidecarv1.ConsiderMemorizingResponse, error) {
	payload, err := payloadHash(scope)
	if err != nil {
		return nil, err
	}
	viewer := s.options.viewer(scope)
	if scope.SessionID == "" {
		if scope.SessionID, err = s.Sessions.Current(ctx, viewer); err != nil {
			return nil, err
		}
	}
	if scope.SessionID == "" {
		return nil, memory.Invalid("messages", "is required: hand over at least one message, or name a session whose messages wait")
	}
	found, err := s.Sessions.Get(ctx, viewer, scope.SessionID)
	if err != nil {
		return nil, err
	}
	if why := viewer.MayWrite(&found); why != "" {
		return nil, fmt.Errorf("%w: session %q cannot be considered from here: %s", memory.ErrPrecondition, scope.SessionID, why)
	}
	c, err := s.Considerer.ConsiderSession(ctx, decide.SessionRequest{
		Scope: scope, Ref: found.Ref, RequestID: r.GetRequestId(), PayloadHash: payload, Wait: wait,
	})
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.ConsiderMemorizingResponse{Consideration: fromConsideration(c)}, nil
}

func checkRequestID(id string, v *memory.Violations) {
	v.Check("request_id", memory.IDProblem(id))
	if len(id) > maxRequestIDBytes {
		v.Add("request_id", "is longer than %d bytes: use a random UUID", maxRequestIDBytes)
	}
}

// payloadHash is over what the caller sent, before anything is filled in. Two requests with the same id must agree in it.
func payloadHash(payload any) ([]byte, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return sum[:16], nil
}

// completeTimes fills in the times that messages leave out.
func completeTimes(d *memory.Dialogue) {
	now := time.Now().UTC().Truncate(time.Microsecond) // which any format keeps
	for i := range d.Messages {
		if d.Messages[i].Time.IsZero() {
			d.Messages[i].Time = now
		}
	}
}

// completeSpeakers fills in who spoke, in messages that leave it out.
func completeSpeakers(d *memory.Dialogue) {
	for i := range d.Messages {
		m := &d.Messages[i]
		if m.Role == memory.RoleUser && m.Speaker == "" {
			m.Speaker = d.Scope.UserID
		}
		if m.AgentID == "" {
			m.AgentID = d.Scope.AgentID
		}
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

// named checks a request that names one thing of a user.
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
