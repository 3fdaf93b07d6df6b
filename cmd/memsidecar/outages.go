package main

import (
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
)

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
