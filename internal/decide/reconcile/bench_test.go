package reconcile_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/reconcile"
)

// BenchmarkCompare is a statement beside as many memories as are near at most.
func BenchmarkCompare(b *testing.B) {
	var near []decide.Neighbor
	for _, text := range []string{
		"The user lives in Beijing with their wife and two cats.", "用户打算去日本旅游", "The user has a dentist appointment on Monday.",
		"用户的工作邮箱是 a@example.com", "The user likes watching football.", "用户每天六点起床，然后去公园跑步",
	} {
		for range 4 {
			near = append(near, known(text))
		}
	}
	for b.Loop() {
		reconcile.Compare(said("The user moved to Shanghai last month because of a new job."), near)
	}
}
