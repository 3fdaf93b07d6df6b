//go:build !race && unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/load"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// BenchmarkStart compares the time from the start of the process to the answer SERVING of a health check, with 1,000,000 memories and
// with none. Both databases exist already, and the page cache is warm.
func BenchmarkStart(b *testing.B) {
	sidecartest.Binary(b)
	full, empty := manyUsers.dir(b), b.TempDir()
	spawn(b, empty).stop(b) // creates the database
	var times [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		for i := range 2 {
			which := (n + i) % 2
			started := time.Now()
			p := spawn(b, []string{full, empty}[which])
			p.waitServing(b)
			times[which] = append(times[which], time.Since(started))
			p.stop(b)
		}
	}
	report(b, "start-up, 1,000,000 memories / none", 2, median(times[0]), median(times[1]))
}

func (p *process) waitServing(b *testing.B) {
	b.Helper()
	resp, err := healthpb.NewHealthClient(p.conn).Check(b.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		b.Fatal(resp.GetStatus(), err)
	}
}

// stop ends the process as an operator does.
func (p *process) stop(b *testing.B) {
	b.Helper()
	_ = p.conn.Close() // so that Stop does not wait for it
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		b.Fatal(err)
	}
	if err := p.command.Wait(); err != nil {
		b.Fatalf("%v\n%s", err, p.log)
	}
}

// BenchmarkResident is the memory of the process after Retrieve for 100,000 users of 10 memories each, with the default index budget of
// 256 MiB.
func BenchmarkResident(b *testing.B) {
	const aim = 512 << 20
	if _, err := os.Stat("/proc/self/status"); err != nil {
		b.Skip("needs /proc/PID/status, which Linux has")
	}
	dir := manyUsers.dir(b)
	for b.Loop() {
		p := spawn(b, dir)
		stats := load.Run(b.Context(), load.Limits{Callers: 8, Calls: int64(manyUsers.users)}, func(ctx context.Context, n int64) (load.Answer, error) {
			resp, err := p.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct(benchUser(int(n)).ID), Query: load.Question(n)})
			return load.Answer{Degraded: len(resp.GetDegraded()) > 0}, err
		})
		if stats.Errors > 0 || stats.Degraded > 0 {
			b.Fatalf("%d errors, %d degraded: %v", stats.Errors, stats.Degraded, stats.FirstError)
		}
		now, highest := statusBytes(b, p.command.Process.Pid, "VmRSS"), statusBytes(b, p.command.Process.Pid, "VmHWM")
		p.stop(b)
		b.ReportMetric(float64(now)/(1<<20), "resident-MiB")
		b.ReportMetric(float64(highest)/(1<<20), "peak-MiB")
		b.ReportMetric(stats.PerSecond(), "calls/s")
		benchmarks.add(benchRow{
			name:     "resident memory, 100,000 users of 10 in turn, 256 MiB of index",
			measured: fmt.Sprintf("%d MiB", now>>20), reference: fmt.Sprintf("peak %d MiB, cold calls %.0f/s", highest>>20, stats.PerSecond()),
			aim: "< 512 MiB", verdict: verdict(now < aim),
		})
	}
}

// statusBytes reads a field of /proc/PID/status, which is in kB.
func statusBytes(b testing.TB, pid int, field string) int64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if rest, ok := bytes.CutPrefix(lines.Bytes(), []byte(field+":")); ok {
			kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(rest, []byte("kB")))), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb << 10
		}
	}
	b.Fatalf("/proc/%d/status has no %s", pid, field)
	return 0
}
