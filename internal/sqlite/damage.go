package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Data that cannot be read concerns only the calls that need it. A row whose values cannot be decoded is a *memory.DamagedError: lists and
// searches skip it, and a call for that row alone answers it. A page that SQLite cannot read is memory.ErrDamaged for the calls that need
// it. Both are logged and counted here, and memsidecar check finds both.

// errPages means that a page of the database is broken.
var errPages = fmt.Errorf("%w: some pages of the database cannot be read: see what memsidecar check says, and restore a backup with "+
	"memsidecar restore --replace", memory.ErrDamaged)

// brokenPage reports whether SQLite could not read a page of a database that is open.
func brokenPage(err error) bool {
	if open := (*openError)(nil); errors.As(err, &open) {
		return false
	}
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlitelib.SQLITE_CORRUPT
}

// filesUnreadable is the error if the files cannot be read at all. SQLite reports a disk that fails to read as it reports a broken page.
func (d *database) filesUnreadable(dir string) error {
	if _, err := d.raw.ReadAt(make([]byte, headerSize), 0); err != nil {
		return err
	}
	log, err := os.Open(filepath.Join(dir, fileName+"-wal"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = log.ReadAt(make([]byte, 1), 0); errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, log.Close())
}

// damage records data that could not be read.
type damage struct {
	log   *slog.Logger
	onRow func(table string) // may be nil

	mu    sync.Mutex
	rows  map[damagedRow]struct{}
	pages time.Time // when a broken page was logged last; zero: none was met
}

type damagedRow struct{ table, id string }

const (
	// maxDamagedRows bounds how many rows are remembered as logged. Further rows are only counted.
	maxDamagedRows = 1000
	// pagesAgain is how often broken pages are logged.
	pagesAgain = time.Hour
)

// note logs the damage that an error reports: a row once, broken pages once an hour. The log names rows and holds none of their texts.
func (d *damage) note(err error) {
	if d == nil {
		return
	}
	if row := (*memory.DamagedError)(nil); errors.As(err, &row) {
		d.noteRow(row)
		return
	}
	if !errors.Is(err, errPages) {
		return
	}
	d.mu.Lock()
	again := time.Since(d.pages) > pagesAgain
	if again {
		d.pages = time.Now()
	}
	d.mu.Unlock()
	if again {
		d.log.Error("pages of the database cannot be read; what is on others is served", "error", err)
	}
}

func (d *damage) noteRow(row *memory.DamagedError) {
	if d == nil {
		return
	}
	key := damagedRow{row.Table, row.ID}
	d.mu.Lock()
	_, known := d.rows[key]
	full := !known && len(d.rows) >= maxDamagedRows
	if !known && !full {
		if d.rows == nil {
			d.rows = map[damagedRow]struct{}{}
		}
		d.rows[key] = struct{}{}
	}
	d.mu.Unlock()
	if known {
		return
	}
	if d.onRow != nil {
		d.onRow(row.Table)
	}
	if !full {
		d.log.Error("a stored row cannot be read; the others are served", "what", row.Table, "id", row.ID, "problem", row.Problem)
	}
}

// forget is called when the database is opened, because it may be another one.
func (d *damage) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows, d.pages = nil, time.Time{}
}

// Damaged is a message that pages of the database could not be read, or "".
func (s *Storage) Damaged() string {
	s.damage.mu.Lock()
	defer s.damage.mu.Unlock()
	if s.damage.pages.IsZero() {
		return ""
	}
	return errPages.Error()
}

// unreadable returns the error as errPages if it says that SQLite could not read a page, else nil.
func unreadable(err error) error {
	if !brokenPage(err) {
		return nil
	}
	return fmt.Errorf("%w: %w", errPages, err)
}

// NoteDamage implements sqldb.Querier.
func (p *pool) NoteDamage(row *memory.DamagedError) { p.damage.noteRow(row) }

// Unreadable implements sqldb.Querier.
func (p *pool) Unreadable(err error) error { return unreadable(err) }

// NoteDamage implements sqldb.Querier.
func (t *writeTx) NoteDamage(row *memory.DamagedError) { t.damage.noteRow(row) }

// Unreadable implements sqldb.Querier.
func (t *writeTx) Unreadable(err error) error { return unreadable(err) }

// NoteDamage implements sqldb.Querier. A check of a database reports damage itself.
func (s *snapshot) NoteDamage(*memory.DamagedError) {}

// Unreadable implements sqldb.Querier.
func (s *snapshot) Unreadable(err error) error { return unreadable(err) }
