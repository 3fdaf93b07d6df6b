package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// TestLostFolderIsNoticedWhileIdle: The loss of the folder is noticed within seconds without reads or writes, and so is its return, after any time.
// Meanwhile nothing is created at the path, and only a database of memsidecar is opened.
func TestLostFolderIsNoticedWhileIdle(t *testing.T) {
	root := t.TempDir()
	dir, aside := filepath.Join(root, "data"), filepath.Join(root, "aside")
	foreign := filepath.Join(root, "foreign")
	mkdir(t, foreign)
	path := filepath.Join(foreign, databaseName)
	dbtest.Raw(t, foreign, `PRAGMA user_version = 1`)
	dbtest.Raw(t, foreign, `DROP TABLE goose_db_version`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := dbtest.Open(t, sqlite.Options{Dir: dir})
		dbtest.Exec(t, s, `CREATE TABLE notes (text TEXT)`, `INSERT INTO notes VALUES ('likes tea')`)
		want := func(when string, state breaker.State, reason string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got := s.Status(); (got.State == breaker.Closed) != (state == breaker.Closed) || !strings.Contains(got.Reason, reason) {
				t.Fatalf("%s it is %+v", when, got)
			}
		}
		move := func(from, to string) {
			t.Helper()
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		const gone = "is no longer where it was opened"
		move(dir, aside)
		want("moved away", breaker.Open, gone)
		time.Sleep(time.Hour)
		want("after an hour", breaker.Open, gone)
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("a folder was made: %v", err)
		}
		move(aside, dir)
		want("moved back", breaker.Closed, "")
		if got := dbtest.Value[string](t, s, `SELECT text FROM notes`); got != "likes tea" {
			t.Errorf("then it has %q", got)
		}

		move(dir, aside)
		move(foreign, dir)
		want("with another program's database there", breaker.Open, "not a database of memsidecar")
		if now, err := os.ReadFile(filepath.Join(dir, databaseName)); err != nil || !bytes.Equal(now, before) {
			t.Errorf("the other program's database was changed: %v", err)
		}
		remove(t, dir)
		move(aside, dir)
		time.Sleep(time.Minute) // the longest pause, because there was no valid database before
		want("moved back", breaker.Closed, "")
		dbtest.Exec(t, s, `INSERT INTO notes VALUES ('likes coffee')`)
	})
}
