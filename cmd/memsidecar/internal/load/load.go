// Package load puts a bounded load on a sidecar and measures what its callers see. `memsidecar bench` and the Go benchmarks
// share it.
package load

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the largest latency that is recorded exactly.
const maxLatency = 5 * time.Minute

// Limits end a run when the first of them is reached. Duration or Calls must be set.
type Limits struct {
	Callers  int           // concurrent callers, each with one call at a time
	Duration time.Duration // no call starts later, except the first
	Calls    int64         // total number of calls
}

// Answer is the result of a call.
type Answer struct {
	Degraded bool
	// Overtaken means that the call was refused because its user was being forgotten, which is correct.
	Overtaken bool
}

// Call makes the n-th call of a run, counted from 0.
type Call func(ctx context.Context, n int64) (Answer, error)

// Stats are the results of a run. Latencies are those of calls without an error.
type Stats struct {
	Calls    int64 // answered without an error
	Errors   int64
	Degraded int64
	// FirstError is an example of the errors, or nil.
	FirstError error
	Elapsed    time.Duration

	latencies *hdrhistogram.Histogram // in microseconds
}

// Run makes calls until a limit is reached or the context ends. Calls that are cancelled by the context do not count.
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
			own := newStats() // one per caller, so that they do not wait for each other
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

// take returns the number of the next call, if another may start.
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

// PerSecond returns the answered calls per second.
func (s *Stats) PerSecond() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Calls) / s.Elapsed.Seconds()
}

// Percentile returns the latency that p percent of the calls did not exceed, within 0.1 %. 100 is the maximum.
func (s *Stats) Percentile(p float64) time.Duration {
	return time.Duration(s.latencies.ValueAtPercentile(p)) * time.Microsecond
}
