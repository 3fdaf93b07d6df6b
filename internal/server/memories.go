package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// MemoryDeps are the dependencies of the memory service.
type MemoryDeps struct {
	Considerer *decide.Considerer
	Queue      queue.Store // the considerations
	Retriever  *retrieve.Retriever
	Memories   *manage.Service
	Store      vectorstore.Store
	// Curve scores how likely a memory is to be kept.
	Curve retention.Curve
}

// memoryService implements memsidecarv1.MemoryServiceServer, in the files named after its calls.
type memoryService struct {
	memsidecarv1.UnimplementedMemoryServiceServer
	MemoryDeps
	options Options
}

// CreateMemory implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) CreateMemory(ctx context.Context, r *memsidecarv1.CreateMemoryRequest) (*memsidecarv1.CreateMemoryResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	d := manage.Draft{
		Text: r.GetMemory().GetText(), Kind: toKind(r.GetMemory().GetKind(), "memory.kind", &v),
		Importance: importance(r.GetMemory()), Standing: toStanding(r.GetMemory().GetStanding(), "memory.standing", &v),
		ObservedAt: toTime(r.GetMemory().GetObserveTime(), "memory.observe_time", &v), ForceNew: r.GetForceNew(),
	}
	checkRequestID(r.GetRequestId(), &v)
	m, merged, err := s.Memories.Create(ctx, scope, d, r.GetRequestId(), v)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.CreateMemoryResponse{Memory: fromMemory(&m, s.options.Now()), Merged: merged}, nil
}

// GetMemory implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) GetMemory(ctx context.Context, r *memsidecarv1.GetMemoryRequest) (*memsidecarv1.GetMemoryResponse, error) {
	scope, err := named(r.GetScope(), "memory_id", r.GetMemoryId())
	if err != nil {
		return nil, err
	}
	m, err := s.Memories.Get(ctx, scope.User(), r.GetMemoryId(), s.options.audience(scope))
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.GetMemoryResponse{Memory: s.withRetention(&m, s.options.Now())}, nil
}

// ListMemories implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ListMemories(ctx context.Context, r *memsidecarv1.ListMemoriesRequest) (*memsidecarv1.ListMemoriesResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	q := vectorstore.ListQuery{Filter: vectorstore.Filter{Audience: s.options.audience(scope)}}
	q.Limit, q.After = page(r, defaultPageSize, &v)
	if err := parseFilter(r.GetFilter(), &q.Filter, &v); err != nil {
		return nil, err
	}
	q.Filter.Standing = r.GetStanding()
	q.Filter.Statuses = listed(r.GetStates(), q.Filter.Statuses, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, err := s.Store.List(ctx, scope.User(), q)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListMemoriesResponse{}
	now := s.options.Now()
	for i := range found.Memories {
		resp.Memories = append(resp.Memories, s.withRetention(&found.Memories[i], now))
	}
	resp.NextPageToken = found.Next
	return resp, nil
}

// withRetention converts a memory and adds its retention score.
func (s *memoryService) withRetention(m *memory.Memory, now time.Time) *memsidecarv1.Memory {
	p := fromMemory(m, now)
	p.Retention = new(s.Curve.Score(m, now))
	return p
}

// listed returns the states that a list includes, from the request's states and those in its filter.
func listed(named []memsidecarv1.MemoryState, filtered []memory.Status, v *memory.Violations) []memory.Status {
	var statuses []memory.Status
	for i, p := range named {
		status, ok := memoryStates.toDomain[p]
		if !ok {
			v.Add(fmt.Sprintf("states[%d]", i), "is not a known state")
		}
		statuses = append(statuses, status)
	}
	switch {
	case len(filtered) == 0 && len(statuses) == 0:
		return []memory.Status{memory.StatusActive, memory.StatusExpired, memory.StatusQuarantined}
	case len(filtered) == 0:
		return statuses
	case len(statuses) > 0 && !slices.Contains(statuses, filtered[0]):
		v.Add("filter", "names a state that is not in states: remove one of the two")
	}
	return filtered
}

// UpdateMemory implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) UpdateMemory(ctx context.Context, r *memsidecarv1.UpdateMemoryRequest) (*memsidecarv1.UpdateMemoryResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	p := r.GetMemory()
	if p.GetId() == "" {
		v.Add("memory.id", "is required")
	}
	v.Check("memory.id", memory.IDProblem(p.GetId()))
	var edit manage.Edit
	for _, field := range maskedFields(r.GetUpdateMask(), p, []string{"text", "kind", "importance", "standing"}, "memory", &v) {
		switch field {
		case "text":
			edit.Text = new(p.GetText())
		case "kind":
			edit.Kind = new(toKind(p.GetKind(), "memory.kind", &v))
		case "importance":
			edit.Importance = new(importance(p))
		case "standing":
			edit.Standing = new(toStanding(p.GetStanding(), "memory.standing", &v))
		}
	}
	m, err := s.Memories.Update(ctx, scope.User(), p.GetId(), s.options.audience(scope), edit, v)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.UpdateMemoryResponse{Memory: fromMemory(&m, s.options.Now())}, nil
}

// DeleteMemory implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) DeleteMemory(ctx context.Context, r *memsidecarv1.DeleteMemoryRequest) (*memsidecarv1.DeleteMemoryResponse, error) {
	scope, err := named(r.GetScope(), "memory_id", r.GetMemoryId())
	if err != nil {
		return nil, err
	}
	if err := s.Memories.Delete(ctx, scope.User(), r.GetMemoryId(), s.options.audience(scope)); err != nil {
		return nil, err
	}
	return &memsidecarv1.DeleteMemoryResponse{}, nil
}

// ImportMemories implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ImportMemories(stream grpc.ClientStreamingServer[memsidecarv1.ImportMemoriesRequest, memsidecarv1.ImportMemoriesResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) || err == nil && first.GetScope() == nil {
		return memory.Invalid("scope", "is required in the first message of the stream")
	}
	if err != nil {
		return err
	}
	var v memory.Violations
	scope := scopeOf(first.GetScope(), true, &v)
	if err := v.Err(); err != nil {
		return err
	}
	importer := s.Memories.Import(scope)
	for i := 0; ; i++ {
		item, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, importer.Flush(ctx))
		}
		at := fmt.Sprintf("memory[%d]", i)
		if item.GetMemory() == nil {
			err := memory.Invalid(at, "is missing: each message after the first must have a memory")
			return errors.Join(err, importer.Flush(ctx))
		}
		var v memory.Violations
		m := toMemory(item.GetMemory(), at, &v)
		if err := importer.Add(ctx, m, v); err != nil {
			return err
		}
	}
	if err := importer.Flush(ctx); err != nil {
		return err
	}
	return stream.SendAndClose(&memsidecarv1.ImportMemoriesResponse{AddedCount: importer.Added, SkippedCount: importer.Skipped})
}
