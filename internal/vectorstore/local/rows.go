package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const memoryColumns = `m.row, m.id, m.agent_id, m.channel_kind, m.channel_id, m.session_id, m.text, m.language, m.kind,
	m.importance, m.explicit, m.provenance, m.created_at, m.updated_at, m.observed_at, m.mentions, m.last_said_at,
	m.use_count, m.last_used_at`

// scanMemory reads memoryColumns and whatever else the query selects after them.
func scanMemory(scan func(...any) error, user memory.User, extra ...any) (row int64, m memory.Memory, err error) {
	var provenance []byte
	var created, updated, observed, lastSaid, lastUsed sql.NullInt64
	m.User = user
	err = scan(append([]any{
		&row, &m.ID, &m.AgentID, &m.Channel.Kind, &m.Channel.ID, &m.SessionID, &m.Text, &m.Language,
		&m.Kind, &m.Importance, &m.Explicit, &provenance, &created, &updated, &observed, &m.Mentions, &lastSaid,
		&m.UseCount, &lastUsed,
	}, extra...)...)
	if err != nil {
		return 0, m, err
	}
	m.CreatedAt, m.UpdatedAt, m.ObservedAt = sqlite.Time(created), sqlite.Time(updated), sqlite.Time(observed)
	m.LastSaidAt, m.LastUsedAt = sqlite.Time(lastSaid), sqlite.Time(lastUsed)
	return row, m, json.Unmarshal(provenance, &m.Provenance)
}

// find reads a memory that the audience sees.
func find(ctx context.Context, q sqlite.Querier, user memory.User, id string, audience memory.Audience) (int64, memory.Memory, error) {
	row, m, err := scanMemory(q.QueryRow(ctx, `SELECT `+memoryColumns+` FROM memories m JOIN users u ON u.id = m.user_row
		WHERE u.namespace = ? AND u.user_id = ? AND m.id = ?`, user.Namespace, user.ID, id).Scan, user)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !audience.Sees(m.Channel) {
		return 0, memory.Memory{}, fmt.Errorf("memory %q: %w", id, memory.ErrNotFound)
	}
	return row, m, err
}

// apply stores one entry and reports whether its memory is new.
func apply(ctx context.Context, tx *sqlite.Tx, userRow int64, user memory.User, entry *vectorstore.Entry) (vectorstore.Applied, bool, error) {
	a, err := appliedBefore(ctx, tx, userRow, user, entry)
	if err != nil || a != nil {
		if a == nil {
			a = &vectorstore.Applied{}
		}
		return *a, false, err
	}
	m := entry.Memory
	m.User = user
	// As the database keeps them, so that the index and the rows never differ.
	for _, t := range []*time.Time{&m.CreatedAt, &m.UpdatedAt, &m.ObservedAt, &m.LastSaidAt} {
		*t = t.Truncate(time.Microsecond).UTC()
	}
	row, known, err := findKnown(ctx, tx, userRow, user, &m)
	isNew := false
	switch {
	case err != nil:
		return vectorstore.Applied{}, false, err
	case row == 0:
		a, isNew = &vectorstore.Applied{Action: memory.ActionAdded, Memory: m}, true
		err = insert(ctx, tx, userRow, &m, entry.Embedding)
	case entry.Reinforce:
		known.Mentions++
		if m.Importance > known.Importance {
			known.Importance, known.UpdatedAt = m.Importance, m.UpdatedAt
		}
		known.Explicit = known.Explicit || m.Explicit
		if m.LastSaidAt.After(known.LastSaidAt) {
			known.LastSaidAt = m.LastSaidAt
		}
		a = &vectorstore.Applied{Action: memory.ActionReinforced, Memory: known}
		_, err = tx.Exec(ctx, `UPDATE memories SET mentions = ?, importance = ?, explicit = ?, updated_at = ?, last_said_at = ?
			WHERE row = ?`, known.Mentions, known.Importance, known.Explicit, sqlite.Micros(known.UpdatedAt),
			sqlite.Micros(known.LastSaidAt), row)
	default:
		a = &vectorstore.Applied{Action: memory.ActionUnchanged, Memory: known}
	}
	if err != nil {
		return vectorstore.Applied{}, false, err
	}
	if entry.StatementID == "" {
		return *a, isNew, nil
	}
	payload := entry.PayloadHash
	if payload == nil {
		payload = []byte{}
	}
	_, err = tx.Exec(ctx, `INSERT INTO applied_statements (user_row, statement_id, memory_id, action, payload_hash)
		VALUES (?, ?, ?, ?, ?)`, userRow, entry.StatementID, a.Memory.ID, string(a.Action), payload)
	return *a, isNew, err
}

