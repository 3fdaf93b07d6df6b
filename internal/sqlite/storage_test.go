package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	_ "modernc.org/sqlite"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

const databaseName = "memsidecar.db"

func TestReopenKeepsData(t *testing.T) {
	// The path is part of a URI: special characters must be escaped.
	dir := filepath.Join(t.TempDir(), "用户 50%20?a=b#c&d", "data")
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	dbtest.Exec(t, s, `CREATE TABLE notes (text TEXT)`, `INSERT INTO notes VALUES ('likes tea')`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, databaseName)); err != nil || info.Size() == 0 {
		t.Errorf("the data is elsewhere: %+v, %v", info, err)
	}

	s = dbtest.Open(t, sqlite.Options{Dir: dir})
	if got := dbtest.Value[string](t, s, `SELECT text FROM notes`); got != "likes tea" {
		t.Errorf("got %q", got)
	}
	if got := s.Status(); got.State != breaker.Closed || got.Reason != "" {
		t.Errorf("status %+v", got)
	}
}

func TestFilesAreReadableByTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	dbtest.Exec(t, s, `CREATE TABLE notes (text TEXT)`)
	count := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", d.Name(), got, want)
		}
		count++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 5 { // the folder, the lock, the database, its log and the log's index
		t.Errorf("%d files", count)
	}
}

func TestFolderIsLockedByOneProcess(t *testing.T) {
	dir := t.TempDir()
	first := dbtest.Open(t, sqlite.Options{Dir: dir})
	var log logstest.Log
	second, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: log.Logger()})
	if !errors.Is(err, sqlite.ErrLocked) || second != nil {
		t.Fatalf("got %v, %v; want ErrLocked", second, err)
	}
	dbtest.Exec(t, first, `CREATE TABLE notes (text TEXT)`) // not affected

	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	dbtest.Open(t, sqlite.Options{Dir: dir})
}

// TestStorageRecoversFromOpenErrors: Whatever prevents opening the database, the process keeps running, calls are refused immediately, the change is
// reported once, and storage recovers when the cause is gone.
func TestStorageRecoversFromOpenErrors(t *testing.T) {
	garbage := []byte(strings.Repeat("this is no database. ", 1000))
	for _, c := range []struct {
		name   string
		spoil  func(t *testing.T, dir string)
		mend   func(t *testing.T, dir string)
		reason string
	}{
		{
			"corrupt file",
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, databaseName), garbage) },
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, databaseName)) },
			"not a database",
		},
		{
			"newer version",
			func(t *testing.T, dir string) {
				dbtest.Raw(t, dir, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
			},
			func(t *testing.T, dir string) {
				dbtest.Raw(t, dir, `DELETE FROM goose_db_version WHERE version_id = 9999`)
			},
			"newer version of memsidecar",
		},
		{
			"emptied file",
			func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, databaseName), nil)
				write(t, filepath.Join(dir, databaseName+"-wal"), garbage)
			},
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, databaseName+"-wal")) },
			"something emptied it",
		},
		{
			"broken schema",
			func(t *testing.T, dir string) {
				dbtest.Raw(t, dir, `PRAGMA user_version = 1`)
				f := filepath.Join(dir, databaseName)
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				write(t, f, data[:len(data)/2])
			},
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, databaseName)) },
			"malformed",
		},
		{
			"folder in place of the file",
			func(t *testing.T, dir string) { mkdir(t, filepath.Join(dir, databaseName)) },
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, databaseName)) },
			"is a directory",
		},
		{
			"file in place of the folder",
			func(t *testing.T, dir string) { remove(t, dir); write(t, dir, garbage) },
			func(t *testing.T, dir string) { remove(t, dir) },
			"not a directory",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			mkdir(t, dir)
			c.spoil(t, dir)
			synctest.Test(t, func(t *testing.T) {
				var log logstest.Log
				var changes []breaker.State
				s := dbtest.Open(t, sqlite.Options{Dir: dir, Log: log.Logger(), OnChange: func(status breaker.Status) {
					changes = append(changes, status.State)
				}})
				var opened atomic.Int32
				s.OnOpen(func() { opened.Add(1) })
				since := time.Now()

				for range 100 {
					before := time.Now()
					refused(t, s)
					if d := time.Since(before); d != 0 {
						t.Fatalf("refusing took %s", d)
					}
					time.Sleep(7 * time.Second) // several attempts to open it
				}
				status := s.Status()
				if status.State == breaker.Closed || !strings.Contains(status.Reason, c.reason) || !status.Since.Equal(since) {
					t.Errorf("status %+v, want one that says %q since %s", status, c.reason, since)
				}
				if lines := log.About("circuit breaker"); len(lines) != 1 || !strings.Contains(lines[0], c.reason) {
					t.Errorf("want one line in the log, got %q", lines)
				}
				if opened.Load() != 0 {
					t.Error("the hook was called before it could be opened")
				}

				c.mend(t, dir)
				time.Sleep(90 * time.Second) // the longest pause with its jitter
				synctest.Wait()
				if status := s.Status(); status.State != breaker.Closed || status.Reason != "" {
					t.Fatalf("status %+v after the cause was removed", status)
				}
				dbtest.Exec(t, s, `CREATE TABLE notes (text TEXT)`)
				if opened.Load() != 1 {
					t.Errorf("the hook was called %d times", opened.Load())
				}
				if lines := log.About("circuit breaker"); len(lines) != 2 {
					t.Errorf("want two lines in the log, got %q", lines)
				}
				if first, last := changes[0], changes[len(changes)-1]; first != breaker.Open || last != breaker.Closed {
					t.Errorf("OnChange got %v", changes)
				}
			})
		})
	}
}

