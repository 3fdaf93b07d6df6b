//go:build !race && linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// smallDisk mounts a small file system for a data folder. fill fills it until free is called.
func smallDisk(t *testing.T) (dir string, fill func() (free func()), remount func(flags uintptr)) {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=6m"); err != nil {
		t.Skip("no file system can be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	fill = func() func() {
		filler := filepath.Join(disk, "filler")
		f := sidecartest.Must(os.Create(filler))(t)
		for err := error(nil); err == nil; {
			_, err = f.Write(make([]byte, 4096))
		}
		_ = f.Close() // the disk is full
		return func() { sidecartest.NoError(t, os.Remove(filler)) }
	}
	remount = func(flags uintptr) { sidecartest.NoError(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT|flags, "")) }
	return filepath.Join(disk, "data"), fill, remount
}

// refusedWrites waits until a write is refused, and returns the reason.
func refusedWrites(t *testing.T, p *process) string {
	t.Helper()
	for n := range 4000 {
		_, err := p.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: sidecartest.Direct(
				"writer",
			), Messages: []*memsidecarv1.Message{sidecartest.Said(fmt.Sprint("nothing much ", n, strings.Repeat(" again", 10_000)))},
		})
		if err != nil {
			sidecartest.WantCode(t, err, codes.Unavailable)
			return err.Error()
		}
	}
	t.Fatal("nothing is refused")
	return ""
}

// storeMemories stores the data that wantReadable reads.
func storeMemories(t *testing.T, p *process, users ...string) {
	t.Helper()
	for _, user := range users {
		resp := sidecartest.Must(p.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: sidecartest.Direct(
				user,
			), Messages: []*memsidecarv1.Message{sidecartest.Said("I am allergic to peanuts.")}, Wait: sidecartest.LongWait(),
		}))(t)
		if resp.GetConsideration().GetState() != sidecartest.Remembered {
			t.Fatalf("the consideration is %s", resp)
		}
		scope := sidecartest.Direct(user)
		scope.SessionId = "s-" + user
		_ = sidecartest.Must(memsidecarv1.NewSessionServiceClient(p.conn).AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{
			Scope: scope, Messages: []*memsidecarv1.Message{sidecartest.Said("We talked about boats."), sidecartest.Answered("And about harbours.")},
		}))(t)
	}
}

// wantReadable checks that all data of a user can be read. Retrieve's degradations must contain reason.
func wantReadable(t *testing.T, p *process, user, reason string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
	defer cancel()
	scope := sidecartest.Direct(user)
	inSession := sidecartest.Direct(user)
	inSession.SessionId = "s-" + user
	found := sidecartest.Must(p.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: "peanuts"}))(t)
	if len(found.GetStanding()) != 1 || !strings.Contains(fmt.Sprint(found.GetDegraded()), reason) {
		t.Errorf("Retrieve answers %s, want one memory, degraded by %q", found, reason)
	}
	sessions, digests := memsidecarv1.NewSessionServiceClient(p.conn), memsidecarv1.NewDigestServiceClient(p.conn)
	window := sidecartest.Must(sessions.GetContext(ctx, &memsidecarv1.GetContextRequest{Scope: inSession}))(t)
	if len(window.GetMessages()) != 2 {
		t.Errorf("GetContext answers %s", window)
	}
	if n := len(sidecartest.Must(p.ListMemories(ctx, &memsidecarv1.ListMemoriesRequest{Scope: scope}))(t).GetMemories()); n != 1 {
		t.Errorf("%d memories are listed", n)
	}
	if s := sidecartest.Must(p.GetStatus(ctx, &memsidecarv1.GetStatusRequest{}))(t); s.GetQueue() == nil {
		t.Errorf("the status is %s", s)
	}
	export := sidecartest.Must(p.ExportUser(ctx, &memsidecarv1.ExportUserRequest{Scope: &memsidecarv1.Scope{UserId: user}}))(t)
	parts := 0
	for {
		if _, err := export.Recv(); err != nil {
			if err != io.EOF { //nolint:errorlint // grpc returns it as it is
				t.Errorf("exporting: %v", err)
			}
			break
		}
		parts++
	}
	if parts < 2 {
		t.Errorf("the export has %d parts", parts)
	}
	_ = sidecartest.Must(sessions.ListMessages(ctx, &memsidecarv1.ListMessagesRequest{Scope: inSession}))(t)
	_ = sidecartest.Must(sessions.ListSessions(ctx, &memsidecarv1.ListSessionsRequest{Scope: scope}))(t)
	_ = sidecartest.Must(p.ListConsiderations(ctx, &memsidecarv1.ListConsiderationsRequest{Scope: scope}))(t)
	_ = sidecartest.Must(digests.ListDigests(ctx, &memsidecarv1.ListDigestsRequest{Scope: scope}))(t)
	_ = sidecartest.Must(digests.GetNotebook(ctx, &memsidecarv1.GetNotebookRequest{Scope: scope}))(t)
	if _, err := digests.GetDigest(ctx, &memsidecarv1.GetDigestRequest{Scope: scope}); err != nil && status.Code(err) != codes.NotFound {
		t.Errorf("GetDigest: %v", err)
	}
	_ = sidecartest.Must(memsidecarv1.NewTraceServiceClient(p.conn).ListTraces(ctx, &memsidecarv1.ListTracesRequest{Scope: scope}))(t)
	_ = sidecartest.Must(p.GetUserSettings(ctx, &memsidecarv1.GetUserSettingsRequest{Scope: scope}))(t)
}

