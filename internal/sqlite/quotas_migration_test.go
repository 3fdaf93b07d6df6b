package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// TestWhatWasStoredBeforeQuotasCounts: a database from before them is counted when it is opened.
func TestWhatWasStoredBeforeQuotasCounts(t *testing.T) {
	dir := folder(t)
	migration, err := os.ReadFile(filepath.Join("migrations", "00014_quotas.sql"))
	if err != nil {
		t.Fatal(err)
	}
	// Back to how it was before, as far as this migration is concerned.
	statements := []string{`DROP TABLE namespace_usage`}
	for line := range strings.Lines(string(migration)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "CREATE" && words[1] == "TRIGGER" {
			statements = append([]string{"DROP TRIGGER " + words[2]}, statements...)
		}
	}
	for _, statement := range append(statements, `ALTER TABLE users DROP COLUMN message_bytes`) {
		raw(t, dir, statement)
	}
	raw(t, dir, string(migration))
	r := check(t, sqlite.DatabasePath(dir), false)
	if !r.Sound() {
		t.Errorf("what was counted is wrong: %+v", r.Findings)
	}
}
