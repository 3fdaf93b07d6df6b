package sqlite_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/lists/resultstest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

func TestResults(t *testing.T) {
	resultstest.Run(t, func(t *testing.T) lists.Store {
		return sqlite.NewResults(open(t, sqlite.Options{Dir: t.TempDir()}))
	})
}
