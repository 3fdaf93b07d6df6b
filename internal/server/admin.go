package server

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/manage/audit"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/vectorstore/backfill"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// AdminDeps are the dependencies of the administration service.
type AdminDeps struct {
	Status  Status
	Queue   queue.Store
	Auditor *audit.Auditor
	Prices  usage.Prices // of models
}

// Status reports the state of the sidecar. Its reads from storage fail with memory.ErrUnavailable while storage is unavailable.
type Status interface {
	// Components reports on storage and on each model.
	Components() []Component
	// Process reports the resources that the process uses.
	Process() Process
	// Pending reports what is pending in the queue, in all namespaces.
	Pending() Pending
	// PurgePendingSince returns when deleted data began to wait for its removal from the files, or the zero time when none is pending.
	PurgePendingSince() time.Time
	// Fingerprint returns the fingerprint of the current embedder, or "" until it is known.
	Fingerprint() string
	// Vectorizing reports the progress of the background embedding.
	Vectorizing() backfill.Progress
	// Usage returns what model calls have cost since a day, newest day first.
	Usage(ctx context.Context, namespace string, since time.Time) ([]usage.Sum, error)
	// FullUsers counts the users of a namespace whose explicit memories have reached the limit.
	FullUsers(ctx context.Context, namespace string) (int64, error)
	// Budgets returns the state of the token budgets of a namespace, and of the user if one is given. The namespace comes first.
	Budgets(ctx context.Context, user memory.User) ([]budget.Standing, error)
	// Quotas returns the state of the quotas of a namespace, and of the user if one is given.
	Quotas(ctx context.Context, user memory.User) ([]memory.Standing, error)
}

// Component is the state of storage or of a model.
type Component struct {
	Name, Implementation string
	Breaker              breaker.Status // has no State when there is no breaker
	Remote               bool           // texts are sent to another machine
	Choice               string         // why this implementation was chosen
	Budgeted             bool           // rules replace the model when a token budget is used up
}

var breakerStates = map[breaker.State]memsidecarv1.BreakerState{
	breaker.Closed:   memsidecarv1.BreakerState_BREAKER_STATE_CLOSED,
	breaker.Open:     memsidecarv1.BreakerState_BREAKER_STATE_OPEN,
	breaker.HalfOpen: memsidecarv1.BreakerState_BREAKER_STATE_HALF_OPEN,
}

// adminService implements memsidecarv1.AdminServiceServer.
type adminService struct {
	memsidecarv1.UnimplementedAdminServiceServer
	AdminDeps
	options Options
	started time.Time
}

// GetStatus implements memsidecarv1.AdminServiceServer. While storage is unavailable it returns what it can without storage.
func (s *adminService) GetStatus(ctx context.Context, r *memsidecarv1.GetStatusRequest) (*memsidecarv1.GetStatusResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), false, &v)
	if days := r.GetUsageDays(); days < 0 || days > maxUsageDays {
		v.Add("usage_days", "is not between 0 and %d", maxUsageDays)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	resp := &memsidecarv1.GetStatusResponse{
		Process: s.processStatus(),
		Storage: &memsidecarv1.StorageStatus{PurgePendingSinceTime: fromTime(s.Status.PurgePendingSince())},
		Models:  s.modelsStatus(ctx),
	}
	byBudget := map[*memsidecarv1.ComponentStatus]bool{} // these components fall back to rules when a token budget is used up
	for _, c := range s.Status.Components() {
		status := &memsidecarv1.ComponentStatus{
			Name: c.Name, Implementation: c.Implementation, Breaker: breakerStates[c.Breaker.State], Reason: c.Breaker.Reason,
			SinceTime: fromTime(c.Breaker.Since), Remote: c.Remote, Choice: c.Choice,
		}
		byBudget[status] = c.Budgeted
		if c.Name == storageComponent {
			resp.Storage.Component = status
			continue
		}
		resp.Models.Components = append(resp.Models.Components, status)
	}
	fallback, err := s.stored(ctx, scope, int(r.GetUsageDays()), resp)
	if err != nil && !errors.Is(err, memory.ErrUnavailable) { // the storage component says why it is unavailable
		return nil, err
	}
	for _, c := range resp.GetModels().GetComponents() {
		if byBudget[c] {
			c.Fallback = fallback
		}
	}
	return resp, nil
}

