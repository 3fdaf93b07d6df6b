// Package reload keeps a value that is read from files, such as tokens and certificates, up to date while the program runs. It checks the
// files when the value is requested, at most once a second, so nothing runs in the background. A change is detected by modification time,
// size and identity of a file, which works on every file system and for files that are replaced by renaming, as Kubernetes and certbot do.
package reload

import (
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// interval is the minimum time between two checks of the files.
const interval = time.Second

// Files is a value and the files from which it is read. It is safe for concurrent use.
type Files[T any] struct {
	paths  []string
	read   func() (T, error)
	report func(err error)
	now    func() time.Time

	value atomic.Pointer[T]
	due   atomic.Int64 // time of the next check, in Unix nanoseconds

	mu     sync.Mutex // guards the fields below
	seen   []fs.FileInfo
	failed string // the last error of reading, or ""
}

// Open reads the value. When a file has changed later, the value is read again. If that fails, the previous value stays in use and reading
// is repeated. report is called with each new error, and with nil after each success.
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

// Get returns the value as of at most a second ago. A hanging file system blocks one caller; the others get the current value.
func (f *Files[T]) Get() T {
	if f.now().UnixNano() >= f.due.Load() && f.mu.TryLock() {
		f.refresh()
		f.mu.Unlock()
	}
	return *f.value.Load()
}

// Fresh returns the value as the files have it now.
func (f *Files[T]) Fresh() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	return *f.value.Load()
}

// Reload reads the files even if they have not changed.
func (f *Files[T]) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load(f.stat())
}

// refresh reads the files if they have changed or could not be read last time.
func (f *Files[T]) refresh() {
	if now := f.stat(); f.failed != "" || !same(f.seen, now) {
		_ = f.load(now) // reported
	}
	f.due.Store(f.now().Add(interval).UnixNano())
}

// load reads the files. seen is their state just before, so that a change while they are read is noticed at the next check.
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

// stat returns the state of the files; nil for a file without one.
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
