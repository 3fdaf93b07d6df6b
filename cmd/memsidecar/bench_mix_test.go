//go:build !race && unix

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
)

// BenchmarkRetrieveDuringWrites compares the p99 of Retrieve while dialogues arrive and are considered with the p99 without them. Both
// use the same arrivals of Retrieve, in alternating rounds of a few seconds on one sidecar, the real binary. Pending work finishes before
// a round without dialogues. A round's p99 is of some 600 calls; the ratio is of the medians of the rounds.
func BenchmarkRetrieveDuringWrites(b *testing.B) {
	const reading, turn = 200, 3 * time.Second
	for _, writing := range []float64{20, 100} {
		b.Run(fmt.Sprintf("writes=%g", writing), func(b *testing.B) {
			p := spawn(b, b.TempDir())
			target := &load.Target{Client: p, Namespace: "bench", Prefix: "mix", Users: 100, Memories: 100}
			if err := target.Prepare(b.Context(), func() {}); err != nil {
				b.Fatal(err)
			}
			retrieve := load.Kind{Name: "Retrieve", Share: reading, Call: target.Retrieve}
			consider := load.Kind{Name: "ConsiderMemorizing", Share: writing, Call: target.Consider}
			round := func(seed uint64, kinds ...load.Kind) (p99 time.Duration) {
				mix := load.Mix{Rate: 0, Duration: turn, InFlight: 1024, Kinds: kinds, Seed: seed}
				for _, k := range kinds {
					mix.Rate += k.Share
				}
				for _, s := range mix.Run(b.Context()) {
					if s.Errors > 0 || s.Shed > 0 {
						b.Fatalf("%s: %d shed, errors %v, for example %v", s.Name, s.Shed, s.Codes, s.FirstError)
					}
					if s.Name == retrieve.Name {
						p99 = s.Percentile(99)
					}
				}
				return p99
			}
			round(0, retrieve, consider) // warm-up
			var during, alone []time.Duration
			for n := uint64(1); b.Loop(); n++ {
				p.settle(b, target)
				alone = append(alone, round(2*n, retrieve))
				during = append(during, round(2*n+1, retrieve, consider))
			}
			report(b, fmt.Sprintf("p99 of %d Retrieve/s beside %g ConsiderMemorizing/s / alone", reading, writing), 1.5, median(during), median(alone))
		})
	}
}

// settle waits until no dialogue of the target is pending.
func (p *process) settle(b *testing.B, target *load.Target) {
	b.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		waiting, err := target.Pending(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if waiting == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d dialogues still wait to be considered", waiting)
		}
	}
}