var operatorsLine = regexp.MustCompile(`health checks and metrics are served.* address=(\S+)`)

// page returns a page of the operators' port.
func (p *process) page(t *testing.T, path string) (code int, text string) {
	t.Helper()
	sidecartest.Eventually(t, "the operators' port is open", func() bool { return operatorsLine.MatchString(p.log.String()) })
	address := "http://" + operatorsLine.FindStringSubmatch(p.log.String())[1]
	request := sidecartest.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil))(t)
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, string(sidecartest.Must(io.ReadAll(resp.Body))(t))
}

// wantReadOnly checks every report of a storage that can be read but not written.
func wantReadOnly(t *testing.T, p *process, reason string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
	defer cancel()
	health := healthpb.NewHealthClient(p.conn)
	for service, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{
		"": healthpb.HealthCheckResponse_SERVING, "storage": healthpb.HealthCheckResponse_NOT_SERVING,
		"storage.read": healthpb.HealthCheckResponse_SERVING,
	} {
		sidecartest.Eventually(t, "health says how storage is", func() bool {
			return sidecartest.Must(health.Check(ctx, &healthpb.HealthCheckRequest{Service: service}))(t).GetStatus() == want
		})
	}
	if c := p.storage(t); c.GetBreaker() == memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || !strings.Contains(c.GetReason(), reason) ||
		!strings.Contains(c.GetReason(), "can be read") {
		t.Errorf("the status of storage is %s", c)
	}
	if code, text := p.page(t, "/readyz"); code != http.StatusOK || !strings.Contains(text, reason) {
		t.Errorf("/readyz is answered %d: %q", code, text)
	}
	_, text := p.page(t, "/metrics")
	for _, line := range []string{
		`memsidecar_breaker_state{component="storage",state="closed"} 1`,
		`memsidecar_breaker_state{component="storage_writes",state="closed"} 0`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// TestFullDiskServesReads: While the disk is full, stored data can be read, also of users whose index is not loaded, and after a restart.
// Writes are refused with the reason, and accepted again when there is room.
func TestFullDiskServesReads(t *testing.T) {
	t.Parallel()
	dir, fill, _ := smallDisk(t)
	observed := []string{"MEMSIDECAR_HTTP_LISTEN=127.0.0.1:0"}
	p := spawn(t, dir, observed...)
	storeMemories(t, p, "anna", "ben", "cem", "dora", "eva")
	p.kill(t)
	p = spawn(t, dir, observed...) // no index is loaded
	free := fill()
	if reason := refusedWrites(t, p); !strings.Contains(reason, "full") {
		t.Errorf("a write is refused with %q", reason)
	}
	wantReadable(t, p, "anna", "full")
	wantReadOnly(t, p, "full")
	wantReadable(t, p, "ben", "full") // still so later

	p.kill(t)
	p = spawn(t, dir, observed...)
	_ = refusedWrites(t, p)
	wantReadable(t, p, "cem", "full")
	wantReadOnly(t, p, "full")
	free()
	p.servesAgain(t)
	storeMemories(t, p, "fay")

	p.end(t) // its log is emptied and removed
	free = fill()
	p = spawn(t, dir, observed...)
	_ = refusedWrites(t, p)
	wantReadable(t, p, "dora", "")
	wantReadOnly(t, p, "")
	free()
	p.servesAgain(t)
	storeMemories(t, p, "gina")
	wantReadable(t, p, "eva", "")
	if code, text := p.page(t, "/readyz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("with room again /readyz is answered %d: %q", code, text)
	}
}

// TestReadOnlyDiskServesReads: A sidecar that starts on a read-only file system serves the stored data.
func TestReadOnlyDiskServesReads(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*process, *testing.T){
		"killed": func(p *process, t *testing.T) { t.Helper(); p.kill(t) }, "stopped": func(p *process, t *testing.T) { t.Helper(); p.end(t) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, remount := smallDisk(t)
			observed := []string{"MEMSIDECAR_HTTP_LISTEN=127.0.0.1:0"}
			p := spawn(t, dir, observed...)
			storeMemories(t, p, "anna")
			end(p, t)
			remount(syscall.MS_RDONLY)
			p = spawn(t, dir, observed...)
			wantReadable(t, p, "anna", "read-only")
			wantReadOnly(t, p, "read-only")
			remount(0)
			p.servesAgain(t)
			storeMemories(t, p, "ben")
			wantReadable(t, p, "anna", "")
		})
	}
}

// end stops the process with the signal that an operator would send.
func (p *process) end(t *testing.T) {
	t.Helper()
	_ = p.conn.Close() // so that Stop does not wait for it
	sidecartest.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	if err := p.command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
}
