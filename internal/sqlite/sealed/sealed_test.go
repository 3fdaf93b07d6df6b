package sealed_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite/sealed"
)

const secret = "Zyxwvutsrq"

type world struct {
	dir   string
	key   seal.Key
	pages *seal.Pages
	vfs   *sealed.VFS
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	file := filepath.Join(w.dir, "key")
	if err := seal.CreateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.key, err = seal.ReadKeyFile(file); err != nil {
		t.Fatal(err)
	}
	var envelope seal.Envelope
	if w.pages, envelope, err = seal.NewPages(w.key); err != nil {
		t.Fatal(err)
	}
	if w.vfs, err = sealed.Register(w.pages, envelope); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.vfs.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) path() string { return filepath.Join(w.dir, "x.db") }

func (w *world) open(t *testing.T, pragmas ...string) *sql.DB {
	t.Helper()
	dsn := "file:" + w.path() + "?vfs=" + w.vfs.Name() + "&_pragma=temp_store(MEMORY)"
	for _, p := range pragmas {
		dsn += "&_pragma=" + p
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func do(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func ask(t *testing.T, db *sql.DB, query string) (answer string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// wantNothing checks that no file contains the written text or the names of tables.
func (w *world) wantNothing(t *testing.T, when string) {
	t.Helper()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(w.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{secret, "secrets", "SQLite format"} {
			if bytes.Contains(data, []byte(text)) {
				t.Errorf("%s %q is in %s", when, text, e.Name())
			}
		}
	}
}

// TestFilesAreEncrypted: Written data is read back in every journal mode that is used, and no file contains it.
func TestFilesAreEncrypted(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			db := w.open(t, "journal_mode("+mode+")", "secure_delete(ON)", "cache_size(-64)")
			db.SetMaxOpenConns(3)
			do(t, db, `CREATE TABLE secrets (id INTEGER PRIMARY KEY, text TEXT)`, `CREATE INDEX by_text ON secrets (text)`)
			for i := range 30 {
				do(t, db, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
					INSERT INTO secrets (text) SELECT '%s' || i || '-%d' FROM n`, secret, i))
			}
			do(t, db, `INSERT INTO secrets (text) VALUES ('`+strings.Repeat(secret, 5000)+`')`) // several overflow pages
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), `UPDATE secrets SET text = text || 'x'`); err != nil {
				t.Fatal(err)
			}
			w.wantNothing(t, "within a transaction")
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			do(t, db, `DELETE FROM secrets WHERE id % 7 = 0`)
			w.wantNothing(t, "while open")
			if got := ask(t, db, `PRAGMA integrity_check`); got != "ok" {
				t.Error(got)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			w.wantNothing(t, "after closing")
			db = w.open(t)
			if got, want := ask(t, db, `SELECT count(*) || ' ' || max(length(text)) FROM secrets`), "2573 50000"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if got := ask(t, db, `PRAGMA journal_mode`); !strings.EqualFold(got, mode) {
				t.Errorf("the journal mode is %s", got)
			}
		})
	}
}

// TestTornWritesAreUndone: SQLite undoes torn writes after a power loss as it does without encryption.
func TestTornWritesAreUndone(t *testing.T) {
	const page, frame = sealed.PageSize, sealed.PageSize + 24
	for _, c := range []struct {
		name string
		tear func(database, log []byte) []byte // returns what is left of the log
		want string
	}{
		{"nothing", func(_, log []byte) []byte { return log }, "3"},
		{"the last page of the log", func(_, log []byte) []byte { clear(log[len(log)-512:]); return log }, "2"},
		{"the last head of the log", func(_, log []byte) []byte { log[len(log)-frame+16] ^= 1; return log }, "2"},
		{"the end of the log", func(_, log []byte) []byte { return log[:len(log)-frame/2] }, "2"},
		// A complete frame is in the log.
		{"the first page", func(database, log []byte) []byte { clear(database[512:1024]); return log }, "3"},
		{"the first page, twice", func(database, log []byte) []byte { clear(database[512:page]); return log }, "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			db := w.open(t, "journal_mode(WAL)", "wal_autocheckpoint(0)")
			do(t, db, `CREATE TABLE secrets (id INTEGER PRIMARY KEY, text TEXT)`) // the first page is in the log with it
			for range 3 {
				do(t, db, `INSERT INTO secrets (text) VALUES ('`+secret+`')`)
			}
			crashed := &world{dir: t.TempDir(), vfs: w.vfs}
			database, log := must(os.ReadFile(w.path()))(t), must(os.ReadFile(w.path()+"-wal"))(t)
			log = c.tear(database, log)
			for suffix, data := range map[string][]byte{"": database, "-wal": log} {
				if err := os.WriteFile(crashed.path()+suffix, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			again := crashed.open(t, "journal_mode(WAL)")
			if got := ask(t, again, `SELECT count(*) FROM secrets`); got != c.want {
				t.Errorf("there are %s rows, want %s", got, c.want)
			}
			do(t, again, `INSERT INTO secrets (text) VALUES ('more')`, `PRAGMA wal_checkpoint(TRUNCATE)`)
			if got := ask(t, again, `PRAGMA integrity_check`); got != "ok" {
				t.Error(got)
			}
			for _, db := range []*sql.DB{again, db} {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestCrashedTransactionIsRolledBack: A transaction that a crash interrupted in the middle of the database file is undone from the sealed journal.
func TestCrashedTransactionIsRolledBack(t *testing.T) {
	w := newWorld(t)
	db := w.open(t, "journal_mode(DELETE)", "cache_size(5)")
	do(t, db, `CREATE TABLE secrets (id INTEGER PRIMARY KEY, text TEXT)`, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
		INSERT INTO secrets (text) SELECT '`+secret+`' || i FROM n`)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `UPDATE secrets SET text = 'gone' || id`); err != nil { // exceeds the cache
		t.Fatal(err)
	}
	crashed := &world{dir: t.TempDir(), vfs: w.vfs}
	for _, suffix := range []string{"", "-journal"} {
		if err := os.WriteFile(crashed.path()+suffix, must(os.ReadFile(w.path()+suffix))(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	again := crashed.open(t)
	if got := ask(t, again, `SELECT count(*) FROM secrets WHERE text LIKE '`+secret+`%'`); got != "5000" {
		t.Errorf("%s rows are as they were", got)
	}
	if got := ask(t, again, `PRAGMA integrity_check`); got != "ok" {
		t.Error(got)
	}
	for _, db := range []*sql.DB{again, db} {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRewrittenLogPagesAreRead: A transaction that exceeds the cache rewrites pages of the log, and frame headers without their pages. A reader of
// that log after a crash finds all data.
func TestRewrittenLogPagesAreRead(t *testing.T) {
	w := newWorld(t)
	db := w.open(t, "journal_mode(WAL)", "wal_autocheckpoint(0)", "cache_size(5)")
	do(t, db, `CREATE TABLE secrets (id INTEGER PRIMARY KEY, text TEXT)`, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
		INSERT INTO secrets (text) SELECT '`+secret+`' || i FROM n`)
	before := must(os.Stat(w.path() + "-wal"))(t).Size()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 5
	for n := range rounds {
		if _, err := tx.ExecContext(t.Context(), `UPDATE secrets SET text = ? || id`, fmt.Sprint(secret, "-", n, "-")); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if grown := must(os.Stat(w.path()+"-wal"))(t).Size() - before; grown > 2*before { // otherwise once per round
		t.Errorf("the log grew from %d by %d bytes: no page was rewritten, so the test proves nothing", before, grown)
	}
	w.wantNothing(t, "after a commit")
	crashed := &world{dir: t.TempDir(), vfs: w.vfs}
	for _, suffix := range []string{"", "-wal"} {
		if err := os.WriteFile(crashed.path()+suffix, must(os.ReadFile(w.path()+suffix))(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := crashed.open(t, "journal_mode(WAL)")
	for _, db := range []*sql.DB{db, again} {
		if got := ask(t, db, `SELECT count(*) FROM secrets WHERE text = '`+secret+`-4-' || id`); got != "3000" {
			t.Errorf("%s rows have the last value", got)
		}
		if got := ask(t, db, `PRAGMA integrity_check`); got != "ok" {
			t.Error(got)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTornJournalPageIsNotApplied: A journal page that is torn by a power loss is not applied, even if SQLite's sum of every 200th byte does not detect
// it.
func TestTornJournalPageIsNotApplied(t *testing.T) {
	const header, record = 512, 4 + sealed.PageSize + 4
	w := newWorld(t)
	// The journal is not synced, so SQLite uses what it contains. The database has nothing of the transaction yet.
	db := w.open(t, "journal_mode(DELETE)", "synchronous(OFF)")
	do(t, db, `CREATE TABLE secrets (id INTEGER PRIMARY KEY, data BLOB)`, `INSERT INTO secrets (data) VALUES (zeroblob(20000)), (zeroblob(20000))`)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `UPDATE secrets SET data = randomblob(20000)`); err != nil {
		t.Fatal(err)
	}
	database, journal := must(os.ReadFile(w.path()))(t), must(os.ReadFile(w.path()+"-journal"))(t)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	records := (len(journal) - header) / record
	if records < 10 {
		t.Fatalf("the journal has %d pages, too few to show anything", records)
	}
	for n := range records {
		torn := bytes.Clone(journal)
		clear(torn[header+n*record+4+512 : header+n*record+4+1024])
		crashed := &world{dir: t.TempDir(), vfs: w.vfs}
		for suffix, data := range map[string][]byte{"": database, "-journal": torn} {
			if err := os.WriteFile(crashed.path()+suffix, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again := crashed.open(t)
		if got := ask(t, again, `SELECT count(*) FROM secrets WHERE data = zeroblob(20000)`); got != "2" {
			t.Errorf("with page %d torn %s rows are as they were", n, got)
		}
		if got := ask(t, again, `PRAGMA integrity_check`); got != "ok" {
			t.Errorf("with page %d torn: %s", n, got)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestForeignEnvelopeIsNotOverwritten: A process that has the database open does not overwrite an envelope that another program wrote.
func TestForeignEnvelopeIsNotOverwritten(t *testing.T) {
	w, after := newWorld(t), newWorld(t)
	db := w.open(t, "journal_mode(WAL)", "wal_autocheckpoint(0)")
	do(t, db, `CREATE TABLE secrets (text TEXT)`, `PRAGMA wal_checkpoint(TRUNCATE)`)
	envelope := must(w.pages.Wrap(after.key))(t)
	file := must(os.OpenFile(w.path(), os.O_RDWR, 0))(t)
	if _, err := file.WriteAt(envelope[:], 0); err != nil {
		t.Fatal(err)
	}
	first := must(os.ReadFile(w.path()))(t)[:sealed.PageSize]
	do(t, db, `CREATE TABLE more (text TEXT)`, `PRAGMA wal_checkpoint(TRUNCATE)`)
	again := must(os.ReadFile(w.path()))(t)[:sealed.PageSize]
	if bytes.Equal(first, again) {
		t.Error("the first page was not written again, so this shows nothing")
	}
	if !bytes.Equal(again[:seal.EnvelopeSize], envelope[:]) {
		t.Error("the old envelope is back")
	}
	if got := ask(t, db, `PRAGMA integrity_check`); got != "ok" {
		t.Error(got)
	}
	if err := errors.Join(db.Close(), file.Close()); err != nil { // in this order: closing the file would release SQLite's locks
		t.Error(err)
	}
}

// TestTemporaryFilesAreRefused: Unencrypted temporary files next to the database are refused.
func TestTemporaryFilesAreRefused(t *testing.T) {
	w := newWorld(t)
	db := w.open(t)
	db.SetMaxOpenConns(1)
	do(t, db, `PRAGMA temp_store = FILE`, `PRAGMA temp.cache_size = 5`, `CREATE TABLE secrets (text TEXT)`)
	_, err := db.ExecContext(t.Context(), `CREATE TEMP TABLE copies AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
		SELECT '`+secret+`' || i FROM n`)
	if err == nil || !strings.Contains(err.Error(), "unable to open") {
		t.Errorf("a temporary table gives %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestVFSInUseIsNotRemoved: A VFS cannot be removed while files are open, and can be after they are closed.
func TestVFSInUseIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	db := w.open(t)
	do(t, db, `CREATE TABLE secrets (text TEXT)`)
	if err := w.vfs.Close(); !errors.Is(err, sealed.ErrInUse) {
		t.Errorf("closing it gives %v", err)
	}
	do(t, db, `INSERT INTO secrets VALUES ('x')`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.vfs.Close(); err != nil {
		t.Error(err)
	}
}
