package listen

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAddresses(t *testing.T) {
	for address, want := range map[string]struct{ wrong, local bool }{
		"127.0.0.1:7420":           {false, true},
		"127.1.2.3:0":              {false, true},
		"[::1]:7420":               {false, true},
		"[::ffff:127.0.0.1]:7420":  {false, true},
		"localhost:7420":           {false, true},
		"unix:/run/memsidecar":     {false, true},
		"0.0.0.0:7420":             {false, false},
		":7420":                    {false, false},
		"[::]:7420":                {false, false},
		"192.168.1.2:7420":         {false, false},
		"example.org:7420":         {false, false},
		"localhost.example.org:1":  {false, false},
		"127.0.0.1.example.org:80": {false, false},
		"127.0.0.1":                {true, false},
		"127.0.0.1:65536":          {true, true},
		"unix:memsidecar.sock":     {true, true},
		"unix:":                    {true, true},
	} {
		if got := AddressProblem(address) != ""; got != want.wrong {
			t.Errorf("%s is wrong: %v (%s)", address, got, AddressProblem(address))
		}
		if got := IsLocal(address); got != want.local {
			t.Errorf("%s is local: %v", address, got)
		}
	}
	for text, want := range map[string]fs.FileMode{"0660": 0o660, "600": 0o600, "0": 0} {
		if got, err := ParseMode(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "rw", "0888", "4755", "-1"} {
		if got, err := ParseMode(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// socketDir returns a folder with a short name: paths of sockets are limited in length.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ms") //nolint:usetesting // t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func listenOn(t *testing.T, path string, mode fs.FileMode) net.Listener {
	t.Helper()
	l, err := Listen(t.Context(), "unix:"+path, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// connects reports whether a server listens there.
func connects(t *testing.T, path string) bool {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

func TestUnixSocket(t *testing.T) {
	dir := socketDir(t)
	path := filepath.Join(dir, "s")
	l := listenOn(t, path, 0o620)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o620 || !connects(t, path) || l.Addr().String() != "unix:"+path {
		t.Fatalf("%s is %v, %v", l.Addr(), info.Mode(), err)
	}
	if _, err := Listen(t.Context(), "unix:"+path, 0o600); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second one: %v", err)
	}
	if !connects(t, path) {
		t.Error("the second one breaks the first")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestStaleSocketIsReplaced: A socket of a dead process is replaced. Other files are not.
func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	dead, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false) //nolint:errcheck // it is one
	_ = dead.Close()
	first := listenOn(t, path, 0o600)
	if !connects(t, path) {
		t.Error("no server listens")
	}
	// A new socket of another process is not removed on close.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listenOn(t, path, 0o600)
	_ = first.Close()
	if !connects(t, path) {
		t.Error("the second's socket went with the first")
	}

	file := filepath.Join(socketDir(t), "f")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), "unix:"+file, 0o600); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("in the place of a file: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if _, err := Listen(t.Context(), "unix:/"+strings.Repeat("x", 200), 0o600); err == nil {
		t.Error("a path that is too long is accepted")
	}
}
