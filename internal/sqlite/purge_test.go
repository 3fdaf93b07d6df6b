package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/leftover"
)

const secret = "allergic to xylophone music"

// filesWithSecret returns the files in the folder that contain the secret.
func filesWithSecret(t *testing.T, dir string) []string {
	t.Helper()
	return leftover.In(t, dir, secret)
}

// deleteSecrets stores rows with the secret, short ones and some of several pages, and deletes them.
func deleteSecrets(t *testing.T, s *sqlite.Storage, dir string) {
	t.Helper()
	dbtest.Exec(t, s, `CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT, padding BLOB)`,
		`CREATE INDEX IF NOT EXISTS notes_by_text ON notes (text)`)
	for i := range 20 {
		dbtest.Exec(t, s, fmt.Sprintf(`INSERT INTO notes (text, padding) VALUES ('%d %s', zeroblob(%d))`, i, secret, i*1000))
	}
	if names := filesWithSecret(t, dir); len(names) == 0 {
		t.Fatal("the secret is nowhere: this test would find nothing")
	}
	dbtest.Exec(t, s, `DELETE FROM notes`)
	if names := filesWithSecret(t, dir); len(names) == 0 {
		t.Fatal("the secret is gone before the purge: this test shows nothing")
	}
}

func TestPurgeLeavesNoTrace(t *testing.T) {
	dir := t.TempDir()
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	deleteSecrets(t, s, dir)
	if done, err := s.Purge(t.Context()); !done || err != nil {
		t.Fatalf("got %t, %v", done, err)
	}
	if names := filesWithSecret(t, dir); names != nil {
		t.Errorf("the secret is still in %v", names)
	}
}

// TestPurgeWaitsForReader: A reader in the middle of a query prevents the purge. The purge reports that, delays no caller, and completes when
// the reader ends.
func TestPurgeWaitsForReader(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log logstest.Log
		s := dbtest.Open(t, sqlite.Options{Dir: dir, Log: log.Logger()})
		deleteSecrets(t, s, dir)
		dbtest.Exec(t, s, `INSERT INTO notes (text) VALUES ('a'), ('b')`)

		release := make(chan struct{})
		ended := readUntil(t, s, func() { <-release })

		begin := time.Now()
		purged := make(chan bool)
		go func() {
			done, err := s.Purge(t.Context())
			if err != nil {
				t.Error(err)
			}
			purged <- done
		}()
		slowest := time.Duration(0)
		for range 300 {
			before := time.Now()
			dbtest.Exec(t, s, `UPDATE notes SET text = 'c' WHERE text = 'b'`)
			slowest = max(slowest, time.Since(before))
			time.Sleep(10 * time.Millisecond)
		}
		if slowest > 50*time.Millisecond {
			t.Errorf("the purge held up a write for %s", slowest)
		}
		if <-purged {
			t.Error("the purge was reported as done in spite of the reader")
		}
		if since := s.PurgePendingSince(); !since.Equal(begin) {
			t.Errorf("a purge is pending since %s, not since %s", since, begin)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("the purge took %s", d)
		}
		if names := filesWithSecret(t, dir); names == nil {
			t.Error("the secret is gone: the reader did not read")
		}
		if _, err := s.Purge(t.Context()); err != nil { // repeated: once it is done, both requests are
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if status := s.Status(); status.State != breaker.Closed {
			t.Errorf("a busy reader is no outage: %+v", status)
		}

		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if names := filesWithSecret(t, dir); names != nil {
			t.Errorf("the secret is still in %v", names)
		}
		if since := s.PurgePendingSince(); !since.IsZero() {
			t.Errorf("a purge is pending since %s", since)
		}
		if lines := log.About("purged"); len(lines) != 1 {
			t.Errorf("want one line in the log, got %q", lines)
		}
	})
}

// readUntil starts a reader that holds its transaction until wait returns, and returns the reader's error.
func readUntil(t *testing.T, s *sqlite.Storage, wait func()) (ended <-chan error) {
	t.Helper()
	reading, end := make(chan struct{}), make(chan error, 1)
	go func() {
		end <- s.Read(t.Context(), func(q sqldb.Querier) (err error) {
			rows, err := q.Query(t.Context(), `SELECT text FROM notes`)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, rows.Close()) }()
			rows.Next()
			close(reading)
			wait()
			return rows.Err()
		})
	}()
	<-reading
	return end
}

