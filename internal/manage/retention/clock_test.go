package retention_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/manage/retention"
)

// TestGracePeriodRestartsAfterClockCorrection: When a clock that was ahead is corrected, the grace period of a withdrawn memory begins
// again.
func TestGracePeriodRestartsAfterClockCorrection(t *testing.T) {
	dir := t.TempDir()
	options := retention.Options{WithdrawnGrace: day}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(365 * day)
		s := start(t, dir, options)
		s.apply(ann, said("a", nil), said("b", nil))
		s.withdraw(ann, "a")
		settle(time.Minute)
		s.want(ann, "a", "b")
		s.stop()
	})
	synctest.Test(t, func(t *testing.T) { // begins a year earlier
		s := start(t, dir, options)
		settle(23 * time.Hour)
		s.want(ann, "a", "b")
		settle(2 * time.Hour)
		s.want(ann, "b")
		s.stop()
	})
}
