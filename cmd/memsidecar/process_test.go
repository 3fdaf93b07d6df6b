//go:build unix

package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestProcessStartsAgainOnItsFolder: A process listens at its address, is killed, restarted on the same folder, and stopped.
func TestProcessStartsAgainOnItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{Dir: dir, Settings: []string{"http.listen=127.0.0.1:0"}})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.HTTP+"/healthz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	s.Kill()
	if err := s.Stop(); err != nil {
		t.Errorf("stopping a killed process: %v", err)
	}

	socket := filepath.Join(dir, "a socket")
	again := sidecartest.StartProcess(t, sidecartest.ProcessOptions{Dir: dir, Listen: "unix:" + socket, Settings: []string{"log.format=json"}})
	if again.Addr != "unix:"+socket {
		t.Errorf("it listens on %q", again.Addr)
	}
	if err := again.Stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(again.Log(), "stopped") {
		t.Errorf("it was not asked to stop:\n%s", again.Log())
	}
	if _, err := os.Stat(filepath.Join(dir, "memsidecar.db")); err != nil {
		t.Errorf("a folder that is given stays: %v", err)
	}
}

// TestProcessThatCannotStartSaysWhy: The error says why the sidecar cannot start.
func TestProcessThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	if _, err := sidecartest.LaunchProcess(sidecartest.ProcessOptions{Settings: []string{"no.such=1"}}); err == nil || !strings.Contains(err.Error(), "no.such") {
		t.Errorf("got %v", err)
	}
}
