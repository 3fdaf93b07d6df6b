package local

import (
	"context"
	"database/sql"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

var _ vectorstore.Backfill = (*Store)(nil)

// embeddingPart is the row of model_choices that names the fingerprint in use.
const embeddingPart = "embedding"

// UseFingerprint implements vectorstore.Backfill.
func (s *Store) UseFingerprint(ctx context.Context, fingerprint string) (whole, changed bool, err error) {
	// Where it is in use already nothing needs to be written, which a full disk would prevent.
	used := false
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		err := q.QueryRow(ctx, `SELECT f.complete = ? FROM model_choices c JOIN fingerprints f ON f.name = c.choice
			WHERE c.part = ? AND c.choice = ?`, complete, embeddingPart, fingerprint).Scan(&whole)
		used = err == nil
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return false, false, err
	}
	if used {
		if s.fingerprint.Swap(&fingerprint) == nil {
			s.cache.clear()
		}
		return whole, false, nil
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		var before string
		err := tx.QueryRow(ctx, `SELECT choice FROM model_choices WHERE part = ?`, embeddingPart).Scan(&before)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		changed = before != "" && before != fingerprint
		// A new fingerprint is complete only while there is nothing to embed.
		_, err = tx.Exec(ctx, `INSERT INTO fingerprints (name, complete) VALUES (?1, NOT EXISTS (SELECT 1 FROM memories))
			ON CONFLICT DO UPDATE SET complete = CASE WHEN ?2 THEN 0 ELSE complete END`, fingerprint, changed)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO model_choices (part, choice) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET choice = ?2`,
			embeddingPart, fingerprint)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT complete = ? FROM fingerprints WHERE name = ?`, complete, fingerprint).Scan(&whole)
	})
	if err != nil {
		return false, false, err
	}
	if s.fingerprint.Swap(&fingerprint) == nil || changed {
		s.cache.clear()
	}
	return whole, changed, nil
}

// Missing implements vectorstore.Backfill.
func (s *Store) Missing(ctx context.Context, fingerprint string, after int64, limit int) (items []vectorstore.MissingItem, next int64, err error) {
	next = after
	err = s.db.Read(ctx, func(q sqldb.Querier) (err error) {
		rows, err := q.Query(ctx, `SELECT m.row, u.namespace, u.user_id, m.id, m.text
			FROM memories m JOIN users u ON u.id = m.user_row WHERE m.row > ?1 AND m.withdrawn_at IS NULL AND NOT EXISTS (SELECT 1 FROM embeddings e
				WHERE e.memory_row = m.row AND e.fingerprint = (SELECT id FROM fingerprints WHERE name = ?2))
			ORDER BY m.row LIMIT ?3`, after, fingerprint, limit)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var item vectorstore.MissingItem
			if err := rows.Scan(&next, &item.User.Namespace, &item.User.ID, &item.MemoryID, &item.Text); err != nil {
				return err
			}
			if sqldb.Skip(q, sqldb.Texts(memoriesTable, item.MemoryID, item.Text)) {
				continue
			}
			items = append(items, item)
		}
		return rows.Err()
	})
	return items, next, err
}

// CountMissing implements vectorstore.Backfill.
func (s *Store) CountMissing(ctx context.Context, fingerprint string) (count int64, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		return q.QueryRow(ctx, `SELECT count(*) FROM memories m WHERE m.withdrawn_at IS NULL AND NOT EXISTS (SELECT 1 FROM embeddings e
			WHERE e.memory_row = m.row AND e.fingerprint = (SELECT id FROM fingerprints WHERE name = ?))`, fingerprint).Scan(&count)
	})
	return count, err
}

// SetEmbeddings implements vectorstore.Backfill.
func (s *Store) SetEmbeddings(ctx context.Context, user memory.User, embeddings []vectorstore.TextEmbedding) error {
	defer s.writers.lock(user)()
	changed := make([]*memory.Memory, len(embeddings))
	err := s.db.Write(ctx, func(tx sqldb.Tx) error {
		for i, e := range embeddings {
			var err error
			if changed[i], err = setEmbedding(ctx, tx, user, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.cache.change(user, func(x *index) error {
		for i, m := range changed {
			if m == nil {
				continue
			}
			if err := x.put(ctx, *m, &embeddings[i].Embedding); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// setEmbedding replaces the vectors of a memory, and returns it; nil when it was deleted or changed since, or cannot be read.
func setEmbedding(ctx context.Context, tx sqldb.Tx, user memory.User, e vectorstore.TextEmbedding) (*memory.Memory, error) {
	row, m, err := find(ctx, tx, user, e.MemoryID, memory.Everything())
	if errors.Is(err, memory.ErrNotFound) || err == nil && m.Text != e.Text || sqldb.Skip(tx, err) {
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM embeddings WHERE memory_row = ?
		AND fingerprint = (SELECT id FROM fingerprints WHERE name = ?)`, row, e.Embedding.Fingerprint)
	if err != nil {
		return nil, err
	}
	return &m, insertEmbedding(ctx, tx, row, e.Embedding)
}

// What fingerprints.complete holds. A memory stored without vectors of the fingerprint in use makes it incomplete, also in
// the middle of a pass; a pass that a crash ended is begun again.
const (
	incomplete = 0
	complete   = 1
	inPass     = 2
)

// Begin implements vectorstore.Backfill.
func (s *Store) Begin(ctx context.Context, fingerprint string) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE fingerprints SET complete = ? WHERE name = ?`, inPass, fingerprint)
		return err
	})
}

// Complete implements vectorstore.Backfill.
func (s *Store) Complete(ctx context.Context, fingerprint string) (done bool, err error) {
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		changed, err := tx.Affect(ctx, `UPDATE fingerprints SET complete = ? WHERE name = ? AND complete = ?`,
			complete, fingerprint, inPass)
		done = changed > 0
		return err
	})
	return done, err
}

// DropOthers implements vectorstore.Backfill. The scan is left to a reader: it goes over the whole table.
func (s *Store) DropOthers(ctx context.Context, fingerprint string, limit int) (more bool, err error) {
	var first, last sql.NullInt64
	var count int
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		return q.QueryRow(ctx, `SELECT min(row), max(row), count(*) FROM (SELECT row FROM embeddings
			WHERE fingerprint <> (SELECT id FROM fingerprints WHERE name = ?) ORDER BY row LIMIT ?)`, fingerprint, limit).
			Scan(&first, &last, &count)
	})
	if err != nil || count == 0 {
		return false, err
	}
	return count == limit, s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM embeddings WHERE row BETWEEN ? AND ?
			AND fingerprint <> (SELECT id FROM fingerprints WHERE name = ?)`, first.Int64, last.Int64, fingerprint)
		return err
	})
}
