//go:build !race && unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// BenchmarkEncryption measures the cost of encryption: two sidecars, with and without a key, get the same requests in turn, so that other
// load affects both. Latencies are medians. Processor time is that of the whole process, background work included.
func BenchmarkEncryption(b *testing.B) {
	const users, memories, rounds = 20, 200, 1000
	for range b.N {
		two := twoSidecars{dirs: [2]string{b.TempDir(), b.TempDir()}}
		two.begin(b)
		user := func(i int) *memsidecarv1.Scope { return sidecartest.Direct(fmt.Sprintf("user%d", i%users)) }
		two.turns(b, "create", users*memories, func(p *process, i int) error {
			_, err := p.CreateMemory(b.Context(), &memsidecarv1.CreateMemoryRequest{Scope: user(i), Memory: &memsidecarv1.Memory{Text: visit(i)}})
			return err
		})
		two.turns(b, "import-500", 20, func(p *process, i int) error {
			stream, err := p.ImportMemories(b.Context())
			if err != nil {
				return err
			}
			items := []*memsidecarv1.ImportMemoriesRequest{
				{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: sidecartest.Direct(fmt.Sprintf("moved%d", i))}},
			}
			for n := range 500 {
				items = append(items, &memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{
					Memory: &memsidecarv1.Memory{Text: visit(500*i + n)},
				}})
			}
			for _, item := range items {
				if err := stream.Send(item); err != nil {
					break // CloseAndRecv returns the error
				}
			}
			_, err = stream.CloseAndRecv()
			return err
		})
		two.turns(b, "acknowledge", rounds, func(p *process, i int) error {
			_, err := p.ConsiderMemorizing(b.Context(), &memsidecarv1.ConsiderMemorizingRequest{
				Scope: sidecartest.Direct(
					fmt.Sprintf("talker%d", i%100),
				), Messages: []*memsidecarv1.Message{sidecartest.Said(fmt.Sprintf("I saw %x today.", i)), sidecartest.Answered("How nice!")},
			})
			return err
		})
		// Eight callers share a commit, so the cost of one page matters less.
		two.turns(b, "acknowledge-8", rounds/10, func(p *process, i int) error {
			var callers sync.WaitGroup
			failures := make(chan error, 8)
			for n := range 8 {
				callers.Go(func() {
					_, err := p.ConsiderMemorizing(b.Context(), &memsidecarv1.ConsiderMemorizingRequest{
						Scope: sidecartest.Direct(
							fmt.Sprintf("crowd%d", n),
						), Messages: []*memsidecarv1.Message{sidecartest.Said(fmt.Sprintf("I saw %x and %d today.", i, n))},
					})
					failures <- err
				})
			}
			callers.Wait()
			for range 8 {
				if err := <-failures; err != nil {
					return err
				}
			}
			return nil
		})
		retrieve := func(p *process, i int) error {
			_, err := p.Retrieve(b.Context(), &memsidecarv1.RetrieveRequest{Scope: user(i), Query: fmt.Sprintf("Who visited %x?", i*7919)})
			return err
		}
		two.turns(b, "retrieve", rounds, retrieve)
		two.end(b)
		two.begin(b)
		two.turns(b, "first-retrieve", users, retrieve) // reads the user's memories from the file
		two.end(b)
		two.commands(b, "check", 5)
		two.commands(b, "backup", 5, "--replace", filepath.Join(b.TempDir(), "backup.db"))
	}
}

func visit(i int) string {
	return fmt.Sprintf("The user visited %x and met %x there, on day %d.", i*7919, i*104729, i)
}

// twoSidecars are one without a key and one with a key.
type twoSidecars struct {
	dirs      [2]string
	processes [2]*process
}

func environOf(which int) []string {
	return [][]string{nil, {sidecartest.KeyEnviron}}[which]
}

func (s *twoSidecars) begin(b *testing.B) {
	b.Helper()
	for i := range s.processes {
		s.processes[i] = spawn(b, s.dirs[i], append(environOf(i), "MEMSIDECAR_SESSION_MEMORIZE_EVERY=0", "MEMSIDECAR_DIGEST_ENABLED=false")...)
	}
}

func (s *twoSidecars) end(b *testing.B) {
	b.Helper()
	for _, p := range s.processes {
		if err := p.command.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := p.command.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

// processorTime returns the processor time that a sidecar has used, after pending work has finished.
func (s *twoSidecars) processorTime(b *testing.B, which int) time.Duration {
	b.Helper()
	for {
		status, err := s.processes[which].GetStatus(b.Context(), &memsidecarv1.GetStatusRequest{})
		if err != nil {
			b.Fatal(err)
		}
		if status.GetQueue().GetPendingCount() == 0 {
			return status.GetProcess().GetCpuDuration().AsDuration()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// turns makes each sidecar do something, in alternating order.
func (s *twoSidecars) turns(b *testing.B, what string, n int, do func(p *process, i int) error) {
	b.Helper()
	var took [2][]time.Duration
	var processor [2]time.Duration
	for which := range processor {
		processor[which] = -s.processorTime(b, which)
	}
	for i := range n {
		for j := range 2 {
			which := (i + j) % 2
			started := time.Now()
			if err := do(s.processes[which], i); err != nil {
				b.Fatal(err)
			}
			took[which] = append(took[which], time.Since(started))
		}
	}
	for which := range processor {
		processor[which] += s.processorTime(b, which)
	}
	reportBoth(b, what, took, processor)
}

// commands runs a command of the program on both folders, in alternating order.
func (s *twoSidecars) commands(b *testing.B, what string, n int, arguments ...string) {
	b.Helper()
	var took [2][]time.Duration
	var processor [2]time.Duration
	for i := range n {
		for j := range 2 {
			which := (i + j) % 2
			command := exec.CommandContext(context.Background(), sidecartest.Binary(b), append([]string{what, "--data-dir", s.dirs[which]}, arguments...)...)
			command.Env = append(os.Environ(), environOf(which)...)
			started := time.Now()
			if out, err := command.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			took[which] = append(took[which], time.Since(started))
			processor[which] += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
		}
	}
	reportBoth(b, what, took, processor)
}

func reportBoth(b *testing.B, what string, took [2][]time.Duration, processor [2]time.Duration) {
	b.Helper()
	n := len(took[0])
	var middle, each [2]float64
	for i := range took {
		slices.Sort(took[i])
		middle[i] = float64(took[i][n/2].Microseconds())
		each[i] = float64((processor[i] / time.Duration(n)).Microseconds())
	}
	b.ReportMetric(middle[0], what+"-plain-µs")
	b.ReportMetric(middle[1], what+"-encrypted-µs")
	b.ReportMetric(middle[1]/middle[0], what+"-ratio")
	b.ReportMetric(each[0], what+"-plain-processor-µs")
	b.ReportMetric(each[1], what+"-encrypted-processor-µs")
	b.ReportMetric(each[1]/max(each[0], 1), what+"-processor-ratio")
}
