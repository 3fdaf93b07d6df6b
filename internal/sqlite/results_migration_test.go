package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// TestRegistryBeforeLastSeenKeepsItems: the items of a database from before items had a time at which they were last seen are known, and
// age from when they were last put.
func TestRegistryBeforeLastSeenKeepsItems(t *testing.T) {
	dir := t.TempDir()
	migration, err := os.ReadFile(filepath.Join("migrations", "00018_last_seen.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		// Back to how it was before, as far as this migration is concerned.
		`DROP INDEX result_items_by_time; DROP INDEX result_items_by_age; ALTER TABLE result_items DROP COLUMN last_seen;
		CREATE INDEX result_items_by_time ON result_items (registry_row, first_seen, row);
		CREATE INDEX result_items_by_age ON result_items (first_seen);
		CREATE INDEX result_list_items_by_key ON result_list_items (key, list_row)`,
		`INSERT INTO result_registries (row, namespace, kind, channel_kind, channel_id, visibility, member, list)
			VALUES (1, 'n', 'namespace', '', '', '', '', 'default')`,
		`INSERT INTO result_items (registry_row, key, title, attributes, first_seen, notified, updated_at)
			VALUES (1, 'imported', '', '', 100, 1, 900), (1, 'old', '', '', 200, 1, 200), (1, 'ahead', '', '', 800, 0, 700)`,
		string(migration),
	} {
		raw(t, dir, statement)
	}
	store := sqlite.NewResults(open(t, sqlite.Options{Dir: dir}))
	registry, _ := lists.RegistryOf(memory.Scope{Namespace: "n"}, "", "")
	limit := lists.Limits{MaxItems: 2}
	done, err := store.Put(t.Context(), lists.Put{
		View: lists.View{Registry: registry}, Mode: lists.Scheduled, Items: []lists.Item{{Key: "ahead"}}, Limits: limit,
	})
	if err != nil || done.Evicted != 1 || done.Items[0].New {
		t.Errorf("put %+v, %v", done, err)
	}
	page, err := store.Items(t.Context(), lists.View{Registry: registry}, "", 10)
	if err != nil || len(page.Items) != 2 || page.Items[0].Key != "ahead" || page.Items[1].Key != "imported" {
		t.Errorf("kept %+v, %v", page.Items, err)
	}
	if r := check(t, sqlite.DatabasePath(dir), false); !r.Sound() {
		t.Errorf("the database is not sound: %+v", r.Findings)
	}
}