// TestPurgeRetriesAfterSuspension: The whole process was suspended for longer than a purge tries. Then it has tried only once, and a reader
// was in its way. It tries a little longer.
func TestPurgeRetriesAfterSuspension(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := dbtest.Open(t, sqlite.Options{Dir: dir})
		deleteSecrets(t, s, dir)
		dbtest.Exec(t, s, `INSERT INTO notes (text) VALUES ('a'), ('b')`)
		const still = time.Minute
		read := readUntil(t, s, func() { time.Sleep(still + 20*time.Millisecond) })
		wrote := make(chan error)
		go func() {
			wrote <- s.Write(t.Context(), func(sqldb.Tx) error { time.Sleep(still); return nil })
		}()
		synctest.Wait()
		if done, err := s.Purge(t.Context()); !done || err != nil {
			t.Errorf("got %t, %v", done, err)
		}
		if err := errors.Join(<-read, <-wrote); err != nil {
			t.Error(err)
		}
		if names := filesWithSecret(t, dir); names != nil {
			t.Errorf("the secret is still in %v", names)
		}
	})
}

// TestPurgeAfterCrash: Data that was deleted but not purged before a crash is purged by the next process.
func TestPurgeAfterCrash(t *testing.T) {
	dir, crashed := t.TempDir(), t.TempDir()
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	deleteSecrets(t, s, dir)
	for _, name := range []string{databaseName, databaseName + "-wal"} { // as after a kill
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(crashed, name), data)
	}

	s = dbtest.Open(t, sqlite.Options{Dir: crashed})
	if got := dbtest.Value[int](t, s, `SELECT count(*) FROM notes`); got != 0 {
		t.Errorf("%d rows", got)
	}
	if names := filesWithSecret(t, crashed); names != nil {
		t.Errorf("the secret is still in %v", names)
	}
}

// TestPurgeLeavesNoCopies: SQLite leaves copies of cells when it splits a full page, and does not overwrite them when the cells are
// deleted.
func TestPurgeLeavesNoCopies(t *testing.T) {
	dir := t.TempDir()
	s := dbtest.Open(t, sqlite.Options{Dir: dir})
	leaveCopies(t, s)
	if names := filesWithSecret(t, dir); names != nil {
		t.Errorf("the secret is still in %v", names)
	}
}

