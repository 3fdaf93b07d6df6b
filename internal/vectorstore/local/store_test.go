package local_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
	"github.com/memsidecar/memsidecar/internal/testkit/leftover"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	"github.com/memsidecar/memsidecar/internal/vectorstore/local"
	"github.com/memsidecar/memsidecar/internal/vectorstore/vectorstoretest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const (
	roomy = 1 << 30 // nothing is evicted
	tiny  = 1       // every unused index is evicted
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

func newStore(db sqldb.Access, budget int64) *local.Store {
	return local.New(db, local.Options{Fingerprint: vectorstoretest.Fingerprint, IndexBudget: budget})
}

// TestConformance runs the suite with an unlimited and with an empty cache: the results must be the same.
func TestConformance(t *testing.T) {
	empty := t.TempDir()
	if err := openStorage(t, empty).Close(); err != nil {
		t.Fatal(err)
	}
	for name, budget := range map[string]int64{"roomy": roomy, "tiny": tiny} {
		t.Run(name, func(t *testing.T) {
			vectorstoretest.Run(t, func(t *testing.T) vectorstore.Store {
				// A copy: creating the tables takes most of a test's time.
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(empty)); err != nil {
					t.Fatal(err)
				}
				return newStore(openStorage(t, dir), budget)
			})
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

// TestDeletedTextIsGone: A deleted text is not on the disk, also if an edit overwrote it or a reason quotes it.
func TestDeletedTextIsGone(t *testing.T) {
	dir := t.TempDir()
	db := openStorage(t, dir)
	store := newStore(db, roomy)
	user := memory.User{Namespace: "n", ID: "u"}
	entry := func(id, text string) vectorstore.Entry {
		now := time.Now()
		return vectorstore.Entry{StatementID: id, Memory: memory.Memory{
			ID: id, Text: text, Mentions: 1, CreatedAt: now, UpdatedAt: now, ObservedAt: now, LastSaidAt: now,
		}}
	}
	first := entry("a", "lives in a xylophone shop")
	successor := entry("b", "lives on a xylophone farm")
	successor.Supersedes, successor.Reason = []string{"a"}, "not a xylophone shop any more"
	last := entry("c", "lives in town")
	last.Supersedes, last.Reason = []string{"b"}, "not on a xylophone farm any more"
	if _, err := store.Apply(t.Context(), user, []vectorstore.Entry{first}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"lives in the xylophone shop", "lives above the xylophone shop"} {
		if _, err := store.Update(t.Context(), user, "a", memory.Everything(), vectorstore.Patch{Text: &text, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	applied, err := store.Apply(t.Context(), user, []vectorstore.Entry{successor, last})
	if err != nil || applied[0].Action != memory.ActionUpdated || applied[1].Action != memory.ActionUpdated {
		t.Fatal(applied, err)
	}
	if _, _, err := store.Revert(t.Context(), user, "c", "", memory.Everything(), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if err := store.Delete(t.Context(), user, id, memory.Everything()); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := db.Purge(t.Context()); !done || err != nil {
		t.Fatalf("purged %t, %v", done, err)
	}
	if names := leftover.In(t, dir, "xylophone"); names != nil {
		t.Errorf("the text is still in %q", names)
	}
}
