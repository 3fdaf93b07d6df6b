package local

import (
	"context"
	"errors"
	"math"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

var _ vectorstore.Survey = (*Store)(nil)

// Users implements vectorstore.Survey.
func (s *Store) Users(ctx context.Context, namespace, after string, limit int) (ids []string, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		ids = nil
		rows, err := q.Query(ctx, `SELECT user_id FROM users u WHERE namespace = ? AND user_id > ?
			AND EXISTS (SELECT 1 FROM memories WHERE user_row = u.id) ORDER BY user_id LIMIT ?`, namespace, after, limit)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return rows.Err()
	})
	return ids, err
}

// Survey implements vectorstore.Survey.
func (s *Store) Survey(ctx context.Context, user memory.User, fingerprint, after string, limit int) (items []vectorstore.SurveyItem, next string, err error) {
	start := cursor{math.MaxInt64, math.MaxInt64}
	if given, err := parseCursor(after); err != nil {
		return nil, "", err
	} else if given != nil {
		start = *given
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		items, next = nil, ""
		rows, err := q.Query(ctx, `SELECT `+memoryColumns+`, e.vector FROM memories m JOIN users u ON u.id = m.user_row
			LEFT JOIN embeddings e ON e.memory_row = m.row AND e.chunk = 0 AND e.fingerprint = (SELECT id FROM fingerprints WHERE name = ?)
			WHERE u.namespace = ? AND u.user_id = ? AND (m.created_at, m.row) < (?, ?)
			ORDER BY m.created_at DESC, m.row DESC LIMIT ?`, fingerprint, user.Namespace, user.ID, start.createdAt, start.row, limit+1)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		var last cursor
		seen := 0
		for rows.Next() {
			var vector []byte
			row, m, err := scanMemory(rows.Scan, user, &vector)
			if err != nil && !sqldb.Skip(q, err) {
				return err
			}
			if seen++; seen > limit {
				next = last.String()
				break
			}
			last = cursor{m.CreatedAt.UnixMicro(), row}
			if err != nil {
				continue
			}
			item := vectorstore.SurveyItem{Memory: m}
			if vector != nil {
				if item.Vector, err = decode(vector, fingerprint, m.ID); err != nil {
					sqldb.Skip(q, err)
				}
			}
			items = append(items, item)
		}
		return rows.Err()
	})
	return items, next, err
}
