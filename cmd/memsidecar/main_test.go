package main

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/memsidecar/memsidecar/internal/sidecar"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

func TestMain(m *testing.M) {
	code := sidecartest.Main(m)
	benchmarks.print(os.Stdout)
	benchmarks.removeFixtures()
	os.Exit(code)
}

// runServe runs `memsidecar serve` in this process on an empty folder, until stop is called.
func runServe(t *testing.T, environ []string, args ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan int, 1)
	log := &sidecartest.Log{}
	go func() {
		args := append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir()}, args...)
		done <- Main{Args: args, Environ: environ, Stdout: log, Stderr: log, Started: func(*sidecar.Sidecar) { close(ready) }}.Run(ctx)
	}()
	select {
	case <-ready:
	case code := <-done:
		cancel()
		t.Fatalf("serve ended with %d: %s", code, log)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("serve ended with %d: %s", code, log)
		}
	})
	t.Cleanup(stop)
	return stop
}
