package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// SearchVector implements recall.Store. A user has so few vectors that all are read and compared.
func (s *Recall) SearchVector(ctx context.Context, q recall.Query, fingerprint string, vector []float32) (hits []recall.Hit, err error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	err = s.db.Read(ctx, func(db sqldb.Querier) error {
		hits = nil
		userRow, err := UserRow(ctx, db, q.User)
		if err != nil || userRow == 0 {
			return err
		}
		candidates, err := similar(ctx, db, userRow, fingerprint, vector)
		for len(candidates) > 0 && len(hits) < q.Limit && err == nil {
			some := candidates[:min(len(candidates), max(q.Limit, readStep))]
			candidates = candidates[len(some):]
			rows := make([]int64, len(some))
			for i, c := range some {
				rows[i] = c.row
			}
			messages, readErr := readMessages(ctx, db, userRow, rows, &q.Filter)
			err = readErr
			for _, c := range some {
				if m, ok := messages[c.row]; ok && len(hits) < q.Limit {
					hits = append(hits, recall.Hit{Message: m, Score: min(1, max(-1, float64(c.score)))}) // rounding
				}
			}
		}
		return err
	})
	return hits, err
}

// similar returns the user's vectors by similarity, most similar first, newest first among equals.
func similar(ctx context.Context, q sqldb.Querier, userRow int64, fingerprint string, vector []float32) (list []candidate, err error) {
	rows, err := q.Query(ctx, `SELECT message_row, vector FROM message_embeddings WHERE user_row = ? AND fingerprint = ?`, userRow, fingerprint)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c candidate
		var data sql.RawBytes
		if err := rows.Scan(&c.row, &data); err != nil {
			return nil, err
		}
		if len(data) != 4*len(vector) {
			continue
		}
		for i, v := range vector {
			c.score += v * math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.row, a.row)) })
	return list, rows.Err()
}

// Progress implements recall.Index.
func (s *Recall) Progress(ctx context.Context, fingerprint string) (row int64, err error) {
	row, before, err := s.progress(ctx, progressVectors)
	if err != nil || before == fingerprint {
		return row, err
	}
	// Vectors of the previous model are deleted only while new ones are computed.
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO message_progress (part, fingerprint, row, leftovers) VALUES (?1, ?2, 0, ?3)
			ON CONFLICT DO UPDATE SET fingerprint = ?2, row = 0, leftovers = 1`, progressVectors, fingerprint, before != "")
		return err
	})
	return 0, err
}

// scannedForVectors is the number of messages read per query in the search for missing vectors.
const scannedForVectors = 500

// Missing implements recall.Index.
func (s *Recall) Missing(ctx context.Context, after int64, keep, limit int) (missing []recall.Missing, next int64, err error) {
	next = after
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		candidates, last, err := readEmbeddable(ctx, q, after, limit)
		if err != nil {
			return err
		}
		oldest := map[int64]int64{} // by user: the row of the oldest message that needs a vector
		for _, c := range candidates {
			row, known := oldest[c.UserRow]
			if !known {
				row, err = oldestRetained(q.QueryRow(ctx, `SELECT row FROM session_messages WHERE owner_row = ? ORDER BY row DESC LIMIT 1 OFFSET ?`,
					c.UserRow, keep-1))
				if err != nil {
					return err
				}
				oldest[c.UserRow] = row
			}
			if c.Row >= row {
				missing = append(missing, c)
			}
		}
		next = last
		return nil
	})
	return missing, next, err
}

// readEmbeddable reads messages after a row that have text and an owner, at most limit, and the last row read.
func readEmbeddable(ctx context.Context, q sqldb.Querier, after int64, limit int) (list []recall.Missing, last int64, err error) {
	rows, err := q.Query(ctx, `SELECT m.row, m.owner_row, s.namespace, m.withheld <> 0, m.role, m.message
		FROM session_messages m CROSS JOIN sessions s ON s.row = m.session_row WHERE m.row > ? ORDER BY m.row LIMIT ?`,
		after, scannedForVectors)
	if err != nil {
		return nil, after, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	last = after
	for len(list) < limit && rows.Next() {
		var owner sql.NullInt64
		var namespace string
		var withheld bool
		var role memory.Role
		var data sql.RawBytes
		if err := rows.Scan(&last, &owner, &namespace, &withheld, &role, &data); err != nil {
			return nil, after, err
		}
		if !owner.Valid || withheld || !recall.Indexed(role) {
			continue
		}
		var m memory.Message
		if sqldb.Skip(q, decodeMessage(last, data, &m)) {
			continue
		}
		if strings.TrimSpace(m.Content) != "" {
			list = append(list, recall.Missing{Row: last, UserRow: owner.Int64, Namespace: namespace, Text: m.Content})
		}
	}
	return list, last, rows.Err()
}

// oldestRetained returns the row of the oldest message to keep; 0 if all are kept.
func oldestRetained(found *sql.Row) (row int64, err error) {
	if err = found.Scan(&row); errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return row, err
}

// SetVectors implements recall.Index.
func (s *Recall) SetVectors(ctx context.Context, fingerprint string, vectors []recall.Vector, upto int64, keep int) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		users := map[int64]bool{}
		for _, v := range vectors {
			users[v.UserRow] = true
			_, err := tx.Exec(ctx, `INSERT INTO message_embeddings (message_row, user_row, fingerprint, vector)
				SELECT row, owner_row, ?2, ?3 FROM session_messages WHERE row = ?1 AND owner_row = ?4
				ON CONFLICT DO UPDATE SET fingerprint = ?2, vector = ?3`, v.Row, fingerprint, encodeVector(v.Vector), v.UserRow)
			if err != nil {
				return err
			}
		}
		for user := range users {
			oldest, err := oldestRetained(tx.QueryRow(ctx, `SELECT message_row FROM message_embeddings WHERE user_row = ?
				ORDER BY message_row DESC LIMIT 1 OFFSET ?`, user, keep-1))
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `DELETE FROM message_embeddings WHERE user_row = ? AND message_row < ?`, user, oldest)
			if err != nil {
				return err
			}
		}
		return noteProgress(ctx, tx, progressVectors, fingerprint, upto)
	})
}

// DropOthers implements recall.Index. A reader scans the whole table, only after a change of the model.
func (s *Recall) DropOthers(ctx context.Context, fingerprint string, limit int) (more bool, err error) {
	var first, last sql.NullInt64
	var count int
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		var leftovers bool
		err := q.QueryRow(ctx, `SELECT leftovers FROM message_progress WHERE part = ? AND fingerprint = ?`, progressVectors, fingerprint).Scan(&leftovers)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !leftovers {
			count = -1
			return nil
		}
		if err != nil {
			return err
		}
		return q.QueryRow(ctx, `SELECT min(message_row), max(message_row), count(*) FROM (SELECT message_row FROM message_embeddings
			WHERE fingerprint <> ? ORDER BY message_row LIMIT ?)`, fingerprint, limit).Scan(&first, &last, &count)
	})
	if err != nil || count < 0 {
		return false, err
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		if count < limit {
			_, err := tx.Exec(ctx, `UPDATE message_progress SET leftovers = 0 WHERE part = ? AND fingerprint = ?`, progressVectors, fingerprint)
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `DELETE FROM message_embeddings WHERE message_row BETWEEN ? AND ? AND fingerprint <> ?`,
			first.Int64, last.Int64, fingerprint)
		return err
	})
	return count == limit, err
}

// encodeVector encodes a vector as little-endian float32.
func encodeVector(vector []float32) []byte {
	b := make([]byte, 0, 4*len(vector))
	for _, v := range vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
