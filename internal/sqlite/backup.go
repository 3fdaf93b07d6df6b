package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// ErrExists means that something is where a file is to be made.
var ErrExists = errors.New("the file exists already")

// BackupOptions describes a backup.
type BackupOptions struct {
	// Key is that of the database, and opens the backup as well; the zero Key if it is not encrypted.
	Key seal.Key
	// Replace allows a file of that name to be replaced.
	Replace bool
	// Progress is called periodically with the bytes that are written and the most that will be written. Optional.
	Progress func(written, total int64)
}

// Backup is what was made.
type Backup struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	Schema int64  `json:"schema"` // version of the tables
	// Encrypted is whether it is, as the database is: a key alone encrypts nothing.
	Encrypted bool `json:"encrypted"`
}

// MakeBackup copies the database of a data folder at one moment into a file. A sidecar may be running. The file is compact and holds
// nothing that was deleted. It is verified and synced before it gets its name, so a file of that name is always complete.
func MakeBackup(ctx context.Context, dir, file string, o BackupOptions) (b Backup, err error) {
	if _, err := os.Lstat(file); err == nil && !o.Replace {
		return b, fmt.Errorf("%s: %w", file, ErrExists)
	}
	s, err := openSnapshot(ctx, DatabasePath(dir), o.Key)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.schema(ctx); err != nil {
		return b, err
	}
	var pages, size int64
	if err := s.QueryRow(ctx, `SELECT page_count, page_size FROM pragma_page_count, pragma_page_size`).Scan(&pages, &size); err != nil {
		return b, err
	}
	// VACUUM begins a transaction of its own.
	if _, err := s.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		return b, err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.part")
	if err != nil {
		return b, err
	}
	part := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(part))
		}
	}()
	if err := f.Close(); err != nil {
		return b, err
	}
	stop := watch(part, pages*size, o.Progress)
	_, err = s.conn.ExecContext(ctx, "VACUUM INTO ?", part)
	stop()
	if err != nil {
		return b, fmt.Errorf("writing %s: %w", part, err)
	}
	if err := syncFile(part); err != nil {
		return b, err
	}
	if b.Schema, err = verify(ctx, part, "the new backup", o.Key); err != nil {
		return b, err
	}
	info, err := os.Stat(part)
	if err != nil {
		return b, err
	}
	b.File, b.Bytes, b.Encrypted = file, info.Size(), s.vault != nil
	if err := os.Rename(part, file); err != nil {
		return b, err
	}
	return b, syncFolder(filepath.Dir(file))
}

// watch reports the size of a file until stop is called.
func watch(file string, total int64, progress func(written, total int64)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			if info, err := os.Stat(file); err == nil {
				progress(min(info.Size(), total), total)
			}
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
