package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestRuntimeMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		budget    int64
		container uint64
		want      int64 // in MiB
	}{
		{256, 0, 384},
		{256, 4096, 384}, // a larger container limit has no effect
		{256, 400, 304},
		{256, 100, 50},
		{2048, 0, 2176},
	} {
		if got := memoryLimit(c.budget*mebibyte, c.container*mebibyte); got != c.want*mebibyte {
			t.Errorf("a budget of %d MiB in a container of %d MiB: %d MiB, want %d", c.budget, c.container, got/mebibyte, c.want)
		}
	}
}

// TestServeLimitsMemory: serve sets a memory limit for its own run, unless the operator has set one.
func TestServeLimitsMemory(t *testing.T) {
	const mine = math.MaxInt64 / 2
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(mine))
	stop := runServe(t, []string{"GOMEMLIMIT=1GiB"})
	if got := debug.SetMemoryLimit(-1); got != mine {
		t.Errorf("with GOMEMLIMIT the limit became %d", got)
	}
	stop()
	stop = runServe(t, nil, "--set", "index.budget_mib=64")
	if got, most := debug.SetMemoryLimit(-1), memoryLimit(64*mebibyte, 0); got > most {
		t.Errorf("the limit is %d, want at most %d", got, most)
	}
	stop()
	if got := debug.SetMemoryLimit(-1); got != mine {
		t.Errorf("afterwards the limit is %d", got)
	}
}
