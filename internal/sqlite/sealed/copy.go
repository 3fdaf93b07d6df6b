package sealed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// Copy copies the database in the file from into the empty file to. fromVFS and toVFS are the names of the VFS for each file; "" is the
// system's default. Deleted data is not copied. Each page of the copy has seal.Overhead reserved bytes. Copy calls SQLite's C API, because
// database/sql offers no way to reserve them.
func Copy(ctx context.Context, from, fromVFS, to, toVFS string) (err error) {
	tls := libc.NewTLS()
	defer tls.Close()
	var texts cStrings
	defer texts.free(tls)
	name, main, vfs := texts.add(uri(from, "")), texts.add("main"), uintptr(0)
	if fromVFS != "" {
		vfs = texts.add(fromVFS)
	}
	toVFS = systemVFS(tls, toVFS)
	statements := texts.add("PRAGMA temp_store = MEMORY; VACUUM INTO " + quoted(uri(to, toVFS)))
	if texts.err != nil {
		return texts.err
	}
	result := tls.Alloc(8)
	defer tls.Free(8)
	rc := sqlite3.Xsqlite3_open_v2(tls, name, result, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_URI|sqlite3.SQLITE_OPEN_FULLMUTEX, vfs)
	db := *at[uintptr](result)
	defer func() {
		if rc := sqlite3.Xsqlite3_close_v2(tls, db); rc != sqlite3.SQLITE_OK && err == nil {
			err = fmt.Errorf("closing %s: SQLite error %d", from, rc)
		}
	}()
	if rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("%s: SQLite error %d", from, rc)
	}
	*at[int32](result) = seal.Overhead
	if rc := sqlite3.Xsqlite3_file_control(tls, db, main, sqlite3.SQLITE_FCNTL_RESERVE_BYTES, result); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("%s: reserving bytes: SQLite error %d", from, rc)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		other := libc.NewTLS()
		defer other.Close()
		sqlite3.Xsqlite3_interrupt(other, db)
	})
	rc = sqlite3.Xsqlite3_exec(tls, db, statements, 0, 0, 0)
	if !stop() {
		<-interrupted // the goroutine uses db, which is closed next
		return errors.Join(ctx.Err(), context.Cause(ctx))
	}
	if rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("writing %s: %s (SQLite error %d)", to, libc.GoString(sqlite3.Xsqlite3_errmsg(tls, db)), rc)
	}
	return nil
}

// systemVFS returns the name, or the name of the system's default VFS if it is empty.
func systemVFS(tls *libc.TLS, name string) string {
	if name != "" {
		return name
	}
	return libc.GoString(at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0)).FzName)
}

func uri(path, vfs string) string {
	u := "file:" + (&url.URL{Path: path}).EscapedPath()
	if vfs != "" {
		u += "?vfs=" + url.QueryEscape(vfs)
	}
	return u
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// cStrings are strings in C's format.
type cStrings struct {
	all []uintptr
	err error
}

func (c *cStrings) add(text string) uintptr {
	p, err := libc.CString(text)
	c.err = errors.Join(c.err, err)
	if err == nil {
		c.all = append(c.all, p)
	}
	return p
}

func (c *cStrings) free(tls *libc.TLS) {
	for _, p := range c.all {
		libc.Xfree(tls, p)
	}
}
