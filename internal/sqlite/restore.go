package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrOccupied means that the data folder has a database already.
var ErrOccupied = errors.New("this folder has a database already")

// Restored is the result of Restore.
type Restored struct {
	Dir    string `json:"data_dir"`
	Schema int64  `json:"schema"`
	// Aside is the path of the previous database; empty if there was none.
	Aside string `json:"kept_aside,omitempty"`
}

// Restore makes a backup the database of a data folder. No sidecar may use the folder at the same time. An existing database is kept
// aside if replace is set; otherwise the error is ErrOccupied. The copy is verified before anything is changed. A crash leaves the old
// database or the new one.
func (of Files) Restore(ctx context.Context, file, dir string, replace bool, now time.Time) (r Restored, err error) {
	if _, err := os.Stat(file); err != nil {
		return r, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	target := DatabasePath(dir)
	_, err = os.Lstat(target)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if there && !replace {
		return r, fmt.Errorf("%s: %w", dir, ErrOccupied)
	}
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return r, fmt.Errorf("%s: %w", file, ErrIncomplete)
	}
	part, err := copyFile(ctx, file, dir)
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(part))
		}
	}()
	if r.Schema, err = verify(ctx, part, file, of.Key); err != nil {
		return r, err
	}
	known, err := knownSchema()
	if err != nil {
		return r, err
	}
	if r.Schema > known {
		return r, fmt.Errorf("%s: %w (its schema is %d, this one knows %d)", file, ErrNewer, r.Schema, known)
	}
	if there {
		// For a moment the old database has no log, so the log must be empty. It cannot be emptied if the database is damaged, or its
		// key is lost.
		if err := emptyLog(ctx, target, of.Key); errors.Is(err, ErrInUse) || ctx.Err() != nil {
			return r, err
		}
		if err := keepOwner(part, target); err != nil {
			return r, err
		}
	}
	aside := asideName(target, now)
	if err := putAside(target, aside, there); err != nil {
		return r, err
	}
	if there {
		r.Aside = aside
	}
	if err := os.Rename(part, target); err != nil {
		return r, err
	}
	r.Dir = dir
	return r, syncFolder(dir)
}

// asideName returns the new name of a replaced database.
func asideName(path string, now time.Time) string {
	return path + ".before-" + now.UTC().Format("20060102T150405.000Z")
}

// putAside gives the database, if there is one, a second name, and renames its logs: SQLite would apply them to any database with the
// first name. The same goes for a pending envelope.
func putAside(target, aside string, there bool) error {
	if there {
		// A link, so that there is always a file under the first name. Not all file systems support links.
		if err := os.Link(target, aside); err != nil {
			if err := os.Rename(target, aside); err != nil {
				return err
			}
		}
	}
	for _, suffix := range []string{"-wal", "-journal", envelopeSuffix} {
		if err := os.Rename(target+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := removeIfThere(target + "-shm"); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(target))
}

// copyFile copies a file into a folder under a temporary name, and syncs it.
func copyFile(ctx context.Context, file, dir string) (part string, err error) {
	from, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.CreateTemp(dir, restorePrefix+"*"+partSuffix)
	if err != nil {
		return "", err
	}
	part = to.Name()
	_, err = io.Copy(to, interruptible{ctx, from})
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return "", errors.Join(err, removeIfThere(part))
	}
	return part, nil
}

// interruptible is a reader that stops when its context ends.
type interruptible struct {
	ctx context.Context //nolint:containedctx // lives as long as one copy
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}
