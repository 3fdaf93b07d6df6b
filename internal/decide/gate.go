package decide

import "runtime"

// gate bounds how many considerations compute at once, to half of the processors: Go's scheduler knows no priorities, and a call
// that somebody waits for would queue behind as many considerations as there are workers. There are that many workers because
// they wait most of the time: for the disk, or for a model that works elsewhere, which needs no turn.
type gate chan struct{}

func newGate() gate { return make(gate, max(1, runtime.GOMAXPROCS(0)/2)) }

// enter waits for a turn if it is rules that do the work. leave ends it.
func (g gate) enter(by string) (leave func()) {
	if by != rulesName {
		return func() {}
	}
	g <- struct{}{}
	return func() { <-g }
}
