package sidecar

import (
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/reconcile"
	reconcilemodel "github.com/memsidecar/memsidecar/internal/decide/reconcile/model"
	"github.com/memsidecar/memsidecar/internal/llm"
)

// chooseReconcile chooses what compares new statements with existing memories: the model that summarises, unless the configuration says
// rules. summary builds that model; it is nil when rules summarise.
func (m *models) chooseReconcile(summary func(part string) (llm.Model, error)) (decide.Reconciler, error) {
	if !m.cfg.Reconcile.Enabled {
		m.recordChoice(partReconcile, ruleBased, "the configuration says so: only requests to forget are followed", false)
		return reconcile.OnlyForget(), nil
	}
	switch {
	case m.cfg.Reconcile.Provider == ruleBased:
		m.recordChoice(partReconcile, ruleBased, "the configuration says so", false)
	case summary == nil:
		m.recordChoice(partReconcile, ruleBased, "auto: as summary", false)
	default:
		text, err := summary(partReconcile)
		if err != nil {
			return nil, err
		}
		m.mu.Lock()
		as := m.chosen[partSummary]
		m.mu.Unlock()
		m.recordChoice(partReconcile, text.Name(), "auto: as summary", as.Remote)
		return reconcilemodel.New(text, options(m.cfg.Summary, nil).Generation), nil
	}
	return reconcile.New(), nil
}
