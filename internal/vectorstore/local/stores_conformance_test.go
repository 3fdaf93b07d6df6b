package local_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/vectorstore/vectorstoretest"
)

func openStores(t *testing.T) vectorstoretest.Stores {
	storage := openStorage(t, t.TempDir())
	store := newStore(storage, roomy)
	return vectorstoretest.Stores{
		Store:    store,
		Backfill: store,
		Sweep:    store,
		Survey:   store,
		Close: func() {
			if err := storage.Close(); err != nil {
				t.Error(err)
			}
		},
	}
}

func TestBackfill(t *testing.T) { vectorstoretest.RunBackfill(t, openStores) }

func TestSweep(t *testing.T) { vectorstoretest.RunSweep(t, openStores) }

func TestSurvey(t *testing.T) { vectorstoretest.RunSurvey(t, openStores) }
