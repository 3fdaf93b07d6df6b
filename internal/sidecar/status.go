package sidecar

import (
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/retry"
)

// storageProblem says why storage cannot be read, or "".
func (p *components) storageProblem() string {
	if status := p.storage.Status(); status.State != breaker.Closed {
		return status.Reason
	}
	return ""
}

// writeProblem says why storage cannot be written to although it can be read, or "".
func (p *components) writeProblem() string {
	if status := p.storage.WriteStatus(); status.State != breaker.Closed && p.storageProblem() == "" {
		return unwritable + status.Reason
	}
	return ""
}

const unwritable = "what is stored can be read, and nothing can be written: "

// storageStatus is how storage is as a whole: that of reads while they fail, else that of writes. Broken pages are a reason, too.
func (p *components) storageStatus() breaker.Status {
	status := p.storage.Status()
	if status.State != breaker.Closed {
		return status
	}
	if writes := p.storage.WriteStatus(); writes.State != breaker.Closed {
		status = writes
		status.Reason = unwritable + status.Reason
	}
	if status.Reason == "" {
		status.Reason = p.storage.Damaged()
	}
	return status
}

// changed is notified of each change of a model's breaker.
func (m *models) changed(status breaker.Status) {
	if status.State == breaker.Closed {
		m.recovered.Notify()
	}
}

// unavailable says whether a model is unavailable that does one of the parts, and when it may be asked again. What is done by rules has a
// breaker that never opens.
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
func partsOfConsidering() []string { return []string{partDecision, partSummary, partReconcile} }

// partsOfDigests are those of the model that settleDigest chooses.
func (m *models) partsOfDigests() []string {
	switch c := m.cfg.Digest; {
	case c.Provider == ruleBased:
		return nil
	case namesModel(c.Provider, c.Model, ruleBased):
		return []string{partDigest}
	}
	return []string{partSummary}
}
