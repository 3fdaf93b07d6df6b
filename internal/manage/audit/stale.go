package audit

import (
	"fmt"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// staleBelow is the retention below which a memory is stale.
const staleBelow = 0.1

// lastTouched returns when the memory was last said or used.
func lastTouched(m *memory.Memory) time.Time {
	last := m.ObservedAt
	for _, t := range []time.Time{m.LastSaidAt, m.LastUsedAt} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

func staleReason(m *memory.Memory) string {
	return fmt.Sprintf("last said or used on %s, importance %.2f", lastTouched(m).UTC().Format(time.DateOnly), m.Importance)
}
