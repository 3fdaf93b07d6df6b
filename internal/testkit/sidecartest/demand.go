package sidecartest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Variable names required tools beyond Go, such as "python node grpcurl". Without it, `go test ./...` skips the tests that need them;
// with it, a missing tool is a failure. .ci/run sets it.
const Variable = "MEMSIDECAR_CLIENTS"

// Demanded skips a test that needs a tool, unless Variable names it.
func Demanded(t testing.TB, name string) {
	t.Helper()
	if !slices.Contains(strings.Fields(os.Getenv(Variable)), name) {
		t.Skipf("it needs more than Go; to run it, set %s=%s", Variable, name)
	}
}
