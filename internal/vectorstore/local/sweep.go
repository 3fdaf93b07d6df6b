package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

var _ vectorstore.Sweep = (*Store)(nil)

// OnWrite implements vectorstore.Sweep.
func (s *Store) OnWrite(fn func()) { s.onWrite.Store(&fn) }

// written calls the function of OnWrite.
func (s *Store) written() {
	if fn := s.onWrite.Load(); fn != nil {
		(*fn)()
	}
}

// endedQueries read what ended in a way, by when, from the index of its own that there is for it.
var endedQueries = map[memory.Status]string{ //nolint:gochecknoglobals // a constant
	memory.StatusWithdrawn: `SELECT u.namespace, u.user_id, m.id, m.withdrawn_at
		FROM memories m INDEXED BY memories_withdrawn CROSS JOIN users u ON u.id = m.user_row
		WHERE m.withdrawn_at IS NOT NULL ORDER BY m.withdrawn_at LIMIT ?`,
	memory.StatusExpired: `SELECT u.namespace, u.user_id, m.id, m.valid_to
		FROM memories m INDEXED BY memories_expired CROSS JOIN users u ON u.id = m.user_row
		WHERE m.valid_to IS NOT NULL AND m.superseded_by = '' AND m.withdrawn_at IS NULL ORDER BY m.valid_to LIMIT ?`,
	memory.StatusSuperseded: `SELECT u.namespace, u.user_id, m.id, m.valid_to
		FROM memories m INDEXED BY memories_outdated CROSS JOIN users u ON u.id = m.user_row
		WHERE m.valid_to IS NOT NULL AND m.superseded_by <> '' AND m.withdrawn_at IS NULL ORDER BY m.valid_to LIMIT ?`,
}

// endedAt is when a memory ended in a way; zero when it did not.
func endedAt(m *memory.Memory, how memory.Status) time.Time {
	switch {
	case how == memory.StatusWithdrawn:
		return m.WithdrawnAt
	case m.WithdrawnAt.IsZero() && (m.SupersededBy != "") == (how == memory.StatusSuperseded):
		return m.ValidTo
	}
	return time.Time{}
}

// Ended implements vectorstore.Sweep.
func (s *Store) Ended(ctx context.Context, how memory.Status, before time.Time, limit int) (ended []vectorstore.MemoryRef, next time.Time, err error) {
	query, ok := endedQueries[how]
	if !ok {
		return nil, next, fmt.Errorf("memories do not end as %q", how)
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		rows, err := q.Query(ctx, query, limit+1)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var ref vectorstore.MemoryRef
			var at sql.NullInt64
			if err := rows.Scan(&ref.User.Namespace, &ref.User.ID, &ref.ID, &at); err != nil {
				return err
			}
			if end := sqldb.Time(at); len(ended) == limit || end.After(before) {
				next = end
				break
			}
			ended = append(ended, ref)
		}
		return rows.Err()
	})
	return ended, next, err
}

// ResetClock implements vectorstore.Sweep. Usually there is nothing to do, which costs one look into an index.
func (s *Store) ResetClock(ctx context.Context, after, now time.Time) error {
	var ahead bool
	err := s.db.Read(ctx, func(q sqldb.Querier) error {
		return q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM memories INDEXED BY memories_withdrawn
			WHERE withdrawn_at IS NOT NULL AND withdrawn_at > ?)`, sqldb.Micros(after)).Scan(&ahead)
	})
	if err != nil || !ahead {
		return err
	}
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE memories INDEXED BY memories_withdrawn SET withdrawn_at = ?2
			WHERE withdrawn_at IS NOT NULL AND withdrawn_at > ?1`, sqldb.Micros(after), sqldb.Micros(now))
		return err
	})
}

// Drop implements vectorstore.Sweep.
func (s *Store) Drop(ctx context.Context, user memory.User, ids []string, how memory.Status, before time.Time) (int, error) {
	return s.sweep(ctx, user, ids, func(sqldb.Tx) (func(*memory.Memory) bool, error) {
		return func(m *memory.Memory) bool {
			at := endedAt(m, how)
			return !at.IsZero() && !at.After(before)
		}, nil
	})
}

