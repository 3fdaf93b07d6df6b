package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

var (
	// ErrNoDatabase means that there is no database.
	ErrNoDatabase = errors.New("there is no database")
	// ErrIncomplete means that a file is a copy of a database in use: its log was not copied, or would be ignored.
	ErrIncomplete = errors.New("a write-ahead log (-wal) is next to it, so this is a copy of a folder in use and not a backup: " +
		"make one with memsidecar backup, or start a sidecar on that folder")
	// ErrForeign means that a file is the database of another program.
	ErrForeign = errors.New("this is not a database of memsidecar")
)

// snapshot is a database as it was at one moment. Later writes do not change it.
type snapshot struct {
	path string
	db   *sql.DB
	conn *sql.Conn

	vault *vault // nil: it is not encrypted
}

// openSnapshot opens the database of a data folder. A sidecar may be running.
func openSnapshot(ctx context.Context, file string, key seal.Key) (*snapshot, error) {
	// mode=ro cannot read a log that a crash left.
	s, err := openFile(ctx, file, "rw", key)
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openBackup opens a file that no process writes, and creates no other file.
func openBackup(ctx context.Context, file string, key seal.Key) (*snapshot, error) {
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return nil, fmt.Errorf("%s: %w", file, ErrIncomplete)
	}
	return openFile(ctx, file, "ro", key)
}

// openFile opens a file for writing (rw), or one that no process writes (ro).
func openFile(ctx context.Context, file, mode string, key seal.Key) (_ *snapshot, err error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w %s", ErrNoDatabase, file)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return nil, fmt.Errorf("%s: %w", file, ErrForeign)
	}
	s := &snapshot{path: file}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", file, err), s.close())
		}
	}()
	if s.vault, err = unlockKnown(file, key); err != nil {
		return nil, err
	}
	q := s.vault.parameters()
	q.Set("mode", mode)
	if mode == "ro" {
		q.Set("immutable", "1")
	}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()))
	q.Add("_pragma", "temp_store(MEMORY)")
	if s.db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+q.Encode()); err != nil {
		return nil, err
	}
	s.conn, err = s.db.Conn(ctx)
	return s, err
}

func (s *snapshot) begin(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "BEGIN")
	return err
}

func (s *snapshot) close() (err error) {
	if s.conn != nil {
		err = s.conn.Close()
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return errors.Join(err, s.vault.close())
}

// Query implements sqldb.Querier.
func (s *snapshot) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.conn.QueryContext(ctx, query, args...)
}

// QueryRow implements sqldb.Querier.
func (s *snapshot) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return s.conn.QueryRowContext(ctx, query, args...)
}

// texts runs a query of one column.
func (s *snapshot) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := s.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return sqldb.Column[string](rows)
}

// schema returns the version of the tables, or ErrForeign for the tables of another program.
func (s *snapshot) schema(ctx context.Context) (version int64, err error) {
	tables, err := s.texts(ctx, `SELECT name FROM sqlite_schema WHERE name IN ('goose_db_version', 'memories', 'considerations')`)
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code()&0xff == sqlitelib.SQLITE_NOTADB {
		return 0, fmt.Errorf("%s: %w", s.path, ErrForeign)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.path, err)
	}
	if len(tables) < 3 {
		return 0, fmt.Errorf("%s: %w", s.path, ErrForeign)
	}
	err = s.QueryRow(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&version)
	return version, err
}

// sound checks that every page can be read, that indexes agree with their tables, and that referenced rows exist.
func (s *snapshot) sound(ctx context.Context) (pages, references []string, err error) {
	pages, err = s.texts(ctx, fmt.Sprintf(`PRAGMA integrity_check(%d)`, maxBroken))
	if corrupt(err) {
		return []string{err.Error()}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	pages = slices.DeleteFunc(pages, func(line string) bool { return line == "ok" })
	if len(pages) > 0 {
		return pages, nil, nil // the other checks would only report the same
	}
	references, err = s.texts(ctx, `SELECT format('%s row %s refers to a row of %s that is not there', "table", rowid, parent)
		FROM pragma_foreign_key_check`)
	return pages, references, err
}

// maxBroken limits the listed broken pages.
const maxBroken = 100

// verify reads a whole backup. The name is used in errors.
func verify(ctx context.Context, file, name string, key seal.Key) (schema int64, err error) {
	s, err := openBackup(ctx, file, key)
	if err != nil {
		return 0, err
	}
	s.path = name
	defer func() { err = errors.Join(err, s.close()) }()
	if schema, err = s.schema(ctx); err != nil {
		return 0, err
	}
	pages, references, err := s.sound(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if broken := slices.Concat(pages, references); len(broken) > 0 {
		return 0, fmt.Errorf("%s is damaged: %s", name, strings.Join(broken[:min(3, len(broken))], "; "))
	}
	return schema, nil
}

// knownSchema is the newest version of the tables that this program knows.
func knownSchema() (newest int64, err error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		number, _, _ := strings.Cut(path.Base(file), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, err
		}
		newest = max(newest, version)
	}
	return newest, nil
}
