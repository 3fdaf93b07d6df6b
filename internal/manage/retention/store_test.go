package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// TestMemoriesOfBefore: a database from before there was a limit is brought down to it, too.
func TestMemoriesOfBefore(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, retention.Options{})
	s.apply(ann, said("a", explicit), said("b", nil), said("c", old(1)), said("d", old(2)))
	s.apply(ben, said("a", nil))
	err := s.storage.Write(t.Context(), func(tx sqldb.Tx) error { // as it was
		for statement := range strings.SplitSeq(`DROP TRIGGER users_memories_counted; DROP TRIGGER users_deleted;
			DROP TRIGGER messages_deleted; DROP TRIGGER messages_rewritten; DROP TABLE namespace_usage; DROP TABLE usage_progress;
			ALTER TABLE users DROP COLUMN message_bytes; DROP TRIGGER memories_added; DROP TRIGGER memories_deleted; DROP TRIGGER memories_made_explicit;
			DROP INDEX users_crowded; DROP INDEX users_full; DROP INDEX memories_withdrawn; DROP INDEX memories_expired;
			DROP INDEX memories_outdated; ALTER TABLE users DROP COLUMN memories; ALTER TABLE users DROP COLUMN explicit_memories;
			DROP TABLE keys; DROP INDEX considerations_ended; DROP INDEX considerations_given_up;
			ALTER TABLE digest_progress DROP COLUMN postponed;
			DROP INDEX sessions_by_id; DROP INDEX sessions_deleting; DROP INDEX sessions_by_age; UPDATE sessions SET ref = id;
			ALTER TABLE sessions DROP COLUMN id; ALTER TABLE sessions RENAME COLUMN ref TO id;
			CREATE INDEX sessions_deleting ON sessions (row) WHERE id IS NULL;
			CREATE INDEX sessions_by_age ON sessions (namespace, oldest_at) WHERE id IS NOT NULL;
			DROP INDEX result_items_by_time; DROP INDEX result_items_by_age; ALTER TABLE result_items DROP COLUMN last_seen;
			CREATE INDEX result_items_by_time ON result_items (registry_row, first_seen, row);
			CREATE INDEX result_items_by_age ON result_items (first_seen);
			CREATE INDEX result_list_items_by_key ON result_list_items (key, list_row);
			DELETE FROM goose_db_version WHERE version_id >= 11`, ";") {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	s = start(t, dir, retention.Options{MaxPerUser: 2})
	for deadline := time.Now().Add(2 * time.Minute); len(s.left(ann)) != 2; {
		if time.Now().After(deadline) {
			t.Fatalf("after two minutes there are %v", s.left(ann))
		}
	}
	s.want(ann, "a", "b")
	s.want(ben, "a")
}

// TestLooksAgain: what was to be deleted and is not any more, when it comes to it, stays.
func TestLooksAgain(t *testing.T) {
	s := start(t, t.TempDir(), retention.Options{WithdrawnGrace: day})
	s.apply(ann, said("a", explicit), said("b", nil), said("c", nil), said("d", nil), said("e", func(m *memory.Memory) { m.ValidTo = time.Now().Add(time.Hour) }))
	s.withdraw(ann, "c")
	now := time.Now()
	for _, test := range []struct {
		how  memory.Status
		at   time.Time
		want int
	}{
		{memory.StatusWithdrawn, now.Add(-time.Hour), 0}, // not yet
		{memory.StatusExpired, now, 0},
		{memory.StatusSuperseded, now.Add(2 * time.Hour), 0}, // nothing is
		{memory.StatusWithdrawn, now, 1},
		{memory.StatusWithdrawn, now, 0}, // gone already
		{memory.StatusExpired, now.Add(2 * time.Hour), 1},
	} {
		n, err := s.store.Drop(t.Context(), ann, []string{"a", "b", "c", "d", "e", "nothing"}, test.how, test.at)
		if n != test.want || err != nil {
			t.Errorf("%s at %s: %d are deleted, %v", test.how, test.at, n, err)
		}
	}
	s.want(ann, "a", "b", "d")
	for _, keep := range []int{3, 2, 2, 0} {
		if _, err := s.store.Evict(t.Context(), ann, []string{"a", "d", "b"}, keep); err != nil {
			t.Error(err)
		}
		switch keep {
		case 3:
			s.want(ann, "a", "b", "d")
		case 2:
			s.want(ann, "a", "b")
		case 0:
			s.want(ann, "a")
		}
	}
	if n, err := s.store.Evict(t.Context(), ben, []string{"a"}, 0); n != 0 || err != nil {
		t.Errorf("of somebody unknown %d are evicted, %v", n, err)
	}
}
