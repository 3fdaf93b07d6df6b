package local_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	"github.com/memsidecar/memsidecar/internal/vectorstore/local"
	"github.com/memsidecar/memsidecar/internal/vectorstore/vectorstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	roomy = 1 << 30 // nothing is ever evicted
	tiny  = 1       // whatever is not in use is evicted
)

func openStorage(t *testing.T, dir string) *sqlite.Storage {
	t.Helper()
	storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	})
	return storage
}

func newStore(db sqlite.Access, budget int64) *local.Store {
	return local.New(db, local.Options{Fingerprint: vectorstoretest.Fingerprint, IndexBudget: budget})
}

// TestConformance runs with room for everything and with room for nothing: the answers must be the same.
func TestConformance(t *testing.T) {
	for name, budget := range map[string]int64{"roomy": roomy, "tiny": tiny} {
		t.Run(name, func(t *testing.T) {
			vectorstoretest.Run(t, func(t *testing.T) vectorstore.Store { return newStore(openStorage(t, t.TempDir()), budget) })
		})
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	var open *sqlite.Storage
	vectorstoretest.RunReopen(t, func(t *testing.T) vectorstore.Store {
		if open != nil {
			if err := open.Close(); err != nil {
				t.Fatal(err)
			}
		}
		open = openStorage(t, dir)
		return newStore(open, roomy)
	})
}
