// Package sealed has SQLite write nothing but ciphertext. It is a VFS between SQLite and the system's: pages are sealed on their
// way to the database, its write-ahead log and its rollback journal, and opened on their way back, so that everything else in
// SQLite, and all who use it, know nothing of it. Files are locked, synced and shared as before.
package sealed

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// ErrInUse means that files are still open.
var ErrInUse = errors.New("files are still open")

// VFS is how SQLite reaches the files of one data key. Its name goes into the connection string.
type VFS struct {
	pages    *seal.Pages
	envelope seal.Envelope
	name     string
	open     atomic.Int32 // files

	once  sync.Once
	tls   *libc.TLS
	below uintptr // the system's
	cvfs  uintptr // ours, as SQLite knows it
	cname uintptr
}

// Those that are registered, and their open files, by the addresses that SQLite knows them by.
var (
	registered sync.Map // uintptr → *VFS
	files      sync.Map // uintptr → *file
	numbers    atomic.Int64
)

// file is the state of an open file. SQLite uses it from one goroutine at a time.
type file struct {
	vfs     *VFS
	kind    byte
	scratch uintptr // frameSize bytes
	// The head of a frame that was written last, and for which page: the page follows.
	frame int64
	page  uint32
}

// Register makes a VFS for the pages of a data key. The envelope is written at the beginning of each new database; one that is
// there keeps its own.
func Register(pages *seal.Pages, envelope seal.Envelope) (*VFS, error) {
	v := &VFS{pages: pages, envelope: envelope, name: fmt.Sprintf("sealed%d", numbers.Add(1)), tls: libc.NewTLS()}
	v.below = sqlite3.Xsqlite3_vfs_find(v.tls, 0)
	if v.below == 0 {
		v.tls.Close()
		return nil, errors.New("SQLite has no VFS of the system's")
	}
	var err error
	if v.cname, err = libc.CString(v.name); err != nil {
		v.tls.Close()
		return nil, err
	}
	if v.cvfs = libc.Xcalloc(v.tls, 1, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{}))); v.cvfs == 0 {
		libc.Xfree(v.tls, v.cname)
		v.tls.Close()
		return nil, errors.New("out of memory")
	}
	c := at[sqlite3.Tsqlite3_vfs](v.cvfs)
	*c = *at[sqlite3.Tsqlite3_vfs](v.below) // names, access, time, randomness: as the system's
	c.FszOsFile += realAt
	c.FpNext, c.FzName, c.FxOpen = 0, v.cname, pointer[opening](open)
	registered.Store(v.cvfs, v)
	if rc := sqlite3.Xsqlite3_vfs_register(v.tls, v.cvfs, 0); rc != sqlite3.SQLITE_OK {
		v.free()
		return nil, fmt.Errorf("registering a VFS: SQLite error %d", rc)
	}
	return v, nil
}

// Name is what SQLite knows it by.
func (v *VFS) Name() string { return v.name }

// OpenPage opens a page of a database that was read past SQLite, in place. Pages are numbered from 1. One that is all
// zeros was never written: files have holes where SQLite had no use for a page.
func (v *VFS) OpenPage(number int64, page []byte) error {
	switch {
	case isZero(page):
		return nil
	case number == 1:
		return unpackFirst(v.pages, page)
	}
	return v.pages.Open(page, placeInDatabase((number-1)*PageSize))
}

// Close unregisters the VFS. All connections must have been closed; if not, it stays registered and an error is returned.
func (v *VFS) Close() (err error) {
	if n := v.open.Load(); n > 0 {
		return fmt.Errorf("%w: %d", ErrInUse, n)
	}
	v.once.Do(func() {
		if rc := sqlite3.Xsqlite3_vfs_unregister(v.tls, v.cvfs); rc != sqlite3.SQLITE_OK {
			err = fmt.Errorf("unregistering a VFS: SQLite error %d", rc)
			return
		}
		v.free()
	})
	return err
}

