// Package leaks finds goroutines that outlive their owner, for tests.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// timeout is how long an ending goroutine may take on a loaded machine. goleak itself waits for less than half a second.
const timeout = time.Minute

// Main is the body of TestMain: it runs the tests, finds leaked goroutines, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := find(); err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func find() (err error) {
	for begun := time.Now(); time.Since(begun) < timeout; {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}
