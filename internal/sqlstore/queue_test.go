package sqlstore_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/queue/queuetest"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

func TestQueue(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queue.Store {
		return sqlstore.NewQueue(dbtest.New(t))
	})
}
