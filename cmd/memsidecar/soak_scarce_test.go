//go:build !race && unix

package main

import (
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// soakRunsVar is the percentage of the time for which TestSoak lets the sidecar run, as on a shared machine. soakForgetsVar is the
// percentage of calls that forget a user.
const soakRunsVar, soakForgetsVar = "SOAK_RUNS", "SOAK_FORGETS"

func soakPercent(t *testing.T, name string, otherwise float64) float64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	percent, err := strconv.ParseFloat(v, 64)
	if err != nil || percent < 0 || percent > 100 {
		t.Fatalf("%s=%q: write a number from 0 to 100", name, v)
	}
	return percent
}

// scarce repeatedly stops the process, so that it runs for this percentage of the time, until the test calls the function.
func (s *soak) scarce(percent float64) (plenty func()) {
	if percent >= 100 {
		return func() {}
	}
	const turn = 100 * time.Millisecond
	runs := time.Duration(percent / 100 * float64(turn))
	end, ended := make(chan struct{}), make(chan struct{})
	send := func(signal syscall.Signal) {
		if err := s.command.Process.Signal(signal); err != nil {
			s.Error(err)
		}
	}
	go func() {
		defer close(ended)
		for {
			send(syscall.SIGSTOP)
			time.Sleep(turn - runs)
			send(syscall.SIGCONT)
			select {
			case <-time.After(runs):
			case <-end:
				return
			}
		}
	}()
	plenty = sync.OnceFunc(func() {
		close(end)
		<-ended
	})
	s.Cleanup(plenty)
	return plenty
}
