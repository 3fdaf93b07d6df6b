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

// AdminParts is what the administration service works with.
type AdminParts struct {
	Status  Status
	Queue   queue.Store
	Auditor *audit.Auditor
	Prices  usage.Prices // of models
}

// Status reports how the sidecar is. What it reads from storage fails with memory.ErrUnavailable while storage is down.
type Status interface {
	// Components reports on storage and on each model.
	Components() []Component
	// Process reports what the process uses of its machine.
	Process() Process
	// Pending reports what is pending in the queue, in all namespaces.
	Pending() Pending
	// PurgePendingSince returns since when bytes of deleted data are to be removed from the files; the zero time when there are none.
	PurgePendingSince() time.Time
	// Fingerprint returns that of the embedder in use, "" until it is known.
	Fingerprint() string
	// Vectorizing reports how far the background embedding is.
	Vectorizing() backfill.Progress
	// Usage returns what the calls of models since a day cost, the newest day first.
	Usage(ctx context.Context, namespace string, since time.Time) ([]usage.Sum, error)
	// FullUsers counts the users of a namespace who have explicit memories up to the limit.
	FullUsers(ctx context.Context, namespace string) (int64, error)
	// Budgets returns how the token budgets of a namespace stand, its own first, and of its user if there is one.
	Budgets(ctx context.Context, user memory.User) ([]budget.Standing, error)
	// Quotas returns how the quotas of a namespace stand, and of its user if there is one.
	Quotas(ctx context.Context, user memory.User) ([]memory.Standing, error)
}

// Component is the state of storage or of a model.
type Component struct {
	Name, Implementation string
	Breaker              breaker.Status // without a State when there is none
	Remote               bool           // texts are sent to another machine
	Choice               string         // why this implementation was chosen
	Budgeted             bool           // rules replace it when a token budget is used up
}

var breakerStates = map[breaker.State]memsidecarv1.BreakerState{
	breaker.Closed:   memsidecarv1.BreakerState_BREAKER_STATE_CLOSED,
	breaker.Open:     memsidecarv1.BreakerState_BREAKER_STATE_OPEN,
	breaker.HalfOpen: memsidecarv1.BreakerState_BREAKER_STATE_HALF_OPEN,
}

// adminService implements memsidecarv1.AdminServiceServer.
type adminService struct {
	memsidecarv1.UnimplementedAdminServiceServer
	AdminParts
	options Options
	started time.Time
}

// GetStatus implements memsidecarv1.AdminServiceServer. While storage is unavailable it returns what is known without it.
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
	byBudget := map[*memsidecarv1.ComponentStatus]bool{} // rules do their work when a token budget is used up
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

// stored adds to a status what storage has to tell, as far as it can be read. The fallback is what rules did in the place of models
// because a token budget was used up, or "".
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

// modelsStatus tells how many memories there are to embed, in all namespaces together, only callers with admin access.
func (s *adminService) modelsStatus(ctx context.Context) *memsidecarv1.ModelsStatus {
	status := &memsidecarv1.ModelsStatus{EmbeddingFingerprint: s.Status.Fingerprint()}
	if !operates(ctx) {
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
	Counted               bool // false: that is not known
}

// queueTotal tells what waits in all namespaces together, only callers with admin access.
func (s *adminService) queueTotal(ctx context.Context) *memsidecarv1.QueueTotal {
	p := s.Status.Pending()
	if !p.Counted || !operates(ctx) {
		return nil
	}
	return &memsidecarv1.QueueTotal{
		PendingCount: p.Considerations, MaxPendingCount: s.options.MaxPending, PendingBytes: p.Bytes, MaxPendingBytes: s.options.MaxPendingBytes,
	}
}

// operates is whether the caller may know what concerns the sidecar as a whole.
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

func (s *adminService) processStatus() *memsidecarv1.ProcessStatus {
	p := s.Status.Process()
	return &memsidecarv1.ProcessStatus{
		Version: s.options.Version, StartTime: fromTime(s.started),
		ResidentBytes: p.ResidentBytes, LiveHeapBytes: p.LiveHeapBytes, GoroutineCount: clamped(p.Goroutines),
		OpenFileCount: clamped(p.OpenFiles), CpuDuration: durationpb.New(p.CPUTime),
	}
}
