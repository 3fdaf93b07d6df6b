package sqlite

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// What cannot be read of the database concerns those who need it and no others. A row whose values cannot be decoded is a
// *memory.DamagedError: lists and searches skip it, a call for that row alone answers it. A page that SQLite cannot read is
// memory.ErrDamaged for the calls that need it. Both are logged and counted here, and memsidecar check finds both.

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

// unreadable is the error when the files cannot be read at all. SQLite reports a disk that fails to read as it reports a broken page.
func (d *database) unreadable(dir string) error {
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

// damage notes what was met that cannot be read.
type damage struct {
	log   *slog.Logger
	onRow func(table string) // may be nil

	mu    sync.Mutex
	rows  map[damagedRow]struct{}
	pages time.Time // when a broken page was logged last; zero: none was met
}

type damagedRow struct{ table, id string }

const (
	// maxDamagedRows bounds how many rows are remembered as logged. More than that in one process are only counted.
	maxDamagedRows = 1000
	// pagesAgain is how often broken pages are logged.
	pagesAgain = time.Hour
)

// note logs damage that an error reports: a row once, broken pages once an hour. The log names rows and holds nothing of their texts.
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

// forget is called when the database is opened: it may be another one.
func (d *damage) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows, d.pages = nil, time.Time{}
}

// Damaged says that pages of the database could not be read, or "".
func (s *Storage) Damaged() string {
	s.damage.mu.Lock()
	defer s.damage.mu.Unlock()
	if s.damage.pages.IsZero() {
		return ""
	}
	return errPages.Error()
}

func (p *pool) note(err error) { p.damage.note(err) }
func (t *Tx) note(err error)   { t.damage.note(err) }

// Skip reports whether an error is about one row that cannot be read, which a list or a search goes without. It is logged.
func Skip(q Querier, err error) bool {
	row := (*memory.DamagedError)(nil)
	if !errors.As(err, &row) {
		return false
	}
	if n, ok := q.(interface{ note(err error) }); ok {
		n.note(row)
	}
	return true
}

// DecodeJSON decodes a column that holds JSON. What it does not hold, or what is no UTF-8, is a *memory.DamagedError about the row.
func DecodeJSON(table string, id any, text []byte, into any) error {
	if !utf8.Valid(text) {
		return damaged(table, id, "it is not UTF-8")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return damaged(table, id, "it holds broken JSON") // the error may quote the text
	}
	return nil
}

// Texts is a *memory.DamagedError when one of a row's texts is no UTF-8: no answer can hold it.
func Texts(table string, id any, texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return damaged(table, id, "it is not UTF-8")
		}
	}
	return nil
}

// Numbers is a *memory.DamagedError when one of a row's numbers is not between two others.
func Numbers(table string, id any, least, most float64, numbers ...float64) error {
	for _, n := range numbers {
		if !(n >= least && n <= most) { // what is no number is not between them either
			return damaged(table, id, "it has an impossible number")
		}
	}
	return nil
}

// Times is a *memory.DamagedError when one of a row's times is none that an answer can hold.
func Times(table string, id any, times ...time.Time) error {
	for _, t := range times {
		if year := t.Year(); year < 1 || year > 9999 {
			return damaged(table, id, "it has an impossible time")
		}
	}
	return nil
}

// Scanned makes a *memory.DamagedError of the failure to scan a value of another type than its column has.
func Scanned(table string, id any, err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "sql: Scan error on column") {
		return damaged(table, id, "it holds a value of another type") // the error quotes the value
	}
	return err
}

func damaged(table string, id any, problem string) error {
	return &memory.DamagedError{Table: table, ID: strings.ToValidUTF8(fmt.Sprint(id), "\uFFFD"), Problem: problem}
}

// DecodeVector decodes a vector of so many dimensions, or says what is wrong with it.
func DecodeVector(b []byte, dimensions int) (vector []float32, problem string) {
	if len(b) != 4*dimensions {
		return nil, fmt.Sprintf("has %d bytes, not %d", len(b), 4*dimensions)
	}
	vector = make([]float32, dimensions)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if math.IsNaN(float64(vector[i])) || math.IsInf(float64(vector[i]), 0) {
			return nil, "has an impossible number"
		}
	}
	return vector, ""
}

// marked is a row, and whether it could not be read: then it has what could be.
type marked[T any] struct {
	row     T
	damaged bool
}

// collectMarked reads all rows and marks those that cannot be read, so that pages can be cut behind them.
func collectMarked[T any](q Querier, rows *sql.Rows, scanRow func(scan func(...any) error) (T, error)) ([]marked[T], error) {
	return collect(rows, func(scan func(...any) error) (marked[T], error) {
		v, err := scanRow(scan)
		if Skip(q, err) {
			return marked[T]{v, true}, nil
		}
		return marked[T]{v, false}, err
	})
}

// collectReadable reads all rows but those that cannot be read, and closes them.
func collectReadable[T any](q Querier, rows *sql.Rows, scanRow func(scan func(...any) error) (T, error)) (all []T, err error) {
	return collect(rows, func(scan func(...any) error) (T, error) {
		v, err := scanRow(scan)
		if Skip(q, err) {
			return v, errSkipped
		}
		return v, err
	})
}

// errSkipped has collect leave a row out.
var errSkipped = errors.New("skipped")
