package sqlite_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/trace/tracetest"
)

func TestTraces(t *testing.T) {
	tracetest.Run(t, func(t *testing.T) trace.Store {
		return sqlite.NewTraces(open(t, sqlite.Options{Dir: t.TempDir()}))
	})
}
