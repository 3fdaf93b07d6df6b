package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"
)

const lockName = "memsidecar.lock"

// ErrLocked means that another sidecar uses the data folder.
var ErrLocked = errors.New("another memsidecar uses this data folder: stop it, or give this one another data_dir")

// DatabasePath returns the path of the database in a data folder.
func DatabasePath(dir string) string { return filepath.Join(dir, fileName) }

func newLock(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))
}

// lockFolder creates the folder if necessary, and locks it against other sidecars until the lock is closed.
func lockFolder(dir string) (*flock.Flock, error) {
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	lock := newLock(dir)
	got, err := lock.TryLock()
	if err == nil && !got {
		err = ErrLocked
	}
	if err == nil {
		err = tryDatabase(DatabasePath(dir))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// tryDatabase returns ErrLocked if a sidecar has the database open although its lock file was removed.
func tryDatabase(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil //nolint:nilerr // no database, or one that the caller will not open either
	}
	return errors.Join(lockDatabase(f), closeDatabase(f))
}

// filesWithText reports whether the lock is on the lock file that is in the folder now.
func filesWithText(lock *flock.Flock) bool {
	if !lock.Locked() {
		return false
	}
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(lock.Path())
	return err == nil && os.SameFile(held, there)
}

// makeFolder creates the data folder and its parents durably: after a power loss a synced file is lost if its folder is.
func makeFolder(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		missing = append(missing, at)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, made := range missing {
		if err := syncFolder(filepath.Dir(made)); err != nil {
			return err
		}
	}
	return nil
}

// syncFolder makes the names in a folder durable. Windows has no such call and needs none: NTFS logs names.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFile makes the content of a file durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
