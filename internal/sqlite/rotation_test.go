package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// waiting is the envelope file of a rotation that has not reached the database yet.
func waiting(dir string) string { return sqlite.DatabasePath(dir) + "-envelope" }

// rotated rotates the database to another key, and returns its new envelope.
func rotated(t *testing.T, dir string, before, after seal.Key) (envelope []byte) {
	t.Helper()
	if err := sqlite.Rewrap(t.Context(), dir, before, after); err != nil {
		t.Fatal(err)
	}
	return read(t, sqlite.DatabasePath(dir))[:seal.EnvelopeSize]
}

// TestForeignEnvelopeIsIgnored: A pending envelope of another database, as when a backup was copied over a database with an interrupted
// rotation, is not written into this one. It would make all data unreadable.
func TestForeignEnvelopeIsIgnored(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	key, second, third := newKey(t), newKey(t), newKey(t)
	takeNotes(t, dir, key)
	takeNotes(t, other, second)
	write(t, waiting(dir), rotated(t, other, second, third))
	wantRefused(t, dir, third, sqlite.ErrKey)
	if _, err := (sqlite.Files{Key: third}).Check(t.Context(), sqlite.DatabasePath(dir), false); !errors.Is(err, sqlite.ErrKey) {
		t.Errorf("checking it with the key of the other gives %v", err)
	}
	if got := notes(t, dir, key); got != 1000 {
		t.Errorf("there are %d notes", got)
	}
}

// TestRestoreSetsEnvelopeAside: A pending envelope belongs to the replaced database, and is put aside with it.
func TestRestoreSetsEnvelopeAside(t *testing.T) {
	dir, key, after := t.TempDir(), newKey(t), newKey(t)
	takeNotes(t, dir, key)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := sqlite.MakeBackup(t.Context(), dir, backup, sqlite.BackupOptions{Key: key}); err != nil {
		t.Fatal(err)
	}
	file := read(t, sqlite.DatabasePath(dir))
	envelope := rotated(t, dir, key, after)
	torn := append(bytes.Clone(envelope[:20]), file[20:]...) // the rotation was interrupted halfway
	write(t, sqlite.DatabasePath(dir), torn)
	write(t, waiting(dir), envelope)

	restored, err := sqlite.Files{Key: key}.Restore(t.Context(), backup, dir, true, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(waiting(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is next to the restored database")
	}
	if got := notes(t, dir, key); got != 1000 {
		t.Errorf("the restored database has %d notes", got)
	}
	wantSound(t, after, restored.Aside, false)
}

// TestRotationWaitsForOpenConnections: A process that has the database open would continue with the old key, so rotating and rewriting wait until it
// has ended.
func TestRotationWaitsForOpenConnections(t *testing.T) {
	dir, key, after := t.TempDir(), newKey(t), newKey(t)
	takeNotes(t, dir, key)
	reader := &progress{begun: make(chan struct{}), goOn: make(chan struct{})}
	ended, backup := make(chan error, 1), filepath.Join(t.TempDir(), "backup.db")
	go func() {
		_, err := sqlite.MakeBackup(t.Context(), dir, backup, sqlite.BackupOptions{Key: key, Progress: reader.show})
		ended <- err
	}()
	select {
	case <-reader.begun:
	case err := <-ended:
		t.Fatalf("the backup: %v", err)
	}
	if err := sqlite.Rewrap(t.Context(), dir, key, after); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("rotating gives %v", err)
	}
	if _, err := sqlite.Reencrypt(t.Context(), dir, key, after); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("rewriting gives %v", err)
	}
	close(reader.goOn)
	if err := <-ended; err != nil {
		t.Errorf("the backup: %v", err)
	}
	if err := sqlite.Rewrap(t.Context(), dir, key, after); err != nil {
		t.Errorf("rotating when it has ended gives %v", err)
	}
	if got := notes(t, dir, after); got != 1000 {
		t.Errorf("there are %d notes", got)
	}
}

// progress pauses a backup after its start.
type progress struct{ begun, goOn chan struct{} }

func (p *progress) show(int64, int64) {
	select {
	case <-p.begun:
	default:
		close(p.begun)
		<-p.goOn
	}
}

// TestReencryptInAnyFolder: A folder's name may contain characters with a meaning in patterns. Files left by a killed command are removed
// when the sidecar starts: they may be half of a decrypted database.
func TestReencryptInAnyFolder(t *testing.T) {
	for _, name := range []string{"bots[1]", "bots[", "b*t", "?'%41 #"} {
		t.Run(name, func(t *testing.T) {
			dir, key := filepath.Join(t.TempDir(), name), newKey(t)
			takeNotes(t, dir, seal.Key{})
			if _, err := sqlite.Reencrypt(t.Context(), dir, seal.Key{}, key); err != nil {
				t.Fatal(err)
			}
			for _, left := range []string{".reseal.1.part", ".reseal.1.part-journal", ".restore.1.part"} {
				write(t, filepath.Join(dir, left), []byte("Zyxwvutsrq"))
			}
			if got := notes(t, dir, key); got != 1000 {
				t.Errorf("there are %d notes", got)
			}
			if found := filesWithText(t, dir, "Zyxwvutsrq"); len(found) > 0 {
				t.Errorf("after a start notes are in %q", found)
			}
		})
	}
}
