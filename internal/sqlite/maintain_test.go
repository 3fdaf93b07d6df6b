package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// TestCheckFindsEachKindOfDamage: Each kind of damage is found by its check and no other.
func TestCheckFindsEachKindOfDamage(t *testing.T) {
	dir := dbtest.Folder(t)
	if r := dbtest.Check(t, sqlite.DatabasePath(dir), false); !r.Sound() || len(r.Findings) < 9 {
		t.Fatalf("a sound database is %+v", r)
	}
	good, err := os.ReadFile(sqlite.DatabasePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ by, statement string }{
		{"references", `PRAGMA foreign_keys = OFF; DELETE FROM dialogues`},
		{"references", `PRAGMA foreign_keys = OFF; DELETE FROM fingerprints; UPDATE model_choices SET part = 'x'`},
		{"memories", `UPDATE memories SET provenance = '{'`},
		{"memories", `UPDATE memories SET superseded_by = id`},
		{"memories", `INSERT INTO users (id, namespace, user_id) VALUES (99, 'n', 'eve'); UPDATE memory_revisions SET user_row = 99`},
		{"memories", `UPDATE memory_revisions SET before = ''`},
		{"considerations", `UPDATE dialogues SET messages = '['`},
		{"considerations", `DELETE FROM considerations`},
		{"considerations", `UPDATE considerations SET due_at = NULL`},
		{"considerations", `UPDATE considerations SET state = 'failed'`},
		{"considerations", `UPDATE considerations SET namespace = 'x'`},
		{"considerations", `UPDATE considerations SET checkpoint = 'x'`},
		{"sessions", `UPDATE sessions SET messages = messages + 1`},
		{"sessions", `UPDATE sessions SET participants = 0`},
		{"sessions", `UPDATE sessions SET last_position = 1`},
		{"sessions", `INSERT INTO current_sessions SELECT 9, 'n', 12345, '', min(row) FROM sessions`},
		{"usage", `UPDATE users SET message_bytes = message_bytes + 1 WHERE user_id = 'ann'`},
		{"usage", `UPDATE users SET message_count = message_count - 1 WHERE user_id = 'ann'`},
		{"usage", `UPDATE users SET active_at = 0 WHERE user_id = 'ann'`},
		{"usage", `UPDATE namespace_usage SET message_bytes = message_bytes - 1`},
		{"usage", `UPDATE users SET memories = memories + 1 WHERE user_id = 'ann'`}, // the namespace's count changes with it
		{"usage", `UPDATE namespace_usage SET memories = memories + 1`},
		{"usage", `DELETE FROM namespace_usage`},
		{"vectors", `UPDATE embeddings SET vector = x'00000000'`},
		{"vectors", `UPDATE embeddings SET chunk = 1`},
		{"vectors", `DELETE FROM embeddings`},
		{"vectors", `UPDATE model_choices SET choice = 'local/y@2#1'`},
		{"keywords", `DELETE FROM message_postings WHERE term = (SELECT max(term) FROM message_postings)`},
		{"keywords", `UPDATE message_postings SET data = (SELECT data FROM message_postings ORDER BY length(data) DESC LIMIT 1)`},
		{"keywords", `UPDATE message_indexes SET messages = messages + 1`},
		{"keywords", `UPDATE message_indexes SET indexed_upto = indexed_upto - 1`},
		{"keywords", `DELETE FROM message_indexes`},
	} {
		remove(t, sqlite.DatabasePath(dir)+"-wal")
		write(t, sqlite.DatabasePath(dir), good)
		dbtest.Raw(t, dir, c.statement)
		for _, f := range dbtest.Check(t, sqlite.DatabasePath(dir), false).Findings {
			if wrong := f.Problems > 0; wrong != (f.Check == c.by) {
				t.Errorf("%s: %s finds %d problems: %q", c.statement, f.Check, f.Problems, f.Examples)
			} else if wrong && (f.Remedy == "" || len(f.Examples) == 0) {
				t.Errorf("%s: %+v has no remedy", c.statement, f)
			}
		}
	}
	bad := bytes.Clone(good)
	copy(bad[len(bad)-3*4096:], bytes.Repeat([]byte{0xAA}, 4096))
	remove(t, sqlite.DatabasePath(dir)+"-wal")
	write(t, sqlite.DatabasePath(dir), bad)
	if r := dbtest.Check(t, sqlite.DatabasePath(dir), false); r.Sound() || r.Findings[0].Check != "pages" || r.Findings[0].Problems == 0 {
		t.Errorf("a broken page: %+v", r.Findings[0])
	}
}

