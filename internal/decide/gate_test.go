package decide

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestGate: rules take turns, a panic ends a turn, and what a model does elsewhere needs none.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := make(gate, 1)
		leave := g.enter(rulesName)
		g.enter("openai/some-model")()
		entered := false
		go func() {
			defer func() { _ = recover() }()
			defer g.enter(rulesName)()
			entered = true
			panic("a bug")
		}()
		synctest.Wait()
		if entered {
			t.Error("two compute at once")
		}
		leave()
		synctest.Wait()
		if !entered {
			t.Error("the next one has no turn")
		}
		select {
		case g <- struct{}{}:
		case <-time.After(time.Second):
			t.Error("a panic keeps its turn")
		}
	})
	if n := cap(newGate()); n < 1 {
		t.Errorf("%d may compute", n)
	}
}
