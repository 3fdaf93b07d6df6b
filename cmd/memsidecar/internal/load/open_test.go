package load_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
)

// TestArrivalsFollowTheRate: Calls arrive at the configured rate and shares, however long answers take.
func TestArrivalsFollowTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, int64) (load.Answer, error) {
			time.Sleep(time.Second)
			return load.Answer{Degraded: true}, nil
		}
		started := time.Now()
		results := load.Mix{
			Rate: 200, Duration: 100 * time.Second, InFlight: 1000,
			Kinds: []load.Kind{{Name: "many", Share: 3, Call: slow}, {Name: "few", Share: 1, Call: slow}},
		}.Run(t.Context())
		if took := time.Since(started); took > 102*time.Second {
			t.Errorf("100 seconds took %s", took)
		}
		for i, want := range []float64{15_000, 5_000} {
			r := results[i]
			if math.Abs(float64(r.Offered)-want) > want/20 || r.Calls != r.Offered || r.Shed != 0 || r.Errors != 0 || r.Degraded != r.Calls {
				t.Errorf("%s: %d offered, want some %g: %+v", r.Name, r.Offered, want, r.Stats)
			}
			if p := r.Percentile(50); p < time.Second || p > 1100*time.Millisecond {
				t.Errorf("%s: a call of a second is measured as %s", r.Name, p)
			}
		}
	})
}

// TestStallsCountInLatencies: A stall adds to the latency of all calls that were due during it, not only of the one call that waited.
func TestStallsCountInLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := make(chan struct{}, 1) // a channel, because time in a synctest bubble stops while a mutex is awaited
		var stall sync.Once
		results := load.Mix{Rate: 100, Duration: 20 * time.Second, InFlight: 10_000, Kinds: []load.Kind{{
			Name: "calls", Share: 1, Call: func(context.Context, int64) (load.Answer, error) {
				one <- struct{}{}
				defer func() { <-one }()
				stall.Do(func() { time.Sleep(10 * time.Second) })
				return load.Answer{}, nil
			},
		}}}.Run(t.Context())
		r := results[0]
		// Half of the calls were due during the ten seconds, and waited five on average.
		if r.Percentile(40) > time.Second || r.Percentile(75) < 4*time.Second || r.Percentile(75) > 6*time.Second || r.Percentile(100) < 9*time.Second {
			t.Errorf("p40 %s, p75 %s, longest %s of %d calls", r.Percentile(40), r.Percentile(75), r.Percentile(100), r.Calls)
		}
	})
}

// TestCallsAboveTheLimitAreShed: Calls above the limit are shed and counted. Calls that do not return are cancelled.
func TestCallsAboveTheLimitAreShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := load.Mix{Rate: 100, Duration: 10 * time.Second, InFlight: 3, Kinds: []load.Kind{{
			Name: "calls", Share: 1, Call: func(ctx context.Context, n int64) (load.Answer, error) {
				if n == 0 {
					return load.Answer{}, status.Error(codes.ResourceExhausted, "enough")
				}
				<-ctx.Done()
				return load.Answer{}, status.FromContextError(ctx.Err()).Err()
			},
		}}}.Run(t.Context())
		r := results[0]
		if r.Calls != 0 || r.Errors != 4 || r.Codes[codes.Canceled] != 3 || r.Codes[codes.ResourceExhausted] != 1 || r.Shed != r.Offered-4 || r.Shed < 900 {
			t.Errorf("%d offered, %d shed, errors %v: %+v", r.Offered, r.Shed, r.Codes, r.Stats)
		}
	})
}

// TestInterruptedOpenLoadEndsImmediately: An interruption ends the run immediately, without waiting for cancelled calls.
func TestInterruptedOpenLoadEndsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		started := time.Now()
		results := load.Mix{Rate: 10, Duration: time.Hour, InFlight: 1000, Kinds: []load.Kind{{
			Name: "calls", Share: 1, Call: func(ctx context.Context, _ int64) (load.Answer, error) {
				<-ctx.Done()
				return load.Answer{}, ctx.Err()
			},
		}}}.Run(ctx)
		if took := time.Since(started); took != 5*time.Second || results[0].Offered < 20 {
			t.Errorf("ended after %s with %d calls", took, results[0].Offered)
		}
	})
}