// leaveCopies deletes rows so that copies remain, and purges.
func leaveCopies(t *testing.T, s *sqlite.Storage) {
	t.Helper()
	dbtest.Exec(t, s, `CREATE TABLE terms (term TEXT PRIMARY KEY, padding BLOB) WITHOUT ROWID`,
		`CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)`, `CREATE INDEX notes_by_text ON notes (text)`)
	// Random order, so that pages are split everywhere.
	dbtest.Exec(t, s, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
		INSERT OR IGNORE INTO terms SELECT format('%x %s', (i * i * 7919 + i * 104729) % 1000003, iif(i % 3, 'other', '`+secret+`')), zeroblob(i % 50) FROM n`,
		`INSERT INTO notes (text) SELECT term FROM terms ORDER BY length(padding), term DESC`,
		`DELETE FROM terms WHERE term LIKE '%xylophone%'`, `DELETE FROM notes WHERE text LIKE '%xylophone%'`)
	if done, err := s.Purge(t.Context()); !done || err != nil {
		t.Fatalf("got %t, %v", done, err)
	}
	if got := dbtest.Value[string](t, s, `PRAGMA integrity_check`); got != "ok" {
		t.Errorf("the database is %s", got)
	}
	if got := dbtest.Value[int](t, s, `SELECT count(*) FROM notes`); got != 6666 {
		t.Errorf("%d rows are left", got)
	}
	if since := s.PurgePendingSince(); !since.IsZero() {
		t.Errorf("a purge is pending since %s", since)
	}
}

// requestPurges requests n purges concurrently. The channel receives the results.
func requestPurges(t *testing.T, s *sqlite.Storage, n int) <-chan bool {
	t.Helper()
	answers := make(chan bool, n)
	for range n {
		go func() {
			done, err := s.Purge(t.Context())
			if err != nil {
				t.Error(err)
			}
			answers <- done
		}()
	}
	synctest.Wait()
	return answers
}

// TestPurgesAreShared: Requests during a purge wait for the next one, which they share. The one in progress does not count: it may have
// passed their pages.
func TestPurgesAreShared(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int64
		s := dbtest.Open(t, sqlite.Options{Dir: dir, OnCommit: func(n int, _ time.Duration) { writes.Add(int64(n)) }})
		dbtest.Exec(t, s, createNotes)
		<-requestPurges(t, s, 1) // for what creating the database left
		before := writes.Load()
		if !<-requestPurges(t, s, 1) {
			t.Error("not purged")
		}
		alone := writes.Load() - before

		release := dbtest.Hold(t, s)
		before = writes.Load()
		first := requestPurges(t, s, 1)
		others := requestPurges(t, s, 20)
		release()
		if !<-first {
			t.Error("the first is not purged")
		}
		for range 20 {
			if !<-others {
				t.Error("not purged")
			}
		}
		if got := writes.Load() - before - 1; got != 2*alone {
			t.Errorf("21 purges took %d writes, one takes %d", got, alone)
		}
		if since := s.PurgePendingSince(); !since.IsZero() {
			t.Errorf("a purge is pending since %s", since)
		}
	})
}

// TestRefusedPurgesAreShared: If a reader prevents the purge, one request retries for all, and each waits no longer than it would alone.
func TestRefusedPurgesAreShared(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int64
		s := dbtest.Open(t, sqlite.Options{Dir: dir, OnCommit: func(n int, _ time.Duration) { writes.Add(int64(n)) }})
		dbtest.Exec(t, s, createNotes, `INSERT INTO notes (id) VALUES (1)`)
		release, ended := make(chan struct{}), make(chan error)
		go func() {
			ended <- s.Read(t.Context(), func(q sqldb.Querier) (err error) {
				rows, err := q.Query(t.Context(), `SELECT id FROM notes`)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, rows.Close()) }()
				rows.Next()
				<-release
				return rows.Err()
			})
		}()
		synctest.Wait()
		begin, before := time.Now(), writes.Load()
		answers := requestPurges(t, s, 30)
		for range 30 {
			if <-answers {
				t.Error("purged in spite of the reader")
			}
		}
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("they took %s", d)
		}
		if got := writes.Load() - before; got < 5 || got > 100 { // one try per 200 ms at the end, with 50 % jitter
			t.Errorf("%d attempts in two seconds", got)
		}
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if since := s.PurgePendingSince(); !since.IsZero() {
			t.Errorf("a purge is pending since %s", since)
		}
	})
}

// TestCheckpointDoesNotBlockWriters: The log is copied into the file while others write, so that no writer waits for it. A long write does not
// prevent it.
func TestCheckpointDoesNotBlockWriters(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := dbtest.Open(t, sqlite.Options{Dir: dir})
		dbtest.Exec(t, s, `CREATE TABLE notes (text TEXT)`, `INSERT INTO notes VALUES ('`+secret+`')`)
		if names := filesWithSecret(t, dir); !slices.Equal(names, []string{databaseName + "-wal"}) {
			t.Fatalf("before, it is in %v", names)
		}
		release := dbtest.Hold(t, s)
		answer := requestPurges(t, s, 1)
		if names := filesWithSecret(t, dir); !slices.Equal(names, []string{databaseName, databaseName + "-wal"}) {
			t.Errorf("during a write, it takes %v", names)
		}
		release()
		if !<-answer {
			t.Error("not purged")
		}
		if names := filesWithSecret(t, dir); !slices.Equal(names, []string{databaseName}) {
			t.Errorf("after, it is in %v", names)
		}
	})
}

// TestSQLiteHasTheCheckpointFix: Before 3.51.3 a checkpoint concurrent with a writer could damage the database (the "WAL-reset bug",
// https://www.sqlite.org/wal.html#walresetbug).
func TestSQLiteHasTheCheckpointFix(t *testing.T) {
	s := dbtest.Open(t, sqlite.Options{Dir: t.TempDir()})
	var version [3]int
	text := dbtest.Value[string](t, s, `SELECT sqlite_version()`)
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &version[0], &version[1], &version[2]); err != nil {
		t.Fatal(err)
	}
	if slices.Compare(version[:], []int{3, 51, 3}) < 0 {
		t.Errorf("SQLite is %s", text)
	}
}
