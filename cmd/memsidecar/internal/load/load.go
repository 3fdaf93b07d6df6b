// Package load puts a bounded load on a sidecar and measures what its callers see. `memsidecar bench` and the Go benchmarks
// share it.
package load

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the latency above which no distinction is made.
const maxLatency = 5 * time.Minute

// Limits bound a run: it ends with the first that is reached. One of Duration and Calls must be set.
type Limits struct {
	Callers  int           // at once, each with one call at a time
	Duration time.Duration // after it no call is begun but the first; 0 is no limit
	Calls    int64         // calls begun by all callers together; 0 is no limit
}

// Answer is what a call came to.
type Answer struct {
	Degraded bool
	// Overtaken is that the user was forgotten while the call was under way, and that it was refused for that: as it should be.
	Overtaken bool
}

// Call makes the n-th call of a run, counted from 0.
type Call func(ctx context.Context, n int64) (Answer, error)

// Stats is what the callers of a run saw. Latencies are of calls that were answered without an error.
type Stats struct {
	Calls    int64 // answered without an error
	Errors   int64
	Degraded int64
	// FirstError is an example of the errors, or nil.
	FirstError error
	Elapsed    time.Duration

	latencies *hdrhistogram.Histogram // of microseconds
}

// Run calls until a limit is reached or the context ends. Calls that the end of the context cut off do not count.
func Run(ctx context.Context, limits Limits, call Call) Stats {
	r := run{limits: limits, call: call}
	started := time.Now()
	if limits.Duration > 0 {
		r.until = started.Add(limits.Duration)
	}
	total := newStats()
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range limits.Callers {
		callers.Go(func() {
			own := newStats() // of each caller, so that they do not wait for each other
			r.caller(ctx, &own)
			mu.Lock()
			defer mu.Unlock()
			total.add(&own)
		})
	}
	callers.Wait()
	total.Elapsed = time.Since(started)
	return total
}

type run struct {
	limits Limits
	call   Call
	until  time.Time // zero: no limit

	mu   sync.Mutex
	next int64
}

func (r *run) caller(ctx context.Context, s *Stats) {
	for {
		n, ok := r.take()
		if !ok || ctx.Err() != nil {
			return
		}
		started := time.Now()
		answer, err := r.call(ctx, n)
		took := time.Since(started)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			s.Errors++
			if s.FirstError == nil {
				s.FirstError = err
			}
			continue
		case answer.Degraded:
			s.Degraded++
		}
		s.Calls++
		_ = s.latencies.RecordValue(min(took, maxLatency).Microseconds()) // the only error is a value out of range
	}
}

// take returns the number of the next call, if there is to be one.
func (r *run) take() (n int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = r.next
	late := !r.until.IsZero() && !time.Now().Before(r.until)
	if late && n > 0 || r.limits.Calls > 0 && n >= r.limits.Calls {
		return 0, false
	}
	r.next++
	return n, true
}

func newStats() Stats {
	return Stats{latencies: hdrhistogram.New(1, maxLatency.Microseconds(), 3)}
}

func (s *Stats) add(other *Stats) {
	s.Calls += other.Calls
	s.Errors += other.Errors
	s.Degraded += other.Degraded
	if s.FirstError == nil {
		s.FirstError = other.FirstError
	}
	s.latencies.Merge(other.latencies)
}

// PerSecond is how many calls a second were answered.
func (s *Stats) PerSecond() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Calls) / s.Elapsed.Seconds()
}

// Percentile is the latency that p percent of the calls did not exceed; 100 is the longest. It is true to 0.1%.
func (s *Stats) Percentile(p float64) time.Duration {
	return time.Duration(s.latencies.ValueAtPercentile(p)) * time.Microsecond
}
