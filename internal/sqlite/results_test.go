package sqlite_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/results"
	"github.com/memsidecar/memsidecar/internal/results/resultstest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

func TestResults(t *testing.T) {
	resultstest.Run(t, func(t *testing.T) results.Store {
		return sqlite.NewResults(open(t, sqlite.Options{Dir: t.TempDir()}))
	})
}
