package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// expiredDialogues finds dialogues, the longest ended first. Of a group's dialogue all considerations must have ended long
// enough ago: while one is kept, forgetting a user must find the dialogue by all who speak in it.
const expiredDialogues = `SELECT DISTINCT c.dialogue_row FROM considerations c INDEXED BY considerations_ended
		WHERE c.state IN ('remembered', 'skipped') AND c.updated_at < ?1 AND NOT EXISTS (` + keptSibling + `)
	UNION SELECT DISTINCT c.dialogue_row FROM considerations c INDEXED BY considerations_given_up
		WHERE c.state = 'failed' AND c.updated_at < ?2 AND NOT EXISTS (` + keptSibling + `) LIMIT ?3`

const keptSibling = `SELECT 1 FROM considerations o WHERE o.dialogue_row = c.dialogue_row AND NOT (
	o.state IN ('remembered', 'skipped') AND o.updated_at < ?1 OR o.state = 'failed' AND o.updated_at < ?2)`

// Expire implements queue.Store. What tells that a statement was applied goes with the consideration: it cannot run again.
func (s *Queue) Expire(ctx context.Context, e queue.Expiry) (deleted int64, err error) {
	ended, failed := e.EndedBefore.UnixMicro(), e.FailedBefore.UnixMicro()
	if e.EndedBefore.IsZero() {
		ended = -1 << 62
	}
	if e.FailedBefore.IsZero() {
		failed = -1 << 62
	}
	var rows []int64
	err = s.db.Read(ctx, func(q sqldb.Querier) error { // so that a look for nothing holds nobody up
		found, err := q.Query(ctx, expiredDialogues, ended, failed, e.Limit)
		if err == nil {
			rows, err = sqldb.Column[int64](found)
		}
		return err
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return 0, err
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		// A failed one may have been made pending meanwhile.
		const which = `(SELECT c.dialogue_row FROM considerations c WHERE c.dialogue_row IN (SELECT value FROM json_each(?3))
			AND NOT EXISTS (` + keptSibling + `))`
		if _, err := tx.Exec(ctx, `DELETE FROM applied_statements WHERE row IN (SELECT a.row FROM dialogues d
			JOIN considerations c ON c.dialogue_row = d.row JOIN users u ON u.namespace = c.namespace AND u.user_id = c.user_id
			JOIN applied_statements a ON a.user_row = u.id AND a.statement_id > d.id || '/' AND a.statement_id < d.id || '0'
			WHERE d.row IN `+which+`)`, ended, failed, string(list)); err != nil {
			return err
		}
		deleted, err = tx.Affect(ctx, `DELETE FROM dialogues WHERE row IN `+which, ended, failed, string(list))
		return err
	})
	return deleted, err
}
