package sqlite_test

import (
	"os"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

// TestSessionsOfBefore: a session of a database in which ids were unique for the namespace is its user's afterwards.
func TestSessionsOfBefore(t *testing.T) {
	dir := folder(t)
	// Back to how it was before.
	for _, statement := range []string{
		`DROP INDEX sessions_by_id`, `DROP INDEX sessions_deleting`, `DROP INDEX sessions_by_age`, `UPDATE sessions SET ref = id`,
		`ALTER TABLE sessions DROP COLUMN id`, `ALTER TABLE sessions RENAME COLUMN ref TO id`,
		`CREATE INDEX sessions_deleting ON sessions (row) WHERE id IS NULL`,
		`CREATE INDEX sessions_by_age ON sessions (namespace, oldest_at) WHERE id IS NOT NULL`,
	} {
		raw(t, dir, statement)
	}
	migration, err := os.ReadFile("migrations/00017_session_refs.sql")
	if err != nil {
		t.Fatal(err)
	}
	raw(t, dir, string(migration))
	if r := check(t, sqlite.DatabasePath(dir), false); !r.Sound() {
		t.Errorf("the database is %+v", r.Findings)
	}
	sessions := sqlite.NewSessions(open(t, sqlite.Options{Dir: dir}))
	of := func(user string) session.Viewer {
		s := scope(user, "s")
		return session.Viewer{Namespace: s.Namespace, UserID: user, Channel: s.Channel, Audience: memory.Everything()}
	}
	got, err := sessions.Get(t.Context(), of("ann"), "s")
	if err != nil || got.ID != "s" || got.Messages == 0 {
		t.Errorf("ann's session is %+v, %v", got, err)
	}
	own, created, err := sessions.Switch(t.Context(), of("zoe"), "s", got.UpdatedAt)
	if err != nil || !created || own.Messages != 0 {
		t.Errorf("zoe has %+v, %t, %v", own, created, err)
	}
	again, err := sessions.Get(t.Context(), of("ann"), "s")
	if err != nil || again.Messages != got.Messages || again.Ref == own.Ref {
		t.Errorf("ann's session became %+v, %v", again, err)
	}
}
