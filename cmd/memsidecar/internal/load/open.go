package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/background"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Kind is one of the calls that a mix has.
type Kind struct {
	Name  string
	Share float64 // of the arrivals, relative to the other kinds'
	Call  Call
}

// Mix is a load that does not wait for its answers: calls arrive by a Poisson process, as those of many independent bots do.
// A sidecar that stalls is met by all that arrive meanwhile, and each one's latency counts from when it was due. (Callers who
// wait for their answer leave just those out: "coordinated omission".)
type Mix struct {
	Rate     float64 // arrivals a second, of all kinds together
	Duration time.Duration
	// InFlight bounds the calls under way. One that arrives when there are as many is shed: it is counted and not made.
	InFlight int
	Kinds    []Kind
	Seed     uint64 // equal ones give the same arrivals
}

// drainLimit is how long calls that are under way at the end may take. What then has no answer counts as an error.
const drainLimit = 2 * time.Minute

// OpenStats is what a kind's callers saw. Latencies count from when a call was due to its answer, of calls without an error.
type OpenStats struct {
	Name string
	Stats
	Offered int64 // arrived
	Shed    int64 // arrived while as many as allowed were under way, and were not made
	// Overtaken were refused because their user was being forgotten. They are among the answered ones.
	Overtaken int64
	Codes     map[codes.Code]int64
}

// Run makes the calls of the mix until its duration is over or the context ends, and waits for the answers. The order is that
// of the kinds.
func (m Mix) Run(ctx context.Context) []OpenStats {
	calling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	kinds := make([]*openKind, len(m.Kinds))
	for i, k := range m.Kinds {
		kinds[i] = &openKind{Call: k.Call, OpenStats: OpenStats{Name: k.Name, Stats: newStats(), Codes: map[codes.Code]int64{}}}
	}
	started := time.Now()
	var underWay sync.WaitGroup
	var inFlight atomic.Int64
	m.arrivals(func(after time.Duration, kind int) bool {
		due := started.Add(after)
		if !until(ctx, due) {
			return false
		}
		k := kinds[kind]
		n := k.Offered
		k.Offered++
		if inFlight.Load() >= int64(m.InFlight) { // only this goroutine adds
			k.Shed++
			return true
		}
		inFlight.Add(1)
		underWay.Go(func() {
			defer inFlight.Add(-1)
			k.carryOut(calling, n, due)
		})
		return true
	})
	elapsed := time.Since(started)
	stopDraining := context.AfterFunc(ctx, cancel) // interrupted: nobody waits for the rest
	defer stopDraining()
	late := time.AfterFunc(drainLimit, cancel)
	defer late.Stop()
	underWay.Wait()
	results := make([]OpenStats, len(kinds))
	for i, k := range kinds {
		k.Elapsed = elapsed
		results[i] = k.OpenStats
	}
	return results
}

// arrivals tells when calls are due, and of which kind they are, until told to stop.
func (m Mix) arrivals(due func(after time.Duration, kind int) (goOn bool)) {
	random := rand.New(rand.NewPCG(m.Seed, 3)) //nolint:gosec // when made-up calls are made
	whole := 0.0
	for _, k := range m.Kinds {
		whole += k.Share
	}
	for after := 0.0; ; {
		after += random.ExpFloat64() / m.Rate
		at := time.Duration(after * float64(time.Second))
		if at >= m.Duration {
			return
		}
		pick, kind := random.Float64()*whole, 0
		for ; kind < len(m.Kinds)-1 && pick >= m.Kinds[kind].Share; kind++ {
			pick -= m.Kinds[kind].Share
		}
		if !due(at, kind) {
			return
		}
	}
}

// until waits for a time that may have passed, and reports false when the context has ended.
func until(ctx context.Context, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	return background.Sleep(ctx, wait)
}

// openKind gathers what the callers of a kind see. Offered and Shed belong to the goroutine that makes calls arrive.
type openKind struct {
	Call Call
	OpenStats
	mu sync.Mutex
}

func (k *openKind) carryOut(ctx context.Context, n int64, due time.Time) {
	answer, err := k.Call(ctx, n)
	took := time.Since(due)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.Errors++
		k.Codes[status.Code(err)]++
		if k.FirstError == nil {
			k.FirstError = err
		}
		return
	}
	if answer.Degraded {
		k.Degraded++
	}
	if answer.Overtaken {
		k.Overtaken++
	}
	k.Calls++
	_ = k.latencies.RecordValue(min(took, maxLatency).Microseconds()) // the only error is a value out of range
}

// Calls are those that a mix may have, by name.
func (t *Target) Calls() map[string]Call {
	return map[string]Call{"retrieve": t.Retrieve, "consider": t.Consider, "forget": t.Forget}
}

// Forget is a Call that forgets one user after the other.
func (t *Target) Forget(ctx context.Context, n int64) (Answer, error) {
	t.forgets.Store(true)
	_, err := t.Client.ForgetUser(ctx, &memsidecarv1.ForgetUserRequest{Scope: t.userScope(t.userOf(n))})
	return Answer{}, err
}

// Pending is how many dialogues of the target's namespace wait to be considered.
func (t *Target) Pending(ctx context.Context) (int64, error) {
	resp, err := t.Client.GetStatus(ctx, &memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: t.Namespace}})
	return resp.GetQueue().GetPendingCount(), err
}
