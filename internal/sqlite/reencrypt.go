package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlite/sealed"
)

// ErrUnchanged means that a database already is as requested.
var ErrUnchanged = errors.New("nothing is to be done")

// ErrInUse means that a program other than a sidecar has the database open.
var ErrInUse = errors.New("another program has the database open, such as memsidecar backup or memsidecar check: wait until it has ended")

// Reencrypted is the result of [Reencrypt].
type Reencrypted struct {
	Dir       string `json:"data_dir"`
	Bytes     int64  `json:"bytes"`
	Encrypted bool   `json:"encrypted"`
}

// Encrypt encrypts a database that is not encrypted.
func Encrypt(ctx context.Context, dir string, key seal.Key) (Reencrypted, error) {
	if _, found, err := identify(DatabasePath(dir), seal.Key{}); found == encrypted {
		return Reencrypted{}, fmt.Errorf("%s is encrypted: %w", DatabasePath(dir), ErrUnchanged)
	} else if err != nil {
		return Reencrypted{}, err
	}
	return Reencrypt(ctx, dir, seal.Key{}, key)
}

// Reencrypt rewrites the database of a data folder. If after is a key, the new database is encrypted with a new data key, else it is not
// encrypted. before is the zero Key for a database that is not encrypted. No sidecar may use the folder at the same time, and the disk
// needs room for the database twice. A crash leaves the old database or the new one. An unencrypted old database is overwritten, as far
// as a program can do that.
func Reencrypt(ctx context.Context, dir string, before, after seal.Key) (r Reencrypted, err error) {
	path := DatabasePath(dir)
	unlockFolder, from, err := openResting(ctx, dir, before)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, unlockFolder()) }()
	defer func() { err = errors.Join(err, from.close()) }()
	if from == nil && after.IsZero() {
		return r, fmt.Errorf("%s is not encrypted: %w", path, ErrUnchanged)
	}
	var to *vault
	if !after.IsZero() {
		if to, err = newVault(after); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, to.close()) }()
	}
	part, err := copyInto(ctx, path, from, to)
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(part))
		}
	}()
	if _, err := verify(ctx, part, "the new database", after); err != nil {
		return r, err
	}
	if err := keepOwner(part, path); err != nil {
		return r, err
	}
	info, err := os.Stat(part)
	if err != nil {
		return r, err
	}
	r = Reencrypted{Dir: dir, Bytes: info.Size(), Encrypted: to != nil}
	return r, swap(part, path, from == nil)
}

// copyInto copies the database into a new file in the same folder, and syncs it.
func copyInto(ctx context.Context, path string, from, to *vault) (part string, err error) {
	if err := removeParts(filepath.Dir(path)); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), reencryptPrefix+"*"+partSuffix)
	if err != nil {
		return "", err
	}
	part = f.Name()
	err = f.Close()
	if err == nil {
		err = sealed.Copy(ctx, path, from.name(), part, to.name())
	}
	if err == nil {
		err = syncFile(part)
	}
	if err != nil {
		return "", errors.Join(err, removeIfThere(part), removeIfThere(part+"-journal"))
	}
	return part, nil
}

// Names of the temporary files of Reencrypt and Restore.
const (
	reencryptPrefix = ".reseal."
	restorePrefix   = ".restore."
	partSuffix      = ".part"
)

// removeParts removes temporary files that a killed Reencrypt or Restore left in the folder, because they may hold decrypted data or the data
// of forgotten users. The caller must have the folder locked.
func removeParts(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), "-journal")
		if strings.HasSuffix(name, partSuffix) && (strings.HasPrefix(name, reencryptPrefix) || strings.HasPrefix(name, restorePrefix)) {
			err = errors.Join(err, removeIfThere(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// swap gives the new file its name. If wipe is set, the old file is overwritten after it lost its name, except on Windows, where an
// open file keeps its name.
func swap(part, path string, wipe bool) (err error) {
	var old *os.File
	if wipe && runtime.GOOS != "windows" {
		if old, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, old.Close()) }()
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	for _, suffix := range []string{"-shm", envelopeSuffix} {
		if err := removeIfThere(path + suffix); err != nil {
			return err
		}
	}
	if err := syncFolder(filepath.Dir(path)); err != nil || old == nil {
		return err
	}
	return zero(old)
}

// zero overwrites a file with zeros.
func zero(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < info.Size(); at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), info.Size()-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}

// Rewrap replaces the key of the database in a data folder. The data key, and so all encrypted data, stays the same. After a crash
// either key opens the database; after a return only the new one. No sidecar may use the folder at the same time.
func Rewrap(ctx context.Context, dir string, before, after seal.Key) (err error) {
	path := DatabasePath(dir)
	unlockFolder, v, err := openResting(ctx, dir, before)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close(), unlockFolder()) }()
	if v == nil {
		return ErrNotEncrypted
	}
	envelope, err := v.pages.Wrap(after)
	if err != nil {
		return err
	}
	if err := writeSynced(path+envelopeSuffix, envelope[:]); err != nil {
		return err
	}
	if err := putEnvelope(path, envelope); err != nil {
		return err
	}
	if err := removeIfThere(path + envelopeSuffix); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// writeSynced writes a file that is complete even after a power loss.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// openResting locks a folder, copies the log into the database, and returns its vault: nil if it is not encrypted.
func openResting(ctx context.Context, dir string, key seal.Key) (unlockFolder func() error, _ *vault, err error) {
	path := DatabasePath(dir)
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, nil, fmt.Errorf("%w in %s", ErrNoDatabase, dir)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	if err := emptyLog(ctx, path, key); err != nil {
		return nil, nil, err
	}
	v, err := unlockKnown(path, key)
	if err != nil {
		return nil, nil, err
	}
	if err := v.completeRotation(path); err != nil {
		return nil, nil, errors.Join(err, v.close())
	}
	return lock.Close, v, nil
}

// emptyLog empties the log. The last connection to close removes the log; if it still exists, another program has the database open.
func emptyLog(ctx context.Context, path string, key seal.Key) (err error) {
	s, err := openFile(ctx, path, "rw", key)
	if err != nil {
		return err
	}
	_, err = s.schema(ctx)
	if err == nil {
		var busy, inLog, copied int
		err = s.QueryRow(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &inLog, &copied)
		if err == nil && busy != 0 {
			err = ErrInUse
		}
	}
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		return ErrInUse
	}
	return nil
}