// refused checks that every call answers memory.ErrUnavailable.
func refused(t *testing.T, s *sqlite.Storage) {
	t.Helper()
	read := s.Read(t.Context(), func(sqldb.Querier) error { return errors.New("was called") })
	write := s.Write(t.Context(), func(sqldb.Tx) error { return errors.New("was called") })
	_, purge := s.Purge(t.Context())
	for _, err := range []error{read, write, purge} {
		if !errors.Is(err, memory.ErrUnavailable) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
	}
}

// TestBrokenPagesFailOnlyTheirReaders: Pages are overwritten under an open database. Calls that need them return an error, others
// still work, and the log reports it once.
func TestBrokenPagesFailOnlyTheirReaders(t *testing.T) {
	dir := t.TempDir()
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	dbtest.Exec(t, s, `CREATE TABLE other (text TEXT)`, `INSERT INTO other VALUES ('whole')`, `CREATE TABLE notes (text TEXT)`,
		`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
		INSERT INTO notes SELECT hex(randomblob(1000)) FROM n`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, databaseName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := append([]byte(nil), good...)
	for i := len(bad) - 50*4096; i < len(bad); i++ { // the schema stays readable, pages of the table do not
		bad[i] = 0xAA
	}
	overwrite(t, path, bad)
	var log logstest.Log
	s = dbtest.Open(t, sqlite.Options{Dir: dir, Log: log.Logger()})
	if s.Damaged() != "" {
		t.Errorf("before anything was read it is damaged: %s", s.Damaged())
	}
	for range 3 {
		err := s.Read(t.Context(), func(q sqldb.Querier) error {
			return q.QueryRow(t.Context(), `SELECT sum(length(text)) FROM notes`).Scan(new(int))
		})
		if !errors.Is(err, memory.ErrDamaged) || errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "memsidecar restore") {
			t.Fatalf("reading a broken page: %v", err)
		}
		if err := exec(t.Context(), s, `UPDATE notes SET text = text || 'x'`); !errors.Is(err, memory.ErrDamaged) {
			t.Fatalf("writing a broken page: %v", err)
		}
	}
	dbtest.Exec(t, s, `INSERT INTO other VALUES ('written')`)
	if n := dbtest.Value[int](t, s, `SELECT count(*) FROM other`); n != 2 {
		t.Errorf("%d rows are on whole pages", n)
	}
	if s.Status().State != breaker.Closed || s.WriteStatus().State != breaker.Closed || s.Damaged() == "" {
		t.Errorf("reads %+v, writes %+v, damaged %q", s.Status(), s.WriteStatus(), s.Damaged())
	}
	if lines := log.About("level="); len(lines) != 1 || !strings.Contains(lines[0], "malformed") {
		t.Errorf("want one line in the log, got %q", lines)
	}
}

