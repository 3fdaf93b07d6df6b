package sidecar

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
	"github.com/memsidecar/memsidecar/internal/server"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/vectorstore/backfill"
)

// status implements server.Status.
type status struct{ p *components }

// Components implements server.Status.
func (s status) Components() []server.Component {
	storage := server.Component{Name: "storage", Implementation: "sqlite", Breaker: s.p.state().status()}
	return append([]server.Component{storage}, s.p.models.components()...)
}

// Process implements server.Status.
func (s status) Process() server.Process { return server.Process(s.p.counts.Process()) }

// Pending implements server.Status.
func (s status) Pending() server.Pending { return server.Pending(s.p.jobs.Pending()) }

// PurgePendingSince implements server.Status.
func (s status) PurgePendingSince() time.Time { return s.p.storage.PurgePendingSince() }

// Fingerprint implements server.Status.
func (s status) Fingerprint() string { return s.p.models.fingerprint() }

// Vectorizing implements server.Status.
func (s status) Vectorizing() backfill.Progress { return s.p.vectorizer.Progress() }

// Usage implements server.Status.
func (s status) Usage(ctx context.Context, namespace string, since time.Time) ([]usage.Sum, error) {
	return s.p.records.Usage(ctx, namespace, since)
}

// FullUsers implements server.Status.
func (s status) FullUsers(ctx context.Context, namespace string) (int64, error) {
	return s.p.sweeper.Full(ctx, namespace)
}

// Budgets implements server.Status.
func (s status) Budgets(ctx context.Context, user memory.User) ([]budget.Standing, error) {
	return s.p.meter.Standings(ctx, user)
}

// Quotas implements server.Status.
func (s status) Quotas(ctx context.Context, user memory.User) ([]memory.Standing, error) {
	return sqlstore.NewUsage(s.p.storage, s.p.quotas).Standings(ctx, user)
}

// changed is notified of each change of a model's breaker.
func (m *models) changed(status breaker.Status) {
	if status.State == breaker.Closed {
		m.recovered.Notify()
	}
}

// unavailable reports whether the model of one of the parts is unavailable, and when it may be called again. The breaker of rules never
// opens.
func (m *models) unavailable(parts ...string) retry.Unavailable {
	return func() (until time.Time, unavailable bool) {
		for _, part := range parts {
			b := m.breakers[part]
			if b.Status().State == breaker.Closed {
				continue
			}
			unavailable = true
			if next := b.Until(); next.After(until) {
				until = next
			}
		}
		return until, unavailable
	}
}

// The parts that background work needs. Vectors are made later, so considering needs none.
func considerParts() []string { return []string{partDecision, partSummary} }

// digestParts are those of the model that chooseDigest chooses.
func (m *models) digestParts() []string {
	switch c := m.cfg.Digest; {
	case c.Provider == ruleBased:
		return nil
	case namesModel(c.Provider, c.Model, ruleBased):
		return []string{partDigest}
	}
	return []string{partSummary}
}
