package sqlite_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/queue/queuetest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

func TestQueue(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queue.Store {
		return sqlite.NewQueue(open(t, sqlite.Options{Dir: t.TempDir()}))
	})
}
