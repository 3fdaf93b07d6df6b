// Package reload keeps a value that is made of files up to date while the program runs: who may call, and certificates. It
// looks at the files when the value is asked for, at most once a second, so nothing runs in the background and nothing is
// read while nobody asks. Modification time, size and identity of a file tell whether it changed, which works on every file
// system and for files that are replaced by renaming, as Kubernetes and certbot do.
package reload

import (
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// interval is how long the files are not looked at again.
const interval = time.Second

// Files is a value and the files that it is made of. Its methods may be called concurrently.
type Files[T any] struct {
	paths  []string
	read   func() (T, error)
	report func(err error)
	now    func() time.Time

	value atomic.Pointer[T]
	due   atomic.Int64 // when to look again, in nanoseconds since 1970

	mu     sync.Mutex // of what follows
	seen   []fs.FileInfo
	failed string // why reading failed last, or ""
}

// Open reads the value. Later, when a file changed, the value is read anew; when that fails the one before stays in use, it
// is tried again, and report is called: with the error when it is another than before, and with nil after each success.
func Open[T any](paths []string, read func() (T, error), report func(err error)) (*Files[T], error) {
	f := &Files[T]{paths: paths, read: read, report: report, now: time.Now}
	f.seen = f.stat()
	value, err := read()
	if err != nil {
		return nil, err
	}
	f.value.Store(&value)
	f.due.Store(f.now().Add(interval).UnixNano())
	return f, nil
}

// Get returns the value as the files had it a second ago at most. A file system that hangs keeps one caller waiting; the
// others go on with what there is.
func (f *Files[T]) Get() T {
	if f.now().UnixNano() >= f.due.Load() && f.mu.TryLock() {
		f.look()
		f.mu.Unlock()
	}
	return *f.value.Load()
}

// Fresh returns the value as the files have it now.
func (f *Files[T]) Fresh() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return *f.value.Load()
}

// Reload reads the files whether they changed or not.
func (f *Files[T]) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load(f.stat())
}

// look reads the files if they changed, or could not be read last time.
func (f *Files[T]) look() {
	if now := f.stat(); f.failed != "" || !same(f.seen, now) {
		_ = f.load(now) // reported
	}
	f.due.Store(f.now().Add(interval).UnixNano())
}

// load reads the files, which looked like this just before: what changes while they are read is noticed next time.
func (f *Files[T]) load(seen []fs.FileInfo) error {
	value, err := f.read()
	f.seen = seen
	if err != nil {
		if text := err.Error(); text != f.failed {
			f.failed = text
			f.report(err)
		}
		return err
	}
	f.failed = ""
	f.value.Store(&value)
	f.report(nil)
	return nil
}

// stat is how the files look, nil for one that cannot be looked at.
func (f *Files[T]) stat() []fs.FileInfo {
	infos := make([]fs.FileInfo, len(f.paths))
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			infos[i] = info
		}
	}
	return infos
}

func same(a, b []fs.FileInfo) bool {
	for i := range a {
		switch {
		case a[i] == nil || b[i] == nil:
			if a[i] != b[i] {
				return false
			}
		case !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() || !os.SameFile(a[i], b[i]):
			return false
		}
	}
	return true
}
