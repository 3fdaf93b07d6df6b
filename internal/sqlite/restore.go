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
	// Aside is where the previous database is kept; empty when there was none.
	Aside string `json:"kept_aside,omitempty"`
}

// Restore makes a backup the database of a data folder, which no sidecar may use at the same time. If the folder has a database it is kept
// aside, or the error is ErrOccupied unless replace is set. The copy is verified before anything is changed. A crash leaves the old
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
		return r, fmt.Errorf("%s: %w", file, ErrNotWhole)
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
		// For a moment the old database is without its log, so the log must be empty. For a damaged database, or one whose key is lost,
		// that cannot be done.
		if err := settle(ctx, target, of.Key); errors.Is(err, ErrInUse) || ctx.Err() != nil {
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

// asideName is the name under which a database is kept that another one takes the place of.
func asideName(path string, now time.Time) string {
	return path + ".before-" + now.UTC().Format("20060102T150405.000Z")
}

// putAside gives the database a second name, if there is one, and takes its logs away: SQLite would apply them to whatever has
// the first name. So it is with an envelope that waits.
func putAside(target, aside string, there bool) error {
	if there {
		// A second name, so that there is always one under the first. Not all file systems can.
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

// copyFile copies a file into a folder, under a name of its own, and syncs it.
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

// interruptible reads until its context ends.
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