// storageComponent is the name of the component that is not a model.
const storageComponent = "storage"

// stored adds what storage reports to the response, as far as storage can be read. fallback describes the work that rules did because a
// token budget was used up, or is "".
func (s *adminService) stored(ctx context.Context, scope memory.Scope, days int, resp *memsidecarv1.GetStatusResponse) (fallback string, err error) {
	stats, err := s.Queue.Stats(ctx, scope.Namespace)
	if err != nil {
		return "", err
	}
	resp.Queue = &memsidecarv1.QueueStatus{
		PendingCount: stats.Pending, FailedCount: stats.Failed, OldestPendingTime: fromTime(stats.OldestPending),
		Total: s.queueTotal(ctx),
	}
	full, err := s.Status.FullUsers(ctx, scope.Namespace)
	if err != nil {
		return "", err
	}
	resp.Memories = &memsidecarv1.MemoriesStatus{MaxPerUser: clamped(s.options.MaxPerUser), FullUserCount: full}
	standings, err := s.Status.Quotas(ctx, scope.User())
	for _, q := range standings {
		resp.Quotas = append(resp.Quotas, &memsidecarv1.Quota{
			Key: "limits." + string(q.Quota), UserId: q.UserID, Limit: q.Limit, Used: q.Used,
		})
	}
	if err != nil {
		return "", err
	}
	resp.Usage, fallback, err = s.usage(ctx, scope, days)
	return fallback, err
}

// modelsStatus returns how many memories of all namespaces are still to be embedded. Callers without admin access get nil.
func (s *adminService) modelsStatus(ctx context.Context) *memsidecarv1.ModelsStatus {
	status := &memsidecarv1.ModelsStatus{EmbeddingFingerprint: s.Status.Fingerprint()}
	if !seesWholeSidecar(ctx) {
		return status
	}
	if p := s.Status.Vectorizing(); p.Running || p.Refused > 0 {
		status.EmbeddingProgress = &memsidecarv1.EmbeddingProgress{
			TotalCount: p.Total, DoneCount: p.Done, RefusedCount: p.Refused, Problem: p.Problem,
		}
	}
	return status
}

// Pending is what is pending or running in the queue, in all namespaces.
type Pending struct {
	Considerations, Bytes int64
	Counted               bool // false: the figures are unknown
}

// queueTotal returns what is pending in all namespaces. Callers without admin access get nil.
func (s *adminService) queueTotal(ctx context.Context) *memsidecarv1.QueueTotal {
	p := s.Status.Pending()
	if !p.Counted || !seesWholeSidecar(ctx) {
		return nil
	}
	return &memsidecarv1.QueueTotal{
		PendingCount: p.Considerations, MaxPendingCount: s.options.MaxPending, PendingBytes: p.Bytes, MaxPendingBytes: s.options.MaxPendingBytes,
	}
}

// seesWholeSidecar reports whether the caller may see figures about the sidecar as a whole.
func seesWholeSidecar(ctx context.Context) bool {
	grant, _ := access.GrantOf(ctx)
	return grant.Level >= access.Admin
}

// Process is the resource use of the process; 0 means unknown.
type Process struct {
	ResidentBytes, LiveHeapBytes int64
	Goroutines, OpenFiles        int
	CPUTime                      time.Duration
}

func (s *adminService) processStatus() *memsidecarv1.ProcessStatus {
	p := s.Status.Process()
	return &memsidecarv1.ProcessStatus{
		Version: s.options.Version, StartTime: fromTime(s.started),
		ResidentBytes: p.ResidentBytes, LiveHeapBytes: p.LiveHeapBytes, GoroutineCount: clamped(p.Goroutines),
		OpenFileCount: clamped(p.OpenFiles), CpuDuration: durationpb.New(p.CPUTime),
	}
}
