package retry

import (
	"sync"
	"time"
)

// Due decides when postponed work becomes due. At the start of the process and after Resume, all postponed work becomes due. Otherwise,
// once in every interval, only work becomes due whose due time is too far in the future, because the clock was ahead when it was set. It is
// safe for concurrent use.
type Due struct {
	Every time.Duration

	mu      sync.Mutex
	resumed bool      // all postponed work was made due since the last Resume
	last    time.Time // when work was last made due
}

// Resume makes all postponed work due, after a provider recovered.
func (d *Due) Resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resumed = false
}

// Run calls makeDue if it is time; all means all postponed work. A call that fails is repeated by the next Run.
func (d *Due) Run(now time.Time, makeDue func(all bool) error) error {
	d.mu.Lock()
	all := !d.resumed
	if !all && now.Sub(d.last) < d.Every {
		d.mu.Unlock()
		return nil
	}
	d.resumed, d.last = true, now
	d.mu.Unlock()
	err := makeDue(all)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.resumed, d.last = d.resumed && !all, time.Time{}
	}
	return err
}