// Evict implements vectorstore.Sweep.
func (s *Store) Evict(ctx context.Context, user memory.User, ids []string, keep int) (int, error) {
	return s.sweep(ctx, user, ids, func(tx sqldb.Tx) (func(*memory.Memory) bool, error) {
		var left int
		err := tx.QueryRow(ctx, `SELECT memories FROM users WHERE namespace = ? AND user_id = ?`, user.Namespace, user.ID).Scan(&left)
		if errors.Is(err, sql.ErrNoRows) { // forgotten meanwhile
			left, err = 0, nil
		}
		return func(m *memory.Memory) bool {
			if m.Explicit || left <= keep {
				return false
			}
			left--
			return true
		}, err
	})
}

// sweep deletes those of a user's memories that are still to be deleted, which it asks inside the transaction.
func (s *Store) sweep(ctx context.Context, user memory.User, ids []string, begin func(sqldb.Tx) (goes func(*memory.Memory) bool, err error)) (int, error) {
	defer s.writers.lock(user)()
	var gone []string
	err := s.db.Write(ctx, func(tx sqldb.Tx) error {
		gone = nil
		goes, err := begin(tx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			row, m, err := find(ctx, tx, user, id, memory.Everything())
			if errors.Is(err, memory.ErrNotFound) {
				continue // deleted meanwhile
			}
			if sqldb.Skip(tx, err) {
				continue // whether it goes cannot be told
			}
			if err != nil {
				return err
			}
			if !goes(&m) {
				continue
			}
			if err := remove(ctx, tx, row, id); err != nil {
				return err
			}
			gone = append(gone, id)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.cache.change(user, func(x *index) error {
		for _, id := range gone {
			if err := x.remove(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
	return len(gone), nil
}

// Crowded implements vectorstore.Sweep.
func (s *Store) Crowded(ctx context.Context, most, limit int) (crowds []vectorstore.Crowd, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		rows, err := q.Query(ctx, `SELECT namespace, user_id, memories, explicit_memories FROM users INDEXED BY users_crowded
			WHERE memories > explicit_memories AND memories > ? ORDER BY memories LIMIT ?`, most, limit)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var c vectorstore.Crowd
			if err := rows.Scan(&c.User.Namespace, &c.User.ID, &c.Memories, &c.Explicit); err != nil {
				return err
			}
			crowds = append(crowds, c)
		}
		return rows.Err()
	})
	return crowds, err
}

// Evictable implements vectorstore.Sweep. It reads few columns, because the user has many memories.
func (s *Store) Evictable(ctx context.Context, user memory.User, visit func(*memory.Memory)) error {
	return s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		rows, err := q.Query(ctx, `SELECT m.id, m.kind, m.importance, m.mentions, m.last_said_at, m.use_count, m.last_used_at,
				m.valid_to, m.superseded_by, m.quarantine <> '', m.withdrawn_at
			FROM users u JOIN memories m ON m.user_row = u.id WHERE u.namespace = ? AND u.user_id = ? AND m.explicit = 0`,
			user.Namespace, user.ID)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			m := memory.Memory{User: user}
			var said, used, to, withdrawn sql.NullInt64
			var quarantined bool
			err := rows.Scan(&m.ID, &m.Kind, &m.Importance, &m.Mentions, &said, &m.UseCount, &used, &to, &m.SupersededBy,
				&quarantined, &withdrawn)
			if err != nil {
				return err
			}
			m.LastSaidAt, m.LastUsedAt = sqldb.Time(said), sqldb.Time(used)
			m.ValidTo, m.WithdrawnAt = sqldb.Time(to), sqldb.Time(withdrawn)
			if quarantined {
				m.Quarantine = "quarantined"
			}
			visit(&m)
		}
		return rows.Err()
	})
}

// Full implements vectorstore.Sweep.
func (s *Store) Full(ctx context.Context, least int) (full map[string]int64, err error) {
	full = map[string]int64{}
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		rows, err := q.Query(ctx, `SELECT namespace, count(*) FROM users INDEXED BY users_full
			WHERE explicit_memories > 0 AND explicit_memories >= ? GROUP BY namespace`, least)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var namespace string
			var count int64
			if err := rows.Scan(&namespace, &count); err != nil {
				return err
			}
			full[namespace] = count
		}
		return rows.Err()
	})
	return full, err
}