// appliedBefore returns the result of an entry that was applied before, or nil.
func appliedBefore(ctx context.Context, tx *sqlite.Tx, userRow int64, user memory.User, entry *vectorstore.Entry) (*vectorstore.Applied, error) {
	if entry.StatementID == "" {
		return nil, nil
	}
	var id string
	var action memory.Action
	var payload []byte
	err := tx.QueryRow(ctx, `SELECT memory_id, action, payload_hash FROM applied_statements
		WHERE user_row = ? AND statement_id = ?`, userRow, entry.StatementID).Scan(&id, &action, &payload)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case len(entry.PayloadHash) > 0 && !bytes.Equal(payload, entry.PayloadHash):
		return nil, memory.Invalid("request_id", "was used before for something else: use a new one")
	}
	_, m, err := find(ctx, tx, user, id, memory.Everything())
	if errors.Is(err, memory.ErrNotFound) {
		return &vectorstore.Applied{Action: memory.ActionLeftDeleted, Memory: memory.Memory{ID: id, User: user}}, nil
	}
	return &vectorstore.Applied{Action: action, Memory: m}, err
}

// findKnown finds a memory with the same id, or else with the same text and visibility. Two look-ups, because SQLite reads
// all of the user's memories for one with an OR.
func findKnown(ctx context.Context, tx *sqlite.Tx, userRow int64, user memory.User, m *memory.Memory) (int64, memory.Memory, error) {
	row, known, err := scanMemory(tx.QueryRow(ctx, `SELECT `+memoryColumns+` FROM memories m WHERE m.row = coalesce(
		(SELECT row FROM memories WHERE user_row = ?1 AND id = ?2),
		(SELECT row FROM memories WHERE user_row = ?1 AND text_key = ?3 AND visibility = ?4 LIMIT 1))`,
		userRow, m.ID, textKey(m.Text), m.Channel.VisibilityKey()).Scan, user)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, memory.Memory{}, nil
	}
	return row, known, err
}

func textKey(text string) []byte {
	sum := sha256.Sum256([]byte(vectorstore.TextKey(text)))
	return sum[:16]
}

func insert(ctx context.Context, tx *sqlite.Tx, userRow int64, m *memory.Memory, embedding vectorstore.Embedding) error {
	provenance, err := json.Marshal(m.Provenance)
	if err != nil {
		return err
	}
	row, err := tx.Insert(ctx, `INSERT INTO memories (user_row, id, agent_id, channel_kind, channel_id, session_id, visibility,
		text, text_key, language, kind, importance, explicit, provenance, created_at, updated_at, observed_at, mentions,
		last_said_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		userRow, m.ID, m.AgentID, string(m.Channel.Kind), m.Channel.ID, m.SessionID, m.Channel.VisibilityKey(),
		m.Text, textKey(m.Text), m.Language, string(m.Kind), m.Importance, m.Explicit, string(provenance),
		sqlite.Micros(m.CreatedAt), sqlite.Micros(m.UpdatedAt), sqlite.Micros(m.ObservedAt), m.Mentions,
		sqlite.Micros(m.LastSaidAt))
	if err != nil {
		return err
	}
	return insertEmbedding(ctx, tx, row, embedding)
}

func insertEmbedding(ctx context.Context, tx *sqlite.Tx, memoryRow int64, e vectorstore.Embedding) error {
	// Without vectors of the fingerprint in use the memory is one for the backfill.
	_, err := tx.Exec(ctx, `UPDATE fingerprints SET complete = ?1 WHERE complete <> ?1 AND name <> ?2
		AND name = (SELECT choice FROM model_choices WHERE part = ?3)`, incomplete, e.Fingerprint, embeddingPart)
	if err != nil || e.Fingerprint == "" {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO fingerprints (name) VALUES (?) ON CONFLICT DO NOTHING`, e.Fingerprint)
	if err != nil {
		return err
	}
	for chunk, vector := range e.Chunks {
		_, err := tx.Exec(ctx, `INSERT INTO embeddings (memory_row, fingerprint, chunk, vector)
			VALUES (?, (SELECT id FROM fingerprints WHERE name = ?), ?, ?)`, memoryRow, e.Fingerprint, chunk, encode(vector))
		if err != nil {
			return err
		}
	}
	return nil
}

