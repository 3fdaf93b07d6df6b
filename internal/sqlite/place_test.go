package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// openIn opens a database in a folder, with some transactions in its log.
func openIn(t testing.TB, dir string) (*database, *logstest.Log) {
	t.Helper()
	if err := makeFolder(dir); err != nil {
		t.Fatal(err)
	}
	log := &logstest.Log{}
	d, err := openDatabase(context.Background(), dir, Options{Log: log.Logger()}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`CREATE TABLE notes (text TEXT)`, `INSERT INTO notes VALUES ('likes tea')`} {
		if err := d.submit(context.Background(), &writeRequest{fn: func(tx sqldb.Tx) error {
			_, err := tx.Exec(context.Background(), statement)
			return err
		}}); err != nil {
			t.Fatal(err)
		}
	}
	return d, log
}

func noteIn(t *testing.T, dir string) string {
	t.Helper()
	s, err := openSnapshot(t.Context(), DatabasePath(dir), seal.Key{})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	err = s.QueryRow(t.Context(), `SELECT text FROM notes`).Scan(&text)
	if err := errors.Join(err, s.close()); err != nil {
		t.Fatal(err)
	}
	return text
}

// BenchmarkPlaceCheck measures a check that runs on each commit and each second.
func BenchmarkPlaceCheck(b *testing.B) {
	d, _ := openIn(b, b.TempDir())
	defer d.close()
	for b.Loop() {
		if err := d.place.check(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMovedDatabaseTakesItsLogAlong: A database that is moved without its log takes acknowledged writes along. The log of a removed database is
// renamed, so that SQLite does not apply it to another database.
func TestMovedDatabaseTakesItsLogAlong(t *testing.T) {
	aside := filepath.Join(t.TempDir(), fileName)
	dir := t.TempDir()
	d, _ := openIn(t, dir)
	if err := os.Rename(DatabasePath(dir), aside); err != nil {
		t.Fatal(err)
	}
	if elsewhere, err := d.leave(t.Context()); err != nil || !elsewhere {
		t.Fatalf("leaving: %v, %v", elsewhere, err)
	}
	d.close()
	if got := noteIn(t, filepath.Dir(aside)); got != "likes tea" {
		t.Errorf("the database that was moved has %q", got)
	}
	if info, err := os.Stat(DatabasePath(dir) + "-wal"); err == nil && info.Size() > 0 {
		t.Errorf("there are %d bytes in the log that was left", info.Size())
	}

	dir = t.TempDir()
	d, log := openIn(t, dir)
	if err := os.Remove(DatabasePath(dir)); err != nil {
		t.Fatal(err)
	}
	if elsewhere, err := d.leave(t.Context()); err != nil || !elsewhere {
		t.Fatalf("leaving: %v, %v", elsewhere, err)
	}
	d.close()
	kept, err := filepath.Glob(DatabasePath(dir) + ".before-*-wal")
	if err != nil || len(kept) != 1 || len(log.About("was renamed")) != 1 {
		t.Errorf("kept %q, %v; the log has %s", kept, err, log)
	}
	if _, err := os.Stat(DatabasePath(dir) + "-wal"); err == nil {
		t.Error("the log is beside the next database")
	}
}

// TestCloseLeavesAnotherDatabaseAlone: Closing a database that was moved changes nothing of the new one at its path.
func TestCloseLeavesAnotherDatabaseAlone(t *testing.T) {
	dir, aside := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "aside")
	d, _ := openIn(t, dir)
	if err := os.Rename(dir, aside); err != nil {
		t.Fatal(err)
	}
	other, _ := openIn(t, dir)
	if elsewhere, err := d.leave(t.Context()); err != nil || !elsewhere {
		t.Fatalf("leaving: %v, %v", elsewhere, err)
	}
	d.close()
	if err := other.place.check(); err != nil {
		t.Errorf("the other database: %v", err)
	}
	other.close()
	for _, dir := range []string{dir, aside} {
		if got := noteIn(t, dir); got != "likes tea" {
			t.Errorf("%s has %q", dir, got)
		}
	}
}