// TestFullDatabaseRefusesWritesOnly: SQLite cannot add a page. Writes are refused until there is room, and reads still work.
func TestFullDatabaseRefusesWritesOnly(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log logstest.Log
		s := dbtest.Open(t, sqlite.Options{Dir: dir, Log: log.Logger()})
		dbtest.Exec(t, s, `CREATE TABLE notes (text TEXT)`, `INSERT INTO notes VALUES ('whole')`, `PRAGMA max_page_count = 1`)
		err := exec(t.Context(), s, `INSERT INTO notes VALUES (hex(randomblob(100000)))`)
		if !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "full") {
			t.Fatalf("writing to a full database: %v", err)
		}
		for range 3 {
			if err := exec(t.Context(), s, `INSERT INTO notes VALUES ('more')`); !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "full") {
				t.Errorf("the next write: %v", err)
			}
			if _, err := s.Purge(t.Context()); !errors.Is(err, memory.ErrUnavailable) {
				t.Errorf("a purge: %v", err)
			}
			if got := dbtest.Value[string](t, s, `SELECT group_concat(text) FROM notes`); got != "whole" {
				t.Errorf("read %q", got)
			}
		}
		if s.Status().State != breaker.Closed || s.WriteStatus().State != breaker.Open || !strings.Contains(s.WriteStatus().Reason, "full") {
			t.Errorf("reads %+v, writes %+v", s.Status(), s.WriteStatus())
		}
		time.Sleep(5 * time.Second) // existing pages can be written
		synctest.Wait()
		dbtest.Exec(t, s, `PRAGMA max_page_count = 1000000`, `INSERT INTO notes VALUES (hex(randomblob(100000)))`)
		if lines := log.About("circuit breaker"); len(lines) != 2 || !strings.Contains(lines[0], "storage writes") {
			t.Errorf("want two lines in the log, got %q", lines)
		}
	})
}

// TestCallersMistakesDoNotCloseStorage: A wrong query, a violated constraint, a cancelled call or a panic of one caller does not affect others.
func TestCallersMistakesDoNotCloseStorage(t *testing.T) {
	s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	dbtest.Exec(t, s, `CREATE TABLE notes (text TEXT UNIQUE)`, `INSERT INTO notes VALUES ('a')`)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"constraint":      exec(t.Context(), s, `INSERT INTO notes VALUES ('a')`),
		"syntax":          exec(t.Context(), s, `INSERT INTO nowhere`),
		"cancelled write": exec(cancelled, s, `INSERT INTO notes VALUES ('b')`),
		"cancelled read": s.Read(cancelled, func(q sqldb.Querier) error {
			return q.QueryRow(cancelled, `SELECT 1`).Scan(new(int))
		}),
		"no rows": s.Read(t.Context(), func(q sqldb.Querier) error {
			return q.QueryRow(t.Context(), `SELECT text FROM notes WHERE text = 'z'`).Scan(new(string))
		}),
	} {
		if err == nil || errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of a read was swallowed")
			}
		}()
		_ = s.Read(t.Context(), func(sqldb.Querier) error { panic("oops") })
	}()
	if status := s.Status(); status.State != breaker.Closed {
		t.Errorf("status %+v", status)
	}
	if got := dbtest.Value[int](t, s, `SELECT count(*) FROM notes`); got != 1 {
		t.Errorf("%d rows", got)
	}
}

// TestDeadlineKeepsItsError: A caller whose deadline passed gets that error, not that storage is down.
func TestDeadlineKeepsItsError(t *testing.T) {
	s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := s.Read(ctx, func(q sqldb.Querier) error {
		return q.QueryRow(ctx, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n`).Scan(new(int))
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
	if status := s.Status(); status.State != breaker.Closed {
		t.Errorf("status %+v", status)
	}
}

func TestCallsAfterCloseFail(t *testing.T) {
	s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		refused(t, s)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// overwrite changes a file in place while processes have it open.
func overwrite(t *testing.T, path string, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(data, 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
