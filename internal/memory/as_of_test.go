package memory_test

import (
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

func TestMemoryAsOf(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	m := memory.Memory{ObservedAt: day(1), LastSaidAt: day(10), ValidTo: day(20), SupersededBy: "other"}
	for at, want := range map[int]memory.Memory{
		5:  {ObservedAt: day(1), LastSaidAt: day(1)},
		10: {ObservedAt: day(1), LastSaidAt: day(10)},
		19: {ObservedAt: day(1), LastSaidAt: day(10)},
		20: m,
	} {
		if got := m.AsOf(day(at)); got.LastSaidAt != want.LastSaidAt || got.ValidTo != want.ValidTo || got.SupersededBy != want.SupersededBy {
			t.Errorf("as of day %d it is %+v, want %+v", at, got, want)
		}
	}
	if m.SupersededBy == "" {
		t.Error("the original was changed")
	}
	appointment := memory.Memory{ObservedAt: day(1), LastSaidAt: day(1), ValidTo: day(20)}
	if got := appointment.AsOf(day(5)); got != &appointment {
		t.Errorf("an appointment became %+v", got)
	}
}
