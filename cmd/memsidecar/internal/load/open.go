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

// Kind is a kind of call in a mix.
type Kind struct {
	Name  string
	Share float64 // share of the arrivals, relative to other kinds
	Call  Call
}

// Mix is a load that does not wait for its answers: calls arrive in a Poisson process, like those of many independent bots. A stall of
// the sidecar affects all calls that arrive during it, and each latency counts from when the call was due. Callers who wait for an answer
// would miss these calls ("coordinated omission").
type Mix struct {
	Rate     float64 // total arrivals per second
	Duration time.Duration
	// InFlight limits the concurrent calls. Above the limit an arriving call is shed: counted and not made.
	InFlight int
	Kinds    []Kind
	Seed     uint64 // equal seeds give the same arrivals
}

// drainLimit is the time for calls that are in progress at the end. Later answers count as errors.
const drainLimit = 2 * time.Minute

// OpenStats are the results of a kind of call. Latencies are those of calls without an error, from when a call was due to its answer.
type OpenStats struct {
	Name string
	Stats
	Offered int64 // arrived
	Shed    int64 // not made, because of InFlight
	// Overtaken is the number of calls that were refused because their user was being forgotten. They count as answered.
	Overtaken int64
	Codes     map[codes.Code]int64
}

// Run makes the calls of the mix until its duration is over or the context ends, and waits for the answers. The results are in the order
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
	stopDraining := context.AfterFunc(ctx, cancel) // interrupted: the rest is cancelled
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

// arrivals yields the times and kinds of calls until the consumer stops.
func (m Mix) arrivals(due func(after time.Duration, kind int) (ok bool)) {
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

// until waits for a time, and reports false if the context has ended.
func until(ctx context.Context, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	return background.Sleep(ctx, wait)
}

// openKind collects the results of one kind of call. Offered and Shed belong to the goroutine that generates the arrivals.
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

// Calls returns the calls that a mix may have, by name.
func (t *Target) Calls() map[string]Call {
	return map[string]Call{"retrieve": t.Retrieve, "consider": t.Consider, "forget": t.Forget}
}

// Forget is a Call that forgets the users in turn.
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
