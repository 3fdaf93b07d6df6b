package sidecartest

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/leftover"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// State brings a stored consideration into a state.
type State func(t *testing.T, q *sqlstore.Queue, job queue.Job)

// Stuck leaves a consideration pending after a failed attempt, without a next attempt. A postponed one would be due when the sidecar
// starts.
func Stuck(t *testing.T, q *sqlstore.Queue, job queue.Job) {
	t.Helper()
	now := time.Now()
	if err := q.Postpone(t.Context(), job.Seq, time.Time{}, memory.Outcome{Error: "the model is away"}, now); err != nil {
		t.Fatal(err)
	}
}

// Failed ends a consideration as failed.
func Failed(t *testing.T, q *sqlstore.Queue, job queue.Job) {
	t.Helper()
	if err := q.Finish(t.Context(), job.Seq, memory.StateFailed, memory.Outcome{Error: "the model refused"}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// WithStorage opens a data folder that no sidecar uses.
func WithStorage(t *testing.T, dir string, do func(*sqlite.Storage)) {
	t.Helper()
	storage := Must(sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}))(t)
	do(storage)
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}
}

// SeedConsideration stores a consideration in a state that tests cannot reach with rules, which never fail.
func SeedConsideration(t *testing.T, dir string, scope *memsidecarv1.Scope, text string, become State) (id string) {
	t.Helper()
	kinds := map[memsidecarv1.ChannelKind]memory.ChannelKind{
		memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT: memory.ChannelDirect, memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP: memory.ChannelGroup,
	}
	dialogue := memory.Dialogue{
		Scope: memory.Scope{
			Namespace: scope.GetNamespace(), UserID: scope.GetUserId(),
			Channel: memory.Channel{Kind: kinds[scope.GetChannelKind()], ID: scope.GetChannelId()},
		}.Normalize(),
		Messages: []memory.Message{{Role: memory.RoleUser, Speaker: scope.GetUserId(), Content: text, Time: time.Now()}},
	}
	id = "con_seeded_" + scope.GetUserId()
	WithStorage(t, dir, func(storage *sqlite.Storage) {
		q := sqlstore.NewQueue(storage)
		Must(q.Accept(t.Context(), queue.Acceptance{
			ID: id, Dialogue: dialogue, Speakers: dialogue.Speakers(), At: time.Now(), MaxPending: 10,
		}))(t)
		jobs, _, err := q.Claim(t.Context(), time.Now().Add(time.Second), 1)
		if err != nil || len(jobs) != 1 {
			t.Fatal(jobs, err)
		}
		become(t, q, jobs[0])
	})
	return id
}

// FilesWith returns the files of a folder that contain a text.
func FilesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	return leftover.In(t, dir, text)
}

// WantNoFileWith checks that no file of a folder contains a text.
func WantNoFileWith(t *testing.T, dir, text string) {
	t.Helper()
	if files := FilesWith(t, dir, text); len(files) > 0 {
		t.Errorf("%q is in %q", text, files)
	}
}

// TablesWith returns the columns that contain a text. The sidecar may be running.
func TablesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	db := Must(sql.Open("sqlite", "file:"+filepath.Join(dir, "memsidecar.db")+"?mode=ro"))(t)
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(t.Context(), `SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var columns [][2]string
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		var n int
		var one []byte
		const find = `SELECT count(*), max(CAST(%[2]s AS TEXT)) FROM %[1]s WHERE instr(CAST(%[2]s AS TEXT), ?) > 0`
		query := fmt.Sprintf(find, `"`+c[0]+`"`, `"`+c[1]+`"`) //nolint:gosec // the names are those of the schema
		if err := db.QueryRowContext(t.Context(), query, text).Scan(&n, &one); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			found = append(found, fmt.Sprintf("%s.%s: %d rows, such as %.300s", c[0], c[1], n, one))
		}
	}
	return found
}

// SeedUsage stores the usage of a model at a time.
func SeedUsage(t *testing.T, dir string, at time.Time, model string, input, output int) {
	t.Helper()
	WithStorage(t, dir, func(s *sqlite.Storage) {
		NoError(t, sqlstore.NewModels(s).AddUsage(t.Context(), []usage.Call{{
			At: at, Namespace: "default", Part: "decision", Model: model,
			InputTokens: int64(input), OutputTokens: int64(output), Latency: time.Second,
		}}))
	})
}

// A key of a database, and the environment variable that sets it.
const (
	KeyText    = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	KeyEnviron = "MEMSIDECAR_ENCRYPTION_KEY=" + KeyText
)

// TestKey returns the encryption key of [KeyEnviron].
func TestKey(t testing.TB) seal.Key {
	t.Helper()
	key, err := seal.ParseKey(KeyText)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// DatabaseFile is the name of the database in a data folder.
const DatabaseFile = "memsidecar.db"

// Outages are states in which a data folder cannot be used. Cure is what an operator does about it.
var Outages = map[string]struct {
	Cause, Cure func(t *testing.T, dir string)
	Reason      string
}{
	"corrupt": {
		func(t *testing.T, dir string) {
			t.Helper()
			NoError(t, os.MkdirAll(dir, 0o700))
			NoError(t, os.WriteFile(filepath.Join(dir, DatabaseFile), bytes.Repeat([]byte("no database "), 1000), 0o600))
		},
		func(t *testing.T, dir string) { t.Helper(); NoError(t, os.Remove(filepath.Join(dir, DatabaseFile))) },
		"not a database",
	},
	"of a newer version": {
		func(t *testing.T, dir string) {
			t.Helper()
			WithStorage(t, dir, func(*sqlite.Storage) {})
			ExecuteSQL(t, dir, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
		},
		func(t *testing.T, dir string) {
			t.Helper()
			ExecuteSQL(t, dir, `DELETE FROM goose_db_version WHERE version_id = 9999`)
		},
		"newer version of memsidecar",
	},
	"a file instead of a folder": {
		func(t *testing.T, dir string) { t.Helper(); NoError(t, os.WriteFile(dir, []byte("a file"), 0o600)) },
		func(t *testing.T, dir string) { t.Helper(); NoError(t, os.Remove(dir)) },
		"not a directory",
	},
}

// ExecuteSQL changes a database without the sidecar.
func ExecuteSQL(t *testing.T, dir, statement string) {
	t.Helper()
	db := Must(sql.Open("sqlite", "file:"+filepath.Join(dir, DatabaseFile)+"?_pragma=busy_timeout(5000)"))(t)
	_, err := db.ExecContext(t.Context(), statement)
	NoError(t, err)
	NoError(t, db.Close())
}