func update(ctx context.Context, tx *sqlite.Tx, user memory.User, id string, audience memory.Audience, patch *vectorstore.Patch) (memory.Memory, error) {
	row, m, err := find(ctx, tx, user, id, audience)
	if err != nil {
		return m, err
	}
	if patch.Text != nil {
		m.Text = *patch.Text
	}
	if patch.Language != nil {
		m.Language = *patch.Language
	}
	if patch.Text != nil || patch.Embedding.Fingerprint != "" {
		if _, err := tx.Exec(ctx, `DELETE FROM embeddings WHERE memory_row = ?`, row); err != nil {
			return m, err
		}
		if err := insertEmbedding(ctx, tx, row, patch.Embedding); err != nil {
			return m, err
		}
	}
	if patch.Kind != nil {
		m.Kind = *patch.Kind
	}
	if patch.Importance != nil {
		m.Importance = *patch.Importance
	}
	m.UpdatedAt = patch.At.Truncate(time.Microsecond).UTC()
	_, err = tx.Exec(ctx, `UPDATE memories SET text = ?, text_key = ?, language = ?, kind = ?, importance = ?, updated_at = ?
		WHERE row = ?`, m.Text, textKey(m.Text), m.Language, string(m.Kind), m.Importance, sqlite.Micros(m.UpdatedAt), row)
	return m, err
}

// listRows reads rows in order until the page is full. The filter is applied here and not in SQL, so that a search and a
// list can never disagree about what matches; a user's rows are few enough for that.
func listRows(ctx context.Context, q sqlite.Querier, user memory.User, query vectorstore.ListQuery, after *cursor) (page vectorstore.Page, err error) {
	order, start := "DESC", cursor{math.MaxInt64, math.MaxInt64}
	compare := "<"
	if query.OldestFirst {
		order, start, compare = "ASC", cursor{math.MinInt64, math.MinInt64}, ">"
	}
	if after != nil {
		start = *after
	}
	rows, err := q.Query(ctx, `SELECT `+memoryColumns+` FROM memories m JOIN users u ON u.id = m.user_row
		WHERE u.namespace = ? AND u.user_id = ? AND (m.created_at, m.row) `+compare+` (?, ?)
		ORDER BY m.created_at `+order+`, m.row `+order, user.Namespace, user.ID, start.createdAt, start.row)
	if err != nil {
		return page, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var last cursor
	for rows.Next() {
		row, m, err := scanMemory(rows.Scan, user)
		if err != nil {
			return page, err
		}
		if !query.Filter.Matches(&m) {
			continue
		}
		if len(page.Memories) == query.Limit {
			page.Next = last.String()
			break
		}
		page.Memories = append(page.Memories, m)
		last = cursor{m.CreatedAt.UnixMicro(), row}
	}
	return page, rows.Err()
}

// load fills an empty index with the user's rows.
func load(ctx context.Context, q sqlite.Querier, user memory.User, x *index) (err error) {
	rows, err := q.Query(ctx, `SELECT `+memoryColumns+`, e.vector FROM users u JOIN memories m ON m.user_row = u.id
		LEFT JOIN embeddings e ON e.memory_row = m.row AND e.fingerprint = (SELECT id FROM fingerprints WHERE name = ?)
		WHERE u.namespace = ? AND u.user_id = ? ORDER BY m.row, e.chunk`, x.fingerprint, user.Namespace, user.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var current memory.Memory
	embedding := vectorstore.Embedding{Fingerprint: x.fingerprint}
	flush := func() error {
		if current.ID == "" {
			return nil
		}
		return x.put(ctx, current, &embedding)
	}
	for rows.Next() {
		var vector []byte
		_, m, err := scanMemory(rows.Scan, user, &vector)
		if err != nil {
			return err
		}
		if m.ID != current.ID {
			if err := flush(); err != nil {
				return err
			}
			current, embedding.Chunks = m, nil
		}
		if vector != nil {
			embedding.Chunks = append(embedding.Chunks, decode(vector))
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return flush()
}

// encode writes a vector as little-endian float32.
func encode(vector []float32) []byte {
	b := make([]byte, 0, 4*len(vector))
	for _, v := range vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func decode(b []byte) []float32 {
	vector := make([]float32, len(b)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return vector
}
