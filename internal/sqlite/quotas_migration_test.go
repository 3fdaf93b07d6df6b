package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// TestWhatWasStoredBeforeQuotasCounts: a database from before them is counted when it is opened.
func TestWhatWasStoredBeforeQuotasCounts(t *testing.T) {
	dir := folder(t)
	// Back to how it was before, as far as these migrations are concerned.
	for _, statement := range []string{
		`DROP TRIGGER users_memories_counted`, `DROP TRIGGER users_deleted`, `DROP TRIGGER messages_deleted`,
		`DROP TRIGGER messages_rewritten`, `DROP TABLE namespace_usage`, `DROP TABLE usage_progress`, `ALTER TABLE users DROP COLUMN message_bytes`,
	} {
		raw(t, dir, statement)
	}
	for _, name := range []string{"00014_quotas.sql", "00015_tail.sql"} {
		migration, err := os.ReadFile(filepath.Join("migrations", name))
		if err != nil {
			t.Fatal(err)
		}
		raw(t, dir, string(migration))
	}
	r := check(t, sqlite.DatabasePath(dir), false)
	if !r.Sound() {
		t.Errorf("what was counted is wrong: %+v", r.Findings)
	}
}
