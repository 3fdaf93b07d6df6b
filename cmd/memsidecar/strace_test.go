//go:build !race && linux

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// needsStrace skips the test where programs cannot be traced. .ci/run installs strace and says whether it works.
func needsStrace(t *testing.T) {
	t.Helper()
	if err := straceWorks(); err != nil {
		t.Skip("strace does not work here, so no fault can be injected:", err)
	}
}

var straceWorks = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), sidecartest.Timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "strace", "-f", "--seccomp-bpf", "-o", os.DevNull, "true").CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
})

// wrap starts serve below another program, such as strace.
func wrap(t *testing.T, dir string, environ []string, wrapper ...string) (p *process, pid int) {
	t.Helper()
	p = spawnBy(t, wrapper, dir, environ...)
	parent := strconv.Itoa(p.command.Process.Pid)
	children := sidecartest.Must(os.ReadFile("/proc/" + parent + "/task/" + parent + "/children"))(t)
	pid = sidecartest.Must(strconv.Atoi(strings.Fields(string(children))[0]))(t)
	// Killing only strace would leave the sidecar running.
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return p, pid
}

// allFaults reports whether all cases run, not only the short ones: `make faults` sets POWER_LOSSES.
func allFaults() bool { return os.Getenv("POWER_LOSSES") != "" }
