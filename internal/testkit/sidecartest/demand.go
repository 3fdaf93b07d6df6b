package sidecartest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Variable names what is demanded beyond Go, such as "python node grpcurl". Without it `go test ./...` skips the tests that need
// these; with it, a tool that is missing is a failure. .ci/run sets it.
const Variable = "MEMSIDECAR_CLIENTS"

// Demanded skips a test that needs more than Go, unless Variable names it.
func Demanded(t testing.TB, name string) {
	t.Helper()
	if !slices.Contains(strings.Fields(os.Getenv(Variable)), name) {
		t.Skipf("it needs more than Go; to run it, set %s=%s", Variable, name)
	}
}
