// Package dbtest opens databases for tests.
package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Open opens the storage in the folder and closes it with the test.
func Open(t testing.TB, options sqlite.Options) *sqlite.Storage {
	t.Helper()
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s, err := sqlite.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// New opens a new storage in a temporary folder and closes it with the test. It copies a database that it made once, because the
// migrations take more processor time than most tests. Tests of opening itself use Open.
func New(t testing.TB) *sqlite.Storage {
	t.Helper()
	files, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Open(t, sqlite.Options{Dir: dir})
}

// migrated returns the files of an empty database, by name.
var migrated = sync.OnceValues(func() (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "dbtest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := sqlite.Open(context.Background(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
})

// Exec executes statements in one write.
func Exec(t testing.TB, db sqldb.Access, statements ...string) {
	t.Helper()
	err := db.Write(t.Context(), func(tx sqldb.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Value reads one value.
func Value[T any](t testing.TB, db sqldb.Access, query string, args ...any) (v T) {
	t.Helper()
	err := db.Read(t.Context(), func(q sqldb.Querier) error { return q.QueryRow(t.Context(), query, args...).Scan(&v) })
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// Hold occupies the writer until release is called, so that writes in the meantime share the next commit.
func Hold(t testing.TB, db sqldb.Access) (release func()) {
	t.Helper()
	held, done := make(chan struct{}), make(chan struct{})
	go func() {
		err := db.Write(context.Background(), func(sqldb.Tx) error {
			close(held)
			<-done
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-held
	return func() { close(done) }
}

// Raw executes a statement on the file of a database that is not open. The file is created if it is missing.
func Raw(t testing.TB, dir, statement string) {
	t.Helper()
	path := sqlite.DatabasePath(dir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statement)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// Check checks the database of a data folder, or a backup.
func Check(t testing.TB, file string, backup bool) sqlite.Report {
	t.Helper()
	r, err := sqlite.Files{Checks: sqlstore.Checks()}.Check(t.Context(), file, backup)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Folder creates a data folder with rows in most tables, and closes it.
func Folder(t testing.TB) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s := Open(t, sqlite.Options{Dir: dir})
	said := make([]memory.Message, 70)
	for i := range said {
		said[i].Content = fmt.Sprintf("filler number %d", i)
	}
	sessions := sqlstore.NewSessions(s, sqlstore.NewQueue(s))
	for _, part := range [][]memory.Message{said, said, said, {{Content: "the violet parrot"}}} {
		for i := range part {
			part[i].Role, part[i].Speaker, part[i].Time = memory.RoleUser, "ann", time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
		}
		_, err := sessions.Append(t.Context(), session.Append{
			Scope: memory.Scope{Namespace: "n", UserID: "ann", SessionID: "s"}, Audience: memory.Everything(), Messages: part, At: part[0].Time,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	index := sqlstore.NewRecall(s)
	for more := true; more; {
		var err error
		if more, err = index.IndexNext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	Exec(t, s,
		`INSERT INTO fingerprints (id, name) VALUES (1, 'local/x@2#1')`,
		`INSERT INTO model_choices VALUES ('embedding', 'local/x@2#1')`,
		`INSERT INTO memories (row, user_row, id, agent_id, channel_kind, channel_id, session_id, visibility, text, text_key, language, kind,
			importance, explicit, provenance, created_at, updated_at, observed_at, mentions, last_said_at)
			SELECT 1, id, 'm', '', '', '', '', '', 'likes tea', x'', 'en', 'fact', 1, 0, '{}', 0, 0, 0, 1, 0 FROM users WHERE user_id = 'ann'`,
		`INSERT INTO embeddings (memory_row, fingerprint, chunk, vector) VALUES (1, 1, 0, x'0000000000000000')`,
		`INSERT INTO memory_revisions (user_row, id, change, memory_row, other_id, before, reason, consideration_id, at, reverted)
			SELECT id, 'r', 'edited', 1, '', '{}', '', '', 0, 0 FROM users WHERE user_id = 'ann'`,
		`INSERT INTO dialogues (row, id, namespace, user_id, agent_id, channel_kind, channel_id, session_id, visibility, payload_hash, messages,
			message_count, created_at) VALUES (1, 'd', 'n', 'ann', '', '', '', '', '', x'', '[]', 0, 0)`,
		`INSERT INTO considerations (dialogue_row, namespace, user_id, state, due_at, attempts, outcome, accepted_at, updated_at)
			VALUES (1, 'n', 'ann', 'pending', 1, 0, '{}', 0, 0)`,
	)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
