package sqlstore_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/trace/tracetest"
)

func TestTraces(t *testing.T) {
	tracetest.Run(t, func(t *testing.T) trace.Store {
		return sqlstore.NewTraces(dbtest.New(t))
	})
}
