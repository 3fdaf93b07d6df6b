package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// bench runs `memsidecar bench` briefly on the sidecar with few users.
func bench(t *testing.T, r *sidecartest.Sidecar, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runMain(t, append([]string{
		"bench", "--addr", r.Addr, "--users", "3", "--memories", "4", "--callers", "2", "--duration", "50ms",
	}, args...)...)
}

var createdUsers = regexp.MustCompile(`creating users (bench-\w+)-0 to bench-\w+-2 in namespace (\S+?)[,;]`)

// createdScopes returns the scopes of the users that a run of bench reports as created.
func createdScopes(t *testing.T, stderr string) (scopes []*memsidecarv1.Scope) {
	t.Helper()
	found := createdUsers.FindStringSubmatch(stderr)
	if found == nil {
		t.Fatalf("does not name the created users:\n%s", stderr)
	}
	for _, number := range []string{"-0", "-1", "-2"} {
		scopes = append(scopes, &memsidecarv1.Scope{
			Namespace: found[2], UserId: found[1] + number, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT,
		})
	}
	return scopes
}

func TestBenchRemovesWhatItCreated(t *testing.T) {
	r := sidecartest.Serve(t)
	code, out, errs := bench(t, r)
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errs)
	}
	for _, line := range []string{`Retrieve +[1-9]\d* `, `ConsiderMemorizing +[1-9]\d* `, `P50 MS +P90 MS +P99 MS +MAX MS +ERRORS +DEGRADED`} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("no line like %q:\n%s", line, out)
		}
	}
	if !strings.Contains(errs, "removed users") {
		t.Errorf("does not say that it removed the users:\n%s", errs)
	}
	for _, scope := range createdScopes(t, errs) {
		if left := r.Memories(t, scope); len(left) != 0 {
			t.Errorf("%s has %d memories left", scope.GetUserId(), len(left))
		}
		if left := r.Considerations(t, scope); len(left) != 0 {
			t.Errorf("%s has %d considerations left", scope.GetUserId(), len(left))
		}
	}
}

func TestBenchKeepsOnRequest(t *testing.T) {
	r := sidecartest.Serve(t)
	code, out, errs := bench(t, r, "--keep", "--json", "--namespace", "mine/load")
	var report struct {
		Users, Callers int
		Measured       []struct {
			Calls, Errors, Degraded int64
			CallsPerSecond          float64 `json:"calls_per_second"`
			P50                     float64 `json:"p50_ms"`
			P90                     float64 `json:"p90_ms"`
			P99                     float64 `json:"p99_ms"`
			Max                     float64 `json:"max_ms"`
		}
	}
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v:\n%s%s", code, err, out, errs)
	}
	if len(report.Measured) != 2 || report.Callers != 2 || report.Users != 3 {
		t.Fatalf("%+v", report)
	}
	for _, m := range report.Measured {
		if m.Calls == 0 || m.Errors != 0 || m.Degraded != 0 || m.CallsPerSecond <= 0 || m.P50 <= 0 || m.P50 > m.P90 || m.P90 > m.P99 || m.P99 > m.Max {
			t.Errorf("%+v", m)
		}
	}
	for _, scope := range createdScopes(t, errs) {
		if scope.GetNamespace() != "mine/load" || len(r.Memories(t, scope)) < 4 {
			t.Errorf("%v has %d memories", scope, len(r.Memories(t, scope)))
		}
	}
}

// TestBenchWithARate: With a rate, calls do not wait for each other. Created data is removed.
func TestBenchWithARate(t *testing.T) {
	r := sidecartest.Serve(t)
	code, out, errs := bench(t, r, "--json", "--rate", "400", "--duration", "500ms", "--mix", "retrieve=3,consider=1")
	type taken struct {
		LiveHeap   int64 `json:"live_heap_bytes"`
		Goroutines int64
	}
	var report struct {
		Rate     float64
		Measured []struct {
			Call                         string
			Offered, Calls, Shed, Errors int64
			P50                          float64 `json:"p50_ms"`
			P99                          float64 `json:"p99_ms"`
			P999                         float64 `json:"p999_ms"`
			Max                          float64 `json:"max_ms"`
		}
		Before, Most, After taken
	}
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v:\n%s%s", code, err, out, errs)
	}
	if len(report.Measured) != 2 || report.Rate != 400 || report.Measured[0].Call != "ConsiderMemorizing" || report.Measured[1].Call != "Retrieve" {
		t.Fatalf("%+v", report)
	}
	for _, m := range report.Measured {
		if m.Offered == 0 || m.Offered != m.Calls+m.Shed || m.Errors != 0 || m.P50 <= 0 || m.P50 > m.P99 || m.P99 > m.P999 || m.P999 > m.Max {
			t.Errorf("%+v", m)
		}
	}
	for when, v := range map[string]taken{"before": report.Before, "most": report.Most, "after": report.After} {
		if v.LiveHeap <= 0 || v.Goroutines <= 0 || v.Goroutines > report.Most.Goroutines && when == "before" {
			t.Errorf("%s: %+v", when, v)
		}
	}
	for _, scope := range createdScopes(t, errs) {
		if left := r.Memories(t, scope); len(left) != 0 {
			t.Errorf("%s has %d memories left", scope.GetUserId(), len(left))
		}
	}
}

// TestInterruptedBenchCleansUp: Created data is removed after an interruption, too.
func TestInterruptedBenchCleansUp(t *testing.T) {
	r := sidecartest.Serve(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var errs sidecartest.Log
	begun := &trigger{to: &errs, at: "measuring Retrieve", fire: interrupt}
	code := Main{
		Args: []string{"bench", "--addr", r.Addr, "--users", "3", "--memories", "4", "--duration", "1h"}, Stdout: io.Discard, Stderr: begun,
	}.Run(ctx)
	if code != cli.ExitInterrupted || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit code %d:\n%s", code, errs.String())
	}
	for _, scope := range createdScopes(t, errs.String()) {
		if left := r.Memories(t, scope); len(left) != 0 {
			t.Errorf("%s has %d memories left", scope.GetUserId(), len(left))
		}
	}
}

// trigger calls a function once a text is written.
type trigger struct {
	to   io.Writer
	at   string
	fire func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.at)) {
		w.fire()
	}
	return w.to.Write(p)
}

func TestBenchRefuses(t *testing.T) {
	remote := sidecartest.Serve(t, "decision.provider=ollama", "decision.endpoint=http://192.0.2.1:1/v1", "decision.model=m")
	if code, _, errs := bench(t, remote); code != cli.ExitFailure || !strings.Contains(errs, "--allow-remote") || strings.Contains(errs, "creating") {
		t.Errorf("with a remote model: exit code %d:\n%s", code, errs)
	}
	for flag, value := range map[string]string{"--users": "0", "--callers": "5000", "--memories": "20000", "--duration": "0s"} {
		if code, _, errs := bench(t, remote, flag, value); code != cli.ExitUsage || !strings.Contains(errs, flag+" "+value) {
			t.Errorf("does not refuse %s: exit code %d:\n%s", flag, code, errs)
		}
	}
	code, _, errs := runMain(t, "bench", "--addr", "127.0.0.1:1", "--duration", "50ms")
	if code != cli.ExitUnavailable || !strings.Contains(errs, "memsidecar serve") {
		t.Errorf("without a sidecar: exit code %d:\n%s", code, errs)
	}
}
