package sidecartest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// ToolsVariable names required tools beyond Go, such as "python node grpcurl". Without it, `go test ./...` skips the tests that need them;
// with it, a missing tool is a failure. grpcurl is built from tools/go.mod; the others must be installed. .ci/run sets it.
const ToolsVariable = "MEMSIDECAR_CLIENTS"

// RequireTool skips a test that needs a tool, unless ToolsVariable names it.
func RequireTool(t testing.TB, name string) {
	t.Helper()
	if !slices.Contains(strings.Fields(os.Getenv(ToolsVariable)), name) {
		t.Skipf("it needs more than Go; to run it, set %s=%s", ToolsVariable, name)
	}
}
