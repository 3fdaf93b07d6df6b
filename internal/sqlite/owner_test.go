//go:build unix

package sqlite_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// TestReplacedDatabaseKeepsItsOwner: A file that replaces the database keeps its owner, also when root replaced it.
func TestReplacedDatabaseKeepsItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir, key := t.TempDir(), newKey(t)
	takeNotes(t, dir, seal.Key{})
	path := sqlite.DatabasePath(dir)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := sqlite.MakeBackup(t.Context(), dir, backup, sqlite.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	const user, group = 1234, 5678
	if err := os.Chown(path, user, group); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	want := func(when string) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if is, ok := info.Sys().(*syscall.Stat_t); !ok || is.Uid != user || is.Gid != group || info.Mode().Perm() != 0o640 {
			t.Errorf("%s it is %+v", when, is)
		}
	}
	if _, err := sqlite.Reencrypt(t.Context(), dir, seal.Key{}, key); err != nil {
		t.Fatal(err)
	}
	want("encrypted")
	if _, err := (sqlite.Files{}).Restore(t.Context(), backup, dir, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	want("restored")
}
