package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// TestLimitAppliesToExistingMemories: The limit also applies to memories that were stored before it existed.
func TestLimitAppliesToExistingMemories(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, retention.Options{})
	s.apply(ann, said("a", explicit), said("b", nil), said("c", old(1)), said("d", old(2)))
	s.apply(ben, said("a", nil))
	err := s.storage.Write(t.Context(), func(tx sqldb.Tx) error { // as before the limit existed
		for statement := range strings.SplitSeq(`ALTER TABLE considerations DROP COLUMN hold_until; ALTER TABLE memories DROP COLUMN standing;
			DROP TABLE memory_messages; ALTER TABLE sessions DROP COLUMN exclusions; ALTER TABLE sessions DROP COLUMN read_at;
			DROP TRIGGER users_memories_counted; DROP TRIGGER users_deleted;
			DROP TRIGGER messages_deleted; DROP TRIGGER messages_rewritten; DROP TABLE namespace_usage; DROP TABLE usage_progress;
			ALTER TABLE users DROP COLUMN message_bytes; DROP INDEX users_by_activity; ALTER TABLE users DROP COLUMN message_count;
			ALTER TABLE users DROP COLUMN active_at; DROP TRIGGER memories_added; DROP TRIGGER memories_deleted; DROP TRIGGER memories_made_explicit;
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
			t.Fatalf("after two minutes %v remain", s.left(ann))
		}
	}
	s.want(ann, "a", "b")
	s.want(ben, "a")
}