func (v *VFS) free() {
	registered.Delete(v.cvfs)
	libc.Xfree(v.tls, v.cvfs)
	libc.Xfree(v.tls, v.cname)
	v.tls.Close()
}

// open opens databases, logs and journals only. Temporary files would hold unencrypted data; SQLite keeps temporary data in memory.
func open(tls *libc.TLS, cvfs, name, pFile uintptr, flags int32, outFlags uintptr) int32 {
	*at[uintptr](pFile) = 0 // no methods: SQLite does not close it
	f := &file{frame: -1}
	switch {
	case flags&sqlite3.SQLITE_OPEN_MAIN_DB != 0:
		f.kind = database
	case flags&sqlite3.SQLITE_OPEN_WAL != 0:
		f.kind = log
	case flags&sqlite3.SQLITE_OPEN_MAIN_JOURNAL != 0:
		f.kind = journal
	default:
		return sqlite3.SQLITE_CANTOPEN
	}
	value, _ := registered.Load(cvfs)
	var ok bool
	if f.vfs, ok = value.(*VFS); !ok {
		return sqlite3.SQLITE_MISUSE
	}
	r := pFile + realAt
	if rc := function[opening](at[sqlite3.Tsqlite3_vfs](f.vfs.below).FxOpen)(tls, f.vfs.below, name, r, flags, outFlags); rc != sqlite3.SQLITE_OK {
		return rc
	}
	if f.scratch = libc.Xmalloc(tls, frameSize); f.scratch == 0 {
		_, m := below(pFile)
		_ = function[onFile](m.FxClose)(tls, r)
		return sqlite3.SQLITE_NOMEM
	}
	f.vfs.open.Add(1)
	files.Store(pFile, f)
	*at[uintptr](pFile) = uintptr(unsafe.Pointer(&methods)) //nolint:gosec // a package variable, which does not move
	return sqlite3.SQLITE_OK
}

func closeFile(tls *libc.TLS, pFile uintptr) int32 {
	r, m := below(pFile)
	rc := function[onFile](m.FxClose)(tls, r)
	if value, ok := files.LoadAndDelete(pFile); ok {
		if f, ok := value.(*file); ok { // nothing else is stored
			libc.Xfree(tls, f.scratch)
			f.vfs.open.Add(-1)
		}
	}
	return rc
}

// access is a file that SQLite reads or writes.
type access struct {
	*file
	tls  *libc.TLS
	real uintptr
	m    *sqlite3.Tsqlite3_io_methods
}

func accessTo(tls *libc.TLS, pFile uintptr) (access, bool) {
	value, _ := files.Load(pFile)
	f, ok := value.(*file)
	r, m := below(pFile)
	return access{f, tls, r, m}, ok
}

// get and put are the system's read and write.
func (a access) get(into uintptr, n int, offset int64) int32 {
	return function[transfer](a.m.FxRead)(a.tls, a.real, into, int32(n), offset) //nolint:gosec // a frame at most
}

func (a access) put(from uintptr, n int, offset int64) int32 {
	return function[transfer](a.m.FxWrite)(a.tls, a.real, from, int32(n), offset) //nolint:gosec // a frame at most
}

func read(tls *libc.TLS, pFile, into uintptr, n int32, offset int64) int32 {
	a, ok := accessTo(tls, pFile)
	switch {
	case !ok || n < 0:
		return sqlite3.SQLITE_IOERR_READ
	case a.kind == log:
		return a.readLog(into, int(n), offset)
	case a.kind == journal:
		return a.readJournal(into, int(n), offset)
	}
	return a.readDatabase(into, int(n), offset)
}

func write(tls *libc.TLS, pFile, from uintptr, n int32, offset int64) int32 {
	a, ok := accessTo(tls, pFile)
	switch {
	case !ok || n < 0:
		return sqlite3.SQLITE_IOERR_WRITE
	case a.kind == log:
		return a.writeLog(from, int(n), offset)
	case a.kind == journal:
		return a.writeJournal(from, int(n), offset)
	}
	return a.writeDatabase(from, int(n), offset)
}
