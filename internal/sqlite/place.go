package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
)

// ErrGone means that the files of an open database are no longer at their paths, or were replaced.
var ErrGone = errors.New("is no longer where it was opened: it was moved, removed, replaced or unmounted; put it back, " +
	"or restore a backup with memsidecar restore: it is opened again as soon as there is a database")

// errLogNotCopied means that a removed log has transactions that are not in the database yet.
var errLogNotCopied = errors.New("the write-ahead log (-wal) was removed or replaced, " +
	"and a reader keeps it from being copied into the database")

// place identifies the files that SQLite has open: the database, its log and the log's index. They stay the same while the database is
// open: SQLite truncates the log and its index, but never replaces them. For a read-only database only the database file is checked: it
// may have no log.
type place struct {
	paths  [3]string
	opened [3]fs.FileInfo // nil: not checked
}

// placeOf returns the place of the database at path; raw is its open file. SQLite must have opened the database before, so that its log
// exists.
func placeOf(path string, raw *os.File) (*place, error) {
	p, err := placeOfDatabase(path, raw)
	if err != nil {
		return nil, err
	}
	for i := range p.paths[1:] {
		if p.opened[i+1], err = os.Stat(p.paths[i+1]); err != nil {
			return nil, goneError(path, err)
		}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// placeOfDatabase is placeOf for a read-only database.
func placeOfDatabase(path string, raw *os.File) (*place, error) {
	p := &place{paths: [3]string{path, path + "-wal", path + "-shm"}}
	var err error
	if p.opened[0], err = raw.Stat(); err != nil {
		return nil, err
	}
	err = p.check()
	return p, err
}

func goneError(path string, cause error) error { return fmt.Errorf("%s %w (%w)", path, ErrGone, cause) }

// check returns ErrGone unless all files are at their paths. It costs three stat calls.
func (p *place) check() error {
	for i, path := range p.paths {
		if p.opened[i] == nil {
			continue
		}
		if there, err := os.Stat(path); err != nil {
			return goneError(p.paths[0], err)
		} else if !os.SameFile(p.opened[i], there) {
			return goneError(p.paths[0], fmt.Errorf("another file is at %s", path))
		}
	}
	return nil
}

// has reports which of the files are at their paths.
func (p *place) has() (database, log, index bool) {
	var same [3]bool
	for i, path := range p.paths {
		if same[i] = p.opened[i] == nil; same[i] {
			continue
		}
		there, err := os.Stat(path)
		same[i] = err == nil && os.SameFile(p.opened[i], there)
	}
	return same[0], same[1], same[2]
}

// guarded opens connections only while the files are in place. A pool may open connections late, and SQLite opens files by path.
type guarded struct {
	driver driver.Driver
	dsn    string
	place  *place
}

// Connect implements driver.Connector.
func (g *guarded) Connect(context.Context) (driver.Conn, error) {
	if err := g.place.check(); err != nil {
		return nil, err
	}
	return g.driver.Open(g.dsn)
}

// Driver implements driver.Connector.
func (g *guarded) Driver() driver.Driver { return g.driver }

// leave prepares closing a database whose files are not all in place. If the database and its log were separated, it saves the log's
// transactions as far as possible. It leaves no log with the wrong database, and keeps SQLite from deleting the files of another database
// by their names.
// It reports whether the database itself has moved. After an error the database must stay open, because the content of its log is not
// yet copied into it.
func (d *database) leave(ctx context.Context) (elsewhere bool, err error) {
	database, log, index := d.place.has()
	if database && log && index {
		return false, nil
	}
	if d.writer == nil { // it is read-only
		return !database, nil
	}
	err = d.submit(ctx, &writeRequest{after: func(ctx context.Context) error {
		switch {
		case database && !log:
			if copied, err := d.copyLog(ctx, "FULL"); err != nil || !copied {
				return errors.Join(errLogNotCopied, err)
			}
			return d.putLogAside()
		case log && !database:
			if err := d.takeLogAlong(ctx); err != nil {
				return err
			}
		}
		if database {
			return nil
		}
		return d.conn.Raw(func(conn any) error {
			control, ok := conn.(sqlite.FileControl)
			if !ok {
				return errors.New("SQLite's driver has no file control")
			}
			_, err := control.FileControlPersistWAL("main", 1)
			return err
		})
	}})
	return !database, err
}

// takeLogAlong copies the log into the moved database and empties the log. If the database was removed, the log is kept aside.
func (d *database) takeLogAlong(ctx context.Context) error {
	if linked(d.raw) {
		if copied, err := d.copyLog(ctx, "TRUNCATE"); err == nil && copied {
			return nil
		}
	}
	return d.putLogAside()
}

// copyLog copies the log into the database, wherever they are, and reports whether all of it is copied. The writer calls it.
func (d *database) copyLog(ctx context.Context, mode string) (bool, error) {
	var busy, inLog, copied int
	err := d.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &inLog, &copied)
	return busy == 0 && inLog == copied, err
}

// putLogAside renames a log at the path unless it is empty: SQLite would apply it to any database there.
func (d *database) putLogAside() error {
	log := d.place.paths[1]
	info, err := os.Stat(log)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	aside := asideName(d.place.paths[0], time.Now()) + "-wal"
	if err := os.Rename(log, aside); err != nil {
		return err
	}
	d.log.Warn("a write-ahead log does not belong to the database in its folder and was renamed", "file", aside)
	return syncFolder(filepath.Dir(log))
}

// checkReturned returns ErrGone unless the file at the path may be a database.
func checkReturned(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return goneError(path, err)
	case info.Size() == 0:
		return goneError(path, errors.New("an empty file is there"))
	}
	return nil
}

// recognise returns an error unless the file is a database of this program. It creates nothing.
func recognise(ctx context.Context, path string, options *Options) (err error) {
	key, err := options.key()
	if err != nil {
		return err
	}
	s, err := openFile(ctx, path, "rw", key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	_, err = s.schema(ctx)
	return err
}
