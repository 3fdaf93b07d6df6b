package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"
)

// TestMigratedSessionsBelongToTheirUsers: In older databases session ids were unique for the namespace. After the migration such a session belongs to its
// user.
func TestMigratedSessionsBelongToTheirUsers(t *testing.T) {
	dir := dbtest.Folder(t)
	// Undo the migration.
	for _, statement := range []string{
		`DROP INDEX sessions_by_id`, `DROP INDEX sessions_deleting`, `DROP INDEX sessions_by_age`, `UPDATE sessions SET ref = id`,
		`ALTER TABLE sessions DROP COLUMN id`, `ALTER TABLE sessions RENAME COLUMN ref TO id`,
		`CREATE INDEX sessions_deleting ON sessions (row) WHERE id IS NULL`,
		`CREATE INDEX sessions_by_age ON sessions (namespace, oldest_at) WHERE id IS NOT NULL`,
	} {
		dbtest.Raw(t, dir, statement)
	}
	migration, err := os.ReadFile("migrations/00017_session_refs.sql")
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Raw(t, dir, string(migration))
	if r := dbtest.Check(t, sqlite.DatabasePath(dir), false); !r.Sound() {
		t.Errorf("the database is %+v", r.Findings)
	}
	db := dbtest.Open(t, sqlite.Options{Dir: dir})
	sessions := sqlstore.NewSessions(db, sqlstore.NewQueue(db))
	of := func(user string) session.Viewer {
		return session.Viewer{Namespace: "n", UserID: user, Audience: memory.Everything()}
	}
	got, err := sessions.Get(t.Context(), of("ann"), "s")
	if err != nil || got.ID != "s" || got.Messages == 0 {
		t.Errorf("ann's session is %+v, %v", got, err)
	}
	own, created, err := sessions.Switch(t.Context(), of("zoe"), "s", got.UpdatedAt)
	if err != nil || !created || own.Messages != 0 {
		t.Errorf("zoe has %+v, %t, %v", own, created, err)
	}
	again, err := sessions.Get(t.Context(), of("ann"), "s")
	if err != nil || again.Messages != got.Messages || again.Ref == own.Ref {
		t.Errorf("ann's session became %+v, %v", again, err)
	}
}

// TestMigrationCountsExistingData: A database from before quotas is counted when it is opened.
func TestMigrationCountsExistingData(t *testing.T) {
	dir := dbtest.Folder(t)
	// Undo these migrations.
	for _, statement := range []string{
		`DROP TRIGGER users_memories_counted`, `DROP TRIGGER users_deleted`, `DROP TRIGGER messages_deleted`,
		`DROP TRIGGER messages_rewritten`, `DROP TABLE namespace_usage`, `DROP TABLE usage_progress`, `ALTER TABLE users DROP COLUMN message_bytes`,
		`DROP INDEX users_by_activity`, `ALTER TABLE users DROP COLUMN message_count`, `ALTER TABLE users DROP COLUMN active_at`,
	} {
		dbtest.Raw(t, dir, statement)
	}
	for _, name := range []string{"00014_quotas.sql", "00015_tail.sql", "00019_user_activity.sql"} {
		migration, err := os.ReadFile(filepath.Join("migrations", name))
		if err != nil {
			t.Fatal(err)
		}
		dbtest.Raw(t, dir, string(migration))
	}
	r := dbtest.Check(t, sqlite.DatabasePath(dir), false)
	if !r.Sound() {
		t.Errorf("wrong counts: %+v", r.Findings)
	}
}

// TestRegistryBeforeLastSeenKeepsItems: Items of a database without last-seen times stay known, and age from when they were last put.
func TestRegistryBeforeLastSeenKeepsItems(t *testing.T) {
	dir := t.TempDir()
	migration, err := os.ReadFile(filepath.Join("migrations", "00018_last_seen.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		// Undo the migration.
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
		dbtest.Raw(t, dir, statement)
	}
	store := sqlstore.NewNumberedLists(dbtest.Open(t, sqlite.Options{Dir: dir}))
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
	if r := dbtest.Check(t, sqlite.DatabasePath(dir), false); !r.Sound() {
		t.Errorf("the database is not sound: %+v", r.Findings)
	}
}
