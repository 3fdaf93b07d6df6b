package server

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// GetStatus implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) GetStatus(ctx context.Context, r *memsidecarv1.GetStatusRequest) (*memsidecarv1.GetStatusResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), false, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	resp := &memsidecarv1.GetStatusResponse{
		Version: s.options.Version, StartTime: fromTime(s.started),
		Embedding: &memsidecarv1.EmbeddingStatus{Fingerprint: s.options.Fingerprint},
	}
	for _, c := range s.Components() {
		resp.Components = append(resp.Components, &memsidecarv1.ComponentStatus{
			Name: c.Name, Implementation: c.Implementation, Breaker: c.Breaker, Reason: c.Reason, SinceTime: fromTime(c.Since),
		})
	}
	stats, err := s.Queue.Stats(ctx, scope.Namespace)
	switch {
	case errors.Is(err, memory.ErrUnavailable):
		return resp, nil // the storage component says why
	case err != nil:
		return nil, err
	}
	resp.Queue = &memsidecarv1.QueueStatus{
		PendingCount: stats.Pending, FailedCount: stats.Failed, OldestPendingTime: fromTime(stats.OldestPending),
	}
	return resp, nil
}
