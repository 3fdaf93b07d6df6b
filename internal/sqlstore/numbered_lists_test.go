package sqlstore_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/lists/liststest"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
)

func TestNumberedLists(t *testing.T) {
	liststest.Run(t, func(t *testing.T) lists.Store {
		return sqlstore.NewNumberedLists(dbtest.New(t))
	})
}
