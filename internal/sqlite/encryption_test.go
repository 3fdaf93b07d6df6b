package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/dbtest"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlite/sealed"
)

func newKey(t *testing.T) seal.Key {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := seal.CreateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	key, err := seal.ReadKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func with(dir string, key seal.Key) sqlite.Options {
	return sqlite.Options{Dir: dir, Key: func() (seal.Key, error) { return key, nil }}
}

// takeNotes writes notes into a table, and closes the storage.
func takeNotes(t *testing.T, dir string, key seal.Key) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: discard, Key: func() (seal.Key, error) { return key, nil }})
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Exec(t, s, `CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT`)
	for i := range 5 {
		dbtest.Exec(t, s, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
			INSERT INTO notes (text) SELECT 'Zyxwvutsrq ' || i || ' %d' FROM n`, i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// notes counts the notes, with a key.
func notes(t *testing.T, dir string, key seal.Key) int {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: discard, Key: func() (seal.Key, error) { return key, nil }})
	if err != nil {
		t.Fatal(err)
	}
	n := dbtest.Value[int](t, s, `SELECT count(*) FROM notes WHERE text LIKE 'Zyxwvutsrq %'`)
	dbtest.Exec(t, s, `UPDATE notes SET text = text || '.' WHERE id = 1`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func wantSound(t *testing.T, key seal.Key, file string, backup bool) {
	t.Helper()
	r, err := sqlite.Files{Key: key, Checks: sqlstore.Checks()}.Check(t.Context(), file, backup)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Sound() {
		t.Errorf("%s is damaged: %+v", file, r.Findings)
	}
}

// filesWithText returns the files of a folder that contain a text.
func filesWithText(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			names = append(names, e.Name())
		}
	}
	return names
}

// wantRefused opens a database that must be refused, and checks the error and that no byte changed.
func wantRefused(t *testing.T, dir string, key seal.Key, want error) {
	t.Helper()
	before, err := os.ReadFile(sqlite.DatabasePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	s := dbtest.Open(t, with(dir, key))
	if reason := s.Status().Reason; !strings.Contains(reason, want.Error()) {
		t.Errorf("the reason is %q, not %q", reason, want)
	}
	if err := exec(t.Context(), s, `DELETE FROM notes`); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("writing gives %v", err)
	}
	if after, err := os.ReadFile(sqlite.DatabasePath(dir)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the database was changed (%v)", err)
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(sqlite.DatabasePath(dir) + suffix); err == nil && info.Size() > 0 {
			t.Errorf("something was written to %s", suffix)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestEncryptionLifecycle: A database is created encrypted, copied, decrypted, encrypted again, and given other keys. Nothing is lost. A wrong
// key gives an error and changes nothing.
func TestEncryptionLifecycle(t *testing.T) {
	dir, none := t.TempDir(), seal.Key{}
	first, second, third := newKey(t), newKey(t), newKey(t)
	path := sqlite.DatabasePath(dir)
	takeNotes(t, dir, first)
	want := func(when string, key seal.Key) {
		t.Helper()
		if got := notes(t, dir, key); got != 1000 {
			t.Errorf("%s there are %d notes", when, got)
		}
		wantSound(t, key, path, false)
		if found := filesWithText(t, dir, "Zyxwvutsrq"); len(found) > 0 != key.IsZero() {
			t.Errorf("%s notes are in %q", when, found)
		}
	}
	want("at first", first)
	wantRefused(t, dir, none, sqlite.ErrEncrypted)
	wantRefused(t, dir, second, sqlite.ErrKey)

	if err := sqlite.Rewrap(t.Context(), dir, third, second); !errors.Is(err, sqlite.ErrKey) {
		t.Errorf("rotating with the wrong key gives %v", err)
	}
	if err := sqlite.Rewrap(t.Context(), dir, first, second); err != nil {
		t.Fatal(err)
	}
	want("with another key", second)
	wantRefused(t, dir, first, sqlite.ErrKey)

	if _, err := sqlite.Reencrypt(t.Context(), dir, second, third); err != nil {
		t.Fatal(err)
	}
	want("with another data key", third)
	wantRefused(t, dir, second, sqlite.ErrKey)

	if _, err := sqlite.Reencrypt(t.Context(), dir, third, none); err != nil {
		t.Fatal(err)
	}
	want("decrypted", none)
	wantRefused(t, dir, first, sqlite.ErrNotEncrypted)
	if _, err := sqlite.Reencrypt(t.Context(), dir, none, none); !errors.Is(err, sqlite.ErrUnchanged) {
		t.Errorf("decrypting again gives %v", err)
	}
	if _, err := sqlite.Reencrypt(t.Context(), dir, none, first); err != nil {
		t.Fatal(err)
	}
	want("encrypted again", first)
}

// TestExistingDatabaseIsEncrypted: A database from before encryption keeps all its data, and the plain file is overwritten.
func TestExistingDatabaseIsEncrypted(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	takeNotes(t, dir, seal.Key{})
	second := filepath.Join(t.TempDir(), "second name")
	if err := os.Link(sqlite.DatabasePath(dir), second); err != nil {
		t.Skip("no hard links here:", err)
	}
	if _, err := sqlite.Reencrypt(t.Context(), dir, seal.Key{}, key); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.Trim(old, "\x00")) > 0 {
		t.Error("the old file was not overwritten")
	}
	if got := notes(t, dir, key); got != 1000 {
		t.Errorf("there are %d notes", got)
	}
}

// TestEncryptedBackup: A backup of an encrypted database is encrypted, opens only with its key, and can be restored.
func TestEncryptedBackup(t *testing.T) {
	dir, other, key := t.TempDir(), t.TempDir(), newKey(t)
	takeNotes(t, dir, key)
	file := filepath.Join(other, "backup.db")
	if _, err := sqlite.MakeBackup(t.Context(), dir, file, sqlite.BackupOptions{}); !errors.Is(err, sqlite.ErrEncrypted) {
		t.Errorf("without a key a backup gives %v", err)
	}
	if _, err := sqlite.MakeBackup(t.Context(), dir, file, sqlite.BackupOptions{Key: key}); err != nil {
		t.Fatal(err)
	}
	if found := filesWithText(t, other, "Zyxwvutsrq"); len(found) > 0 {
		t.Errorf("the backup has plain text: %q", found)
	}
	wantSound(t, key, file, true)
	target := filepath.Join(t.TempDir(), "restored")
	for _, wrong := range []struct {
		key  seal.Key
		want error
	}{{seal.Key{}, sqlite.ErrEncrypted}, {newKey(t), sqlite.ErrKey}} {
		if _, err := (sqlite.Files{Key: wrong.key}).Restore(t.Context(), file, target, false, time.Now()); !errors.Is(err, wrong.want) {
			t.Errorf("restoring gives %v, not %v", err, wrong.want)
		}
	}
	if _, err := (sqlite.Files{Key: key}).Restore(t.Context(), file, target, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := notes(t, target, key); got != 1000 {
		t.Errorf("the restored database has %d notes", got)
	}
	rebuild := func(ctx context.Context, db sqldb.Access) error {
		_, err := sqlstore.Rebuild(ctx, db, sqlstore.RebuildOptions{})
		return err
	}
	if err := sqlite.Reindex(t.Context(), target, discard, key, rebuild); err != nil {
		t.Error(err)
	}
}

// TestTamperedPagesAreNotRead: Pages that were changed or swapped are not read.
func TestTamperedPagesAreNotRead(t *testing.T) {
	const page = 4096
	for name, change := range map[string]func(file []byte){
		"a bit":          func(file []byte) { file[20*page+100] ^= 1 },
		"pages swapped":  func(file []byte) { swapPages(file, 20, 21) },
		"the first page": func(file []byte) { file[2000] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			dir, key := t.TempDir(), newKey(t)
			takeNotes(t, dir, key)
			file, err := os.ReadFile(sqlite.DatabasePath(dir))
			if err != nil {
				t.Fatal(err)
			}
			change(file)
			if err := os.WriteFile(sqlite.DatabasePath(dir), file, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := sqlite.Files{Key: key, Checks: sqlstore.Checks()}.Check(t.Context(), sqlite.DatabasePath(dir), false)
			if err != nil || r.Sound() {
				t.Errorf("nothing is wrong (%v): %+v", err, r)
			}
		})
	}
}

func swapPages(file []byte, a, b int) {
	const page = 4096
	x, y := file[a*page:(a+1)*page], file[b*page:(b+1)*page]
	kept := bytes.Clone(x)
	copy(x, y)
	copy(y, kept)
}

// TestRotationInterrupted: After a rotation that was interrupted at any point, one of the two keys opens the database.
func TestRotationInterrupted(t *testing.T) {
	dir, before, after := t.TempDir(), newKey(t), newKey(t)
	takeNotes(t, dir, before)
	path := sqlite.DatabasePath(dir)
	old := read(t, path)[:seal.EnvelopeSize]
	if err := sqlite.Rewrap(t.Context(), dir, before, after); err != nil {
		t.Fatal(err)
	}
	file := read(t, path)
	changed := bytes.Clone(file[:seal.EnvelopeSize])
	torn := append(bytes.Clone(changed[:20]), old[20:]...)
	for _, c := range []struct {
		name       string
		inDatabase []byte
		key        seal.Key
	}{
		{"before it was put into the database", old, before},
		{"before, and the new key is set", old, after},
		{"in the middle", torn, after},
		{"before the waiting one was removed", changed, after},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := sqlite.DatabasePath(dir)
			write(t, path, append(bytes.Clone(c.inDatabase), file[seal.EnvelopeSize:]...))
			write(t, path+"-envelope", changed)
			for range 2 {
				if got := notes(t, dir, c.key); got != 1000 {
					t.Errorf("there are %d notes", got)
				}
			}
			if _, err := os.Stat(path + "-envelope"); !errors.Is(err, os.ErrNotExist) {
				t.Error("the envelope that waited is still there")
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestReencryptInterrupted: An interrupted run leaves the database unchanged, and no files.
func TestReencryptInterrupted(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	takeNotes(t, dir, seal.Key{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Reencrypt(ctx, dir, seal.Key{}, key); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted it gives %v", err)
	}
	write(t, filepath.Join(dir, ".reseal.1.part"), []byte("left by one that was killed"))
	if got := notes(t, dir, seal.Key{}); got != 1000 {
		t.Errorf("there are %d notes", got)
	}
	if _, err := sqlite.Reencrypt(t.Context(), dir, seal.Key{}, key); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*part*")); err != nil || len(left) > 0 {
		t.Errorf("there are still %q (%v)", left, err)
	}
	s := dbtest.Open(t, with(dir, key))
	if _, err := sqlite.Reencrypt(t.Context(), dir, key, seal.Key{}); !errors.Is(err, sqlite.ErrLocked) {
		t.Errorf("beside a sidecar it gives %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestStorageOpensWhenTheKeyAppears: A sidecar whose key cannot be read runs without storage, and with it once the key can be read.
func TestStorageOpensWhenTheKeyAppears(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	takeNotes(t, dir, key)
	missing := errors.New("the key file cannot be read")
	arrived := make(chan struct{})
	opened := make(chan struct{}, 1)
	s := dbtest.Open(t, sqlite.Options{Dir: dir, RetryMin: time.Millisecond, RetryMax: time.Millisecond, Key: func() (seal.Key, error) {
		select {
		case <-arrived:
			return key, nil
		default:
			return seal.Key{}, missing
		}
	}})
	s.OnOpen(func() {
		select {
		case opened <- struct{}{}:
		default:
		}
	})
	if reason := s.Status().Reason; !strings.Contains(reason, missing.Error()) {
		t.Errorf("the reason is %q", reason)
	}
	close(arrived)
	<-opened
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := notes(t, dir, key); got != 1000 {
		t.Errorf("there are %d notes", got)
	}
}

// TestPurgeOfEncryptedPages: Deleted data is purged from encrypted pages, too, so a stolen key does not reveal it later. The log is empty then.
func TestPurgeOfEncryptedPages(t *testing.T) {
	dir, key := t.TempDir(), newKey(t)
	s := dbtest.Open(t, with(dir, key))
	leaveCopies(t, s)
	if info, err := os.Stat(sqlite.DatabasePath(dir) + "-wal"); err != nil || info.Size() > 2*4096 { // the mark that the purge is done
		t.Errorf("the log was not emptied: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := read(t, sqlite.DatabasePath(dir))
	envelope := seal.Envelope(file[:seal.EnvelopeSize])
	pages, err := seal.OpenPages(key, envelope)
	if err != nil {
		t.Fatal(err)
	}
	vfs, err := sealed.Register(pages, envelope)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(file) / sealed.PageSize {
		if err := vfs.OpenPage(int64(i+1), file[i*sealed.PageSize:(i+1)*sealed.PageSize]); err != nil {
			t.Errorf("page %d: %v", i+1, err)
		}
	}
	if err := vfs.Close(); err != nil {
		t.Error(err)
	}
	if bytes.Contains(file, []byte(secret)) {
		t.Error("the secret is still in the pages")
	}
	if !bytes.Contains(file, []byte("other")) {
		t.Error("nothing is in the pages: not finding the secret shows nothing")
	}
}
