package server

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// GetStatus implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) GetStatus(ctx context.Context, r *memsidecarv1.GetStatusRequest) (*memsidecarv1.GetStatusResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), false, &v)
	if days := r.GetUsageDays(); days < 0 || days > maxUsageDays {
		v.Add("usage_days", "is not between 0 and %d", maxUsageDays)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	resp := &memsidecarv1.GetStatusResponse{
		Version: s.options.Version, StartTime: fromTime(s.started),
		Embedding: s.embeddingStatus(ctx), PurgeWaitingSince: fromTime(s.PurgeWaiting()),
		Process: fromProcess(s.Process()), QueueTotal: s.queueTotal(ctx),
	}
	parts := s.Components()
	for _, c := range parts {
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
	full, err := s.FullUsers(ctx, scope.Namespace)
	switch {
	case errors.Is(err, memory.ErrUnavailable):
		return resp, nil
	case err != nil:
		return nil, err
	}
	resp.MemoryLimit = &memsidecarv1.MemoryLimit{MaxPerUser: clamped(s.options.MaxPerUser), FullUserCount: full}
	if err := s.quotas(ctx, scope.User(), resp); err != nil && !errors.Is(err, memory.ErrUnavailable) {
		return nil, err
	}
	note, err := s.cost(ctx, scope, int(r.GetUsageDays()), resp)
	if err != nil && !errors.Is(err, memory.ErrUnavailable) {
		return nil, err
	}
	for i, c := range parts {
		if c.Budgeted {
			resp.Components[i].Fallback = note
		}
	}
	return resp, nil
}

// quotas adds to a status how the quotas of a namespace and its user stand.
func (s *memoryService) quotas(ctx context.Context, user memory.User, resp *memsidecarv1.GetStatusResponse) error {
	standings, err := s.Quotas(ctx, user)
	for _, q := range standings {
		resp.Quotas = append(resp.Quotas, &memsidecarv1.Quota{Key: "limits." + string(q.Quota), UserId: q.UserID, Limit: q.Limit, Used: q.Used})
	}
	return err
}

// embeddingStatus tells how many memories there are to embed, in all namespaces together, only those whom that concerns.
func (s *memoryService) embeddingStatus(ctx context.Context) *memsidecarv1.EmbeddingStatus {
	status := &memsidecarv1.EmbeddingStatus{Fingerprint: s.Fingerprint()}
	if !operates(ctx) {
		return status
	}
	if p := s.Vectorizing(); p.Running || p.Refused > 0 {
		status.Progress = &memsidecarv1.EmbeddingProgress{
			TotalCount: p.Total, DoneCount: p.Done, RefusedCount: p.Refused, Problem: p.Problem,
		}
	}
	return status
}

// Waiting is what waits in the queue, or runs, in all namespaces.
type Waiting struct {
	Considerations, Bytes int64
	Counted               bool // false: that is not known
}

// queueTotal tells what waits in all namespaces together, only those whom that concerns.
func (s *memoryService) queueTotal(ctx context.Context) *memsidecarv1.QueueTotal {
	w := s.Waiting()
	if !w.Counted || !operates(ctx) {
		return nil
	}
	return &memsidecarv1.QueueTotal{
		PendingCount: w.Considerations, MaxPendingCount: s.options.MaxPending, PendingBytes: w.Bytes, MaxPendingBytes: s.options.MaxPendingBytes,
	}
}

// operates is whether what concerns the sidecar as a whole is for the caller to know.
func operates(ctx context.Context) bool {
	grant, _ := access.GrantOf(ctx)
	return grant.Level >= access.Admin
}

// Process is what the sidecar's process takes of its machine; 0 is unknown.
type Process struct {
	ResidentBytes, LiveHeapBytes int64
	Goroutines, OpenFiles        int
	CPUTime                      time.Duration
}

func fromProcess(p Process) *memsidecarv1.ProcessStatus {
	return &memsidecarv1.ProcessStatus{
		ResidentBytes: p.ResidentBytes, LiveHeapBytes: p.LiveHeapBytes, GoroutineCount: clamped(p.Goroutines),
		OpenFileCount: clamped(p.OpenFiles), CpuTime: durationpb.New(p.CPUTime),
	}
}
