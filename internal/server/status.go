package server

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

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
		Embedding: s.embeddingStatus(),
	}
	for _, c := range s.Components() {
		resp.Components = append(resp.Components, &memsidecarv1.ComponentStatus{
			Name: c.Name, Implementation: c.Implementation, Breaker: c.Breaker, Reason: c.Reason, SinceTime: fromTime(c.Since),
			Remote: c.Remote, Choice: c.Choice,
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
	sums, err := s.Usage(ctx, scope.Namespace, time.Now())
	if err != nil && !errors.Is(err, memory.ErrUnavailable) {
		return nil, err
	}
	for _, u := range sums {
		resp.UsageToday = append(resp.UsageToday, &memsidecarv1.ModelUsage{
			Part: u.Part, Model: u.Model, CallCount: u.Calls, FailureCount: u.Failures, InputTokenCount: u.InputTokens,
			OutputTokenCount: u.OutputTokens, MeanLatency: durationpb.New(u.Latency / time.Duration(max(1, u.Calls))),
		})
	}
	return resp, nil
}

func (s *memoryService) embeddingStatus() *memsidecarv1.EmbeddingStatus {
	status := &memsidecarv1.EmbeddingStatus{Fingerprint: s.Fingerprint()}
	if p := s.Vectorizing(); p.Running || p.Refused > 0 {
		status.Progress = &memsidecarv1.EmbeddingProgress{
			TotalCount: p.Total, DoneCount: p.Done, RefusedCount: p.Refused, Problem: p.Problem,
		}
	}
	return status
}
