package server

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

var revisionChanges = newNames(map[memsidecarv1.MemoryRevisionChange]vectorstore.Change{
	memsidecarv1.MemoryRevisionChange_MEMORY_REVISION_CHANGE_ADDED:      vectorstore.ChangeAdded,
	memsidecarv1.MemoryRevisionChange_MEMORY_REVISION_CHANGE_EDITED:     vectorstore.ChangeEdited,
	memsidecarv1.MemoryRevisionChange_MEMORY_REVISION_CHANGE_SUPERSEDED: vectorstore.ChangeSuperseded,
	memsidecarv1.MemoryRevisionChange_MEMORY_REVISION_CHANGE_WITHDRAWN:  vectorstore.ChangeWithdrawn,
	memsidecarv1.MemoryRevisionChange_MEMORY_REVISION_CHANGE_RELEASED:   vectorstore.ChangeReleased,
	memsidecarv1.MemoryRevisionChange_MEMORY_REVISION_CHANGE_REVERTED:   vectorstore.ChangeReverted,
})

func fromRevision(r *vectorstore.Revision, now time.Time) *memsidecarv1.MemoryRevision {
	p := &memsidecarv1.MemoryRevision{
		Id: r.ID, Change: revisionChanges.toProto[r.Change], Reason: r.Reason, ConsiderationId: r.ConsiderationID,
		CreateTime: fromTime(r.At), Reverted: r.Reverted,
	}
	if r.Memory.CreatedAt.IsZero() { // deleted in the meantime
		p.Memory = &memsidecarv1.Memory{Id: r.Memory.ID}
	} else {
		p.Memory = fromMemory(&r.Memory, now)
	}
	if r.Previous != nil {
		p.Previous = fromMemory(r.Previous, now)
	}
	return p
}

// ListMemoryRevisions implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ListMemoryRevisions(
	ctx context.Context,
	r *memsidecarv1.ListMemoryRevisionsRequest,
) (*memsidecarv1.ListMemoryRevisionsResponse, error) {
	scope, err := named(r.GetScope(), "memory_id", r.GetMemoryId())
	if err != nil {
		return nil, err
	}
	revisions, err := s.Store.Revisions(ctx, scope.User(), r.GetMemoryId(), s.options.audience(scope))
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListMemoryRevisionsResponse{}
	for i := range revisions {
		resp.Revisions = append(resp.Revisions, fromRevision(&revisions[i], s.options.Now()))
	}
	return resp, nil
}

// RevertMemory implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) RevertMemory(ctx context.Context, r *memsidecarv1.RevertMemoryRequest) (*memsidecarv1.RevertMemoryResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	if r.GetMemoryId() == "" {
		v.Add("memory_id", "is required")
	}
	v.Check("memory_id", memory.IDProblem(r.GetMemoryId()))
	v.Check("revision_id", memory.IDProblem(r.GetRevisionId()))
	if err := v.Err(); err != nil {
		return nil, err
	}
	m, undone, err := s.Memories.Revert(ctx, scope.User(), r.GetMemoryId(), r.GetRevisionId(), s.options.audience(scope))
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.RevertMemoryResponse{Memory: fromMemory(&m, s.options.Now()), Reverted: fromRevision(&undone, s.options.Now())}, nil
}

// ReleaseMemory implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ReleaseMemory(
	ctx context.Context,
	r *memsidecarv1.ReleaseMemoryRequest,
) (*memsidecarv1.ReleaseMemoryResponse, error) {
	scope, err := named(r.GetScope(), "memory_id", r.GetMemoryId())
	if err != nil {
		return nil, err
	}
	m, err := s.Memories.Release(ctx, scope.User(), r.GetMemoryId(), s.options.audience(scope))
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.ReleaseMemoryResponse{Memory: fromMemory(&m, s.options.Now())}, nil
}
