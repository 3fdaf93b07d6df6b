package main

import (
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
)

// storageProblem says why storage cannot be read, or "".
func (p *parts) storageProblem() string {
	if status := p.storage.Status(); status.State != breaker.Closed {
		return status.Reason
	}
	return ""
}

// writeProblem says why storage cannot be written to although it can be read, or "".
func (p *parts) writeProblem() string {
	if status := p.storage.WriteStatus(); status.State != breaker.Closed && p.storageProblem() == "" {
		return unwritable + status.Reason
	}
	return ""
}

const unwritable = "what is stored can be read, and nothing can be written: "

// storageStatus is how storage is as a whole: that of reads while they fail, else that of writes. Broken pages are a reason, too.
func (p *parts) storageStatus() breaker.Status {
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

// away says whether a model is away that considerations need, and when it may be asked again. What is done by rules has a
// breaker that never opens. Embedding is not needed: vectors are made when it is back.
func (m *models) away() (until time.Time, away bool) {
	for _, part := range []string{partDecision, partSummary, partReconcile} {
		b := m.breakers[part]
		if b.Status().State == breaker.Closed {
			continue
		}
		away = true
		if next := b.Until(); next.After(until) {
			until = next
		}
	}
	return until, away
}
