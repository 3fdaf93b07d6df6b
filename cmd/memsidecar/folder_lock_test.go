//go:build !race && linux

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/sidecar"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestRemovedLockFileStillLocks: Removing the lock file does not admit a second sidecar, nor a command that needs exclusive access.
// Commands that work alongside a sidecar still do.
func TestRemovedLockFileStillLocks(t *testing.T) {
	t.Parallel()
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup.db")
	p := spawn(t, dir)
	l := &ledger{acked: map[string]string{}}
	try(t, p, l, 0, 5)
	const refused = "uses this data folder"
	for _, test := range []struct {
		says string // part of the refusal; "" if it is allowed
		args []string
	}{
		{refused, []string{"serve", "--listen", "127.0.0.1:0"}},
		{"", []string{"backup", backup}},
		{"", []string{"check"}},
		{refused, []string{"restore", "--replace", backup}},
		{refused, []string{"reindex"}},
		{refused, []string{"key", "encrypt", "--set", "encryption.key=" + sidecartest.KeyText}},
	} {
		sidecartest.NoError(t, os.Remove(filepath.Join(dir, "memsidecar.lock")))
		code, errs := run(t, append(test.args, "--data-dir", dir)...)
		if (code == 0) != (test.says == "") || !strings.Contains(errs, test.says) {
			t.Errorf("%s: exit code %d, said %q", test.args, code, errs)
		}
		sidecartest.NoError(t, os.WriteFile(filepath.Join(dir, "memsidecar.lock"), nil, 0o600)) // some commands create no lock file
		try(t, p, l, len(l.acked), len(l.acked)+5)
	}
	if len(l.acked) != 35 {
		t.Errorf("of 35 dialogues %d are acknowledged", len(l.acked))
	}
	l.check(t, p)
	p.kill(t)
	p = spawn(t, dir) // a killed process leaves no lock
	l.check(t, p)
}

// run runs a command in this process. A sidecar is stopped when it is ready.
func run(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	var errs sidecartest.Log
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	m := Main{Args: args, Environ: []string{"HOME=" + t.TempDir()}, Stdout: io.Discard, Stderr: &errs, Started: func(*sidecar.Sidecar) { stop() }}
	return m.Run(ctx), errs.String()
}
