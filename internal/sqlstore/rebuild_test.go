package sqlstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
)

// reindex rebuilds the derived data of a data folder.
func reindex(ctx context.Context, dir string, o sqlstore.RebuildOptions) (r sqlstore.Rebuilt, err error) {
	err = sqlite.Reindex(ctx, dir, discard, seal.Key{}, func(ctx context.Context, db sqldb.Access) (err error) {
		r, err = sqlstore.Rebuild(ctx, db, o)
		return err
	})
	return r, err
}

// TestReindex: However derived data was damaged, it is restored; also if the rebuild is interrupted at any point and a sidecar or another
// run continues it.
func TestReindex(t *testing.T) {
	dir := dbtest.Folder(t)
	dbtest.Raw(t, dir, `DELETE FROM message_postings WHERE term >= 'm'`)
	file := sqlite.DatabasePath(dir)
	if r := dbtest.Check(t, file, false); r.Sound() {
		t.Fatal("nothing is broken")
	}
	for stopAt := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		step := 0
		_, err := reindex(ctx, dir, sqlstore.RebuildOptions{Progress: func(string, int64, int64) {
			if step++; step > stopAt {
				cancel()
			}
		}})
		cancel()
		t.Logf("stopped at %d of %d: %v", stopAt, step, err)
		if r := dbtest.Check(t, file, false); !r.Sound() {
			t.Errorf("interrupted at %d: %+v", stopAt, r)
		}
	}
	done, err := reindex(t.Context(), dir, sqlstore.RebuildOptions{})
	if err != nil || done.Postings == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if r := dbtest.Check(t, file, false); !r.Sound() {
		t.Errorf("after reindexing: %+v", r)
	}
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	h := newHistory(t, s)
	h.finds(query(memory.User{Namespace: "n", ID: "ann"}, 5), "violet parrot", "the violet parrot")
	if n := dbtest.Value[int](t, s, `SELECT count(*) FROM embeddings`); n != 0 {
		t.Errorf("%d vectors are left", n)
	}
	if n := dbtest.Value[int](t, s, `SELECT complete FROM fingerprints`); n != 0 {
		t.Error("nothing says that vectors are missing")
	}
	if _, err := reindex(t.Context(), dir, sqlstore.RebuildOptions{}); !errors.Is(err, sqlite.ErrLocked) {
		t.Errorf("beside a sidecar: %v", err)
	}
}
