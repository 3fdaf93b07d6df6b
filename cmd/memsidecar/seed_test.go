package main

import (
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/testkit/leftover"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// fate is what has become of a consideration that is seeded.
type fate func(t *testing.T, q *sqlstore.Queue, job queue.Job)

// stuck: an attempt failed, and the next one never comes. What is only postponed would be due when the sidecar starts.
func stuck(t *testing.T, q *sqlstore.Queue, job queue.Job) {
	t.Helper()
	now := time.Now()
	if err := q.Postpone(t.Context(), job.Seq, time.Time{}, memory.Outcome{Error: "the model is away"}, now); err != nil {
		t.Fatal(err)
	}
}

// failed: it was given up.
func failed(t *testing.T, q *sqlstore.Queue, job queue.Job) {
	t.Helper()
	if err := q.Finish(t.Context(), job.Seq, memory.StateFailed, memory.Outcome{Error: "the model refused"}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// withStorage opens the data folder while no sidecar does.
func withStorage(t *testing.T, dir string, do func(*sqlite.Storage)) {
	t.Helper()
	sidecartest.AwaitMorning() // with what is stored for today
	storage := must(sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}))(t)
	do(storage)
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}
}

// seedConsideration puts a consideration into the data folder that no model of today would leave behind. Rules never fail.
func seedConsideration(t *testing.T, dir string, scope *memsidecarv1.Scope, text string, become fate) (id string) {
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
	withStorage(t, dir, func(storage *sqlite.Storage) {
		q := sqlstore.NewQueue(storage)
		must(q.Accept(t.Context(), queue.Acceptance{
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

// holdsBytes reports which files of a folder hold a text.
func holdsBytes(t *testing.T, dir, text string) []string {
	t.Helper()
	return leftover.In(t, dir, text)
}

func wantNoBytes(t *testing.T, dir, text string) {
	t.Helper()
	if files := holdsBytes(t, dir, text); len(files) > 0 {
		t.Errorf("%q is in %q", text, files)
	}
}

// tablesWith names the columns that hold a text. The sidecar may run.
func tablesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, "memsidecar.db")+"?mode=ro"))(t)
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
		query := fmt.Sprintf(`SELECT count(*), max(CAST(%[2]s AS TEXT)) FROM %[1]s WHERE instr(CAST(%[2]s AS TEXT), ?) > 0`, `"`+c[0]+`"`, `"`+c[1]+`"`)
		if err := db.QueryRowContext(t.Context(), query, text).Scan(&n, &one); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			found = append(found, fmt.Sprintf("%s.%s: %d rows, such as %.300s", c[0], c[1], n, one))
		}
	}
	return found
}