// TestBackupWhileWriting: A backup is a snapshot of one moment, however much is written meanwhile, and contains no deleted data.
func TestBackupWhileWriting(t *testing.T) {
	dir := dbtest.Folder(t)
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	dbtest.Exec(t, s, `CREATE TABLE pair (a INTEGER, b INTEGER)`, `INSERT INTO pair VALUES (0, 0)`,
		`CREATE TABLE notes (text TEXT)`, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
			INSERT INTO notes SELECT 'unmistakable secret' || hex(randomblob(500)) FROM n`, `DELETE FROM notes`)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	started := make(chan struct{})
	writer.Go(func() {
		once := sync.OnceFunc(func() { close(started) })
		for ctx.Err() == nil {
			if err := exec(t.Context(), s, `UPDATE pair SET a = a + 1`, `UPDATE pair SET b = b + 1`); err != nil {
				t.Error(err)
			}
			once()
		}
	})
	<-started
	file := filepath.Join(t.TempDir(), "backup.db")
	for i := range 3 {
		var reported int64
		b, err := sqlite.MakeBackup(t.Context(), dir, file, sqlite.BackupOptions{Replace: i > 0, Progress: func(_, total int64) { reported = total }})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if b.Bytes != int64(len(data)) || reported < b.Bytes || bytes.Contains(data, []byte("unmistakable")) {
			t.Errorf("%+v of %d bytes, reported %d, with deleted data: %v", b, len(data), reported, bytes.Contains(data, []byte("unmistakable")))
		}
		if r := dbtest.Check(t, file, true); !r.Sound() {
			t.Errorf("the backup is %+v", r)
		}
		restored := filepath.Join(t.TempDir(), "restored")
		if _, err := (sqlite.Files{}).Restore(t.Context(), file, restored, false, time.Now()); err != nil {
			t.Fatal(err)
		}
		other := dbtest.Open(t, sqlite.Options{Dir: restored})
		if a, b := dbtest.Value[int](t, other, `SELECT a FROM pair`), dbtest.Value[int](t, other, `SELECT b FROM pair`); a != b || a == 0 {
			t.Errorf("the backup has %d and %d", a, b)
		}
	}
	stop()
	writer.Wait()
	if _, err := sqlite.MakeBackup(t.Context(), dir, file, sqlite.BackupOptions{}); !errors.Is(err, sqlite.ErrExists) {
		t.Errorf("over another backup: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	_, err := sqlite.MakeBackup(cancelled, dir, filepath.Join(filepath.Dir(file), "other.db"), sqlite.BackupOptions{Progress: func(int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) && !strings.Contains(fmt.Sprint(err), "interrupt") {
		t.Errorf("interrupted: %v", err)
	}
	if names := list(t, filepath.Dir(file)); len(names) != 1 {
		t.Errorf("the folder of the backup has %q", names)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestRestoreRefusesInvalidFiles invalid files, and changes nothing then.
func TestRestoreRefusesInvalidFiles(t *testing.T) {
	dir := dbtest.Folder(t)
	backup := func(t *testing.T) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "backup.db")
		if _, err := sqlite.MakeBackup(t.Context(), dir, file, sqlite.BackupOptions{}); err != nil {
			t.Fatal(err)
		}
		return file
	}
	before, err := os.ReadFile(sqlite.DatabasePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, file string)
		want  string
	}{
		"missing": {func(t *testing.T, file string) { remove(t, file) }, fs.ErrNotExist.Error()},
		"cut off": {func(t *testing.T, file string) {
			info, err := os.Stat(file)
			if err == nil {
				err = os.Truncate(file, info.Size()-8192)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "malformed"},
		"text":       {func(t *testing.T, file string) { write(t, file, []byte(strings.Repeat("no database ", 100))) }, sqlite.ErrForeign.Error()},
		"empty":      {func(t *testing.T, file string) { write(t, file, nil) }, sqlite.ErrForeign.Error()},
		"with a log": {func(t *testing.T, file string) { write(t, file+"-wal", []byte("x")) }, sqlite.ErrIncomplete.Error()},
		"newer": {func(t *testing.T, file string) {
			rawFile(t, file, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
		}, sqlite.ErrNewer.Error()},
		"dangling": {func(t *testing.T, file string) {
			rawFile(t, file, `PRAGMA foreign_keys = OFF; DELETE FROM dialogues`)
		}, "is damaged: considerations row 1 refers to a row of dialogues"},
	} {
		t.Run(name, func(t *testing.T) {
			file := backup(t)
			c.spoil(t, file)
			_, err := sqlite.Files{}.Restore(t.Context(), file, dir, true, time.Now())
			if err == nil || !strings.Contains(err.Error(), c.want) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			after, err := os.ReadFile(sqlite.DatabasePath(dir))
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the database was changed (%v)", err)
			}
			if names := list(t, dir); len(names) != 2 {
				t.Errorf("left behind: %q", names)
			}
		})
	}
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	if _, err := (sqlite.Files{}).Restore(t.Context(), backup(t), dir, true, time.Now()); !errors.Is(err, sqlite.ErrLocked) {
		t.Errorf("beside a sidecar: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := (sqlite.Files{}).Restore(t.Context(), backup(t), dir, false, time.Now()); !errors.Is(err, sqlite.ErrOccupied) {
		t.Errorf("over a database: %v", err)
	}
}

// rawFile changes a database outside of a data folder.
func rawFile(t *testing.T, file, statement string) {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, databaseName), data)
	dbtest.Raw(t, dir, statement)
	if err := os.Rename(filepath.Join(dir, databaseName), file); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreKeepsTheOldLogApart: The log of a killed sidecar belongs to the old database. It is kept with it, and not applied to the new
// one, even if the old one's key is lost.
func TestRestoreKeepsTheOldLogApart(t *testing.T) {
	dir := dbtest.Folder(t)
	file := filepath.Join(t.TempDir(), "backup.db")
	if _, err := sqlite.MakeBackup(t.Context(), dir, file, sqlite.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]seal.Key{"that can be read": {}, "that cannot": newKey(t)} {
		t.Run(name, func(t *testing.T) {
			old := t.TempDir()
			s := dbtest.Open(t, with(old, key))
			dbtest.Exec(t, s, `CREATE TABLE later (x TEXT)`, `INSERT INTO later VALUES ('only in the log')`)
			killed := filepath.Join(t.TempDir(), "killed") // as after a kill
			mkdir(t, killed)
			for _, suffix := range []string{"", "-wal"} {
				write(t, sqlite.DatabasePath(killed)+suffix, read(t, sqlite.DatabasePath(old)+suffix))
			}
			r, err := sqlite.Files{}.Restore(t.Context(), file, killed, true, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			restored := dbtest.Open(t, sqlite.Options{Dir: killed})
			if n := dbtest.Value[int](t, restored, `SELECT count(*) FROM sqlite_schema WHERE name = 'later'`); n != 0 {
				t.Error("the old log was applied to the new database")
			}
			aside := filepath.Join(t.TempDir(), "aside")
			mkdir(t, aside)
			for _, suffix := range []string{"", "-wal"} {
				if err := os.Rename(r.Aside+suffix, sqlite.DatabasePath(aside)+suffix); err != nil && (suffix == "" || !key.IsZero()) {
					t.Fatal(err)
				}
			}
			if got := dbtest.Value[string](t, dbtest.Open(t, with(aside, key)), `SELECT x FROM later`); got != "only in the log" {
				t.Errorf("the previous database has %q", got)
			}
		})
	}
}
