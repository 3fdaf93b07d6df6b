package main

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// BenchmarkEncryption is what encryption costs: two sidecars in one process, one with a key and one without, which are asked for
// the same in turns, so that whatever else the machine does concerns both.
//
//	go test -run '^$' -bench BenchmarkEncryption -benchtime 1x ./cmd/memsidecar
func BenchmarkEncryption(b *testing.B) {
	const users, memories, rounds = 20, 200, 1000
	dirs, environs := []string{b.TempDir(), b.TempDir()}, [][]string{nil, {encrypted}}
	begin := func() (both []*running) {
		for i := range dirs {
			both = append(both, serveWith(b, dirs[i], environs[i], "session.memorize_every=0", "digest.enabled=false"))
		}
		return both
	}
	for range b.N {
		both := begin()
		done := func(_ any, err error) {
			if err != nil {
				b.Error(err)
			}
		}
		// turns has each of them do a thing, the other one first every other time, and says how long the middle one of each took.
		turns := func(what string, n int, do func(r *running, i int)) {
			var took [2][]time.Duration
			for i := range n {
				for j := range 2 {
					which := (i + j) % 2
					started := time.Now()
					do(both[which], i)
					took[which] = append(took[which], time.Since(started))
				}
			}
			for i := range took {
				slices.Sort(took[i])
			}
			middle := func(i int) float64 { return float64(took[i][n/2].Microseconds()) }
			b.ReportMetric(middle(0), what+"-plain-µs")
			b.ReportMetric(middle(1), what+"-encrypted-µs")
			b.ReportMetric(middle(1)/middle(0), what+"-ratio")
		}
		user := func(i int) *memsidecarv1.Scope { return direct(fmt.Sprintf("user%d", i%users)) }
		turns("create", users*memories, func(r *running, i int) {
			done(r.CreateMemory(b.Context(), &memsidecarv1.CreateMemoryRequest{
				Scope: user(i), Memory: &memsidecarv1.Memory{Text: fmt.Sprintf("The user visited %x and met %x there, on day %d.", i*7919, i*104729, i)},
			}))
		})
		turns("acknowledge", rounds, func(r *running, i int) {
			done(r.ConsiderMemorizing(b.Context(), &memsidecarv1.ConsiderMemorizingRequest{
				Scope: direct(fmt.Sprintf("talker%d", i%100)), Messages: []*memsidecarv1.Message{said(fmt.Sprintf("I saw %x today.", i)), answered("How nice!")},
			}))
		})
		// Eight callers share a commit: what one page costs counts for less.
		turns("acknowledge-8", rounds/10, func(r *running, i int) {
			var callers sync.WaitGroup
			for n := range 8 {
				callers.Go(func() {
					done(r.ConsiderMemorizing(b.Context(), &memsidecarv1.ConsiderMemorizingRequest{
						Scope: direct(fmt.Sprintf("crowd%d", n)), Messages: []*memsidecarv1.Message{said(fmt.Sprintf("I saw %x and %d today.", i, n))},
					}))
				})
			}
			callers.Wait()
		})
		retrieve := func(r *running, i int) {
			done(r.Retrieve(b.Context(), &memsidecarv1.RetrieveRequest{Scope: user(i), Query: fmt.Sprintf("Who visited %x?", i*7919)}))
		}
		turns("retrieve", rounds, retrieve)
		for _, r := range both {
			r.stop()
		}
		both = begin()
		turns("first-retrieve", users, retrieve) // which reads the user's memories from the file
		for _, r := range both {
			r.stop()
		}
	}
}
