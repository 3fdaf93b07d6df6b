package sidecartest

import (
	"os"
	"os/exec"
	"testing"
)

// Variable demands the tests that need more than Go: Python, Node, grpcurl. Without it `go test ./...` skips them; with it, a
// tool that is missing is a failure. .ci/run sets it.
const Variable = "MEMSIDECAR_CLIENTS"

// Program returns the path of a program that is not part of Go. The test is skipped unless it is demanded.
func Program(t testing.TB, name, remedy string) string {
	t.Helper()
	Demanded(t)
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not there: %s", name, remedy)
	}
	return path
}

// Demanded skips a test unless it is demanded.
func Demanded(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skip("it needs more than Go; set " + Variable + "=1 to run it")
	}
}
