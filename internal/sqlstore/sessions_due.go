package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// When something is to be done for a session.

// Due implements session.Store.
func (s *Sessions) Due(
	ctx context.Context, now time.Time, limit int, kinds ...session.DueKind,
) (due []session.Due, next time.Time, err error) {
	considers := len(kinds) == 0 || slices.Contains(kinds, session.DueConsider)
	summarizes := len(kinds) == 0 || slices.Contains(kinds, session.DueSummarize)
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		rows, err := q.Query(ctx, `SELECT namespace, id, ref, kind, at FROM (
			SELECT namespace, id, ref, 'consider' AS kind, consider_at AS at FROM (SELECT * FROM sessions
				WHERE consider_at IS NOT NULL AND ?2 ORDER BY consider_at LIMIT ?1)
			UNION ALL SELECT namespace, id, ref, 'summarize', summarize_at FROM (SELECT * FROM sessions
				WHERE summarize_at IS NOT NULL AND ?3 ORDER BY summarize_at LIMIT ?1)) ORDER BY at LIMIT ?1`, limit+1, considers, summarizes)
		if err != nil {
			return err
		}
		all, err := sqldb.Collect(rows, func(scan func(...any) error) (d session.Due, err error) {
			var at sql.NullInt64
			err = scan(&d.Namespace, &d.SessionID, &d.Ref, &d.Kind, &at)
			d.At = sqldb.Time(at)
			return d, err
		})
		due, next = nil, time.Time{}
		for _, d := range all {
			if len(due) == limit || d.At.After(now) {
				next = d.At
				break
			}
			due = append(due, d)
		}
		return err
	})
	return due, next, err
}

// Postpone implements session.Store.
func (s *Sessions) Postpone(ctx context.Context, d session.Due, until time.Time) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		found, err := findSession(ctx, tx, d.Namespace, cmp.Or(d.Ref, d.SessionID), "")
		if err != nil || found == nil {
			return err
		}
		s.cache.drop(found.row)
		query := `UPDATE sessions SET consider_at = max(consider_at, ?1), consider_after = ?1
			WHERE row = ?2 AND consider_at IS NOT NULL`
		if d.Kind == session.DueSummarize {
			query = `UPDATE sessions SET summarize_at = max(summarize_at, ?1) WHERE row = ?2
				AND summarize_at IS NOT NULL`
		}
		_, err = tx.Exec(ctx, query, sqldb.Micros(until), found.row)
		return err
	})
}

// MakeDue implements session.Store. A summary that is due later was postponed, because it is due at once when it is needed.
func (s *Sessions) MakeDue(ctx context.Context, after, now time.Time) error {
	return s.rewrite(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET summarize_at = ?2 WHERE summarize_at IS NOT NULL AND summarize_at > ?1`,
			sqldb.Micros(after), sqldb.Micros(now))
		return err
	})
}

// ResetClock implements session.Store. A session that waits for the end of a pause is due by its last activity, a postponed one by
// consider_after.
func (s *Sessions) ResetClock(ctx context.Context, after, now time.Time) error {
	return s.rewrite(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET consider_at = ?2, consider_after = NULL, active_at = min(active_at, ?2)
			WHERE consider_at IS NOT NULL AND consider_at > ?2 AND (active_at > ?1 OR consider_after > ?1)`, sqldb.Micros(after), sqldb.Micros(now))
		return err
	})
}
