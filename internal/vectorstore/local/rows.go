package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const memoryColumns = `m.row, m.id, m.agent_id, m.channel_kind, m.channel_id, m.session_id, m.text, m.language, m.kind,
	m.importance, m.explicit, m.provenance, m.created_at, m.updated_at, m.observed_at, m.mentions, m.last_said_at,
	m.use_count, m.last_used_at, m.valid_from, m.valid_to, m.superseded_by, m.quarantine, m.withdrawn_at, m.standing`

// memoriesTable is the table's name in errors about unreadable memories.
const memoriesTable = "memories"

// scanMemory reads memoryColumns and further columns of the query. An unreadable memory is a *memory.DamagedError; the result then has
// the readable values.
func scanMemory(scan func(...any) error, user memory.User, extra ...any) (row int64, m memory.Memory, err error) {
	var provenance []byte
	var created, updated, observed, lastSaid, lastUsed, from, to, withdrawn sql.NullInt64
	m.User = user
	err = scan(append([]any{
		&row, &m.ID, &m.AgentID, &m.Channel.Kind, &m.Channel.ID, &m.SessionID, &m.Text, &m.Language,
		&m.Kind, &m.Importance, &m.Explicit, &provenance, &created, &updated, &observed, &m.Mentions, &lastSaid,
		&m.UseCount, &lastUsed, &from, &to, &m.SupersededBy, &m.Quarantine, &withdrawn, &m.Standing,
	}, extra...)...)
	if err != nil {
		return row, m, sqldb.Scanned(memoriesTable, cmp.Or(m.ID, strconv.FormatInt(row, 10)), err)
	}
	m.CreatedAt, m.UpdatedAt, m.ObservedAt = sqldb.Time(created), sqldb.Time(updated), sqldb.Time(observed)
	m.LastSaidAt, m.LastUsedAt = sqldb.Time(lastSaid), sqldb.Time(lastUsed)
	m.ValidFrom, m.ValidTo, m.WithdrawnAt = sqldb.Time(from), sqldb.Time(to), sqldb.Time(withdrawn)
	err = errors.Join(sqldb.DecodeJSON(memoriesTable, m.ID, provenance, &m.Provenance), sound(&m))
	return row, m, err
}

// sound returns a *memory.DamagedError if a memory has an invalid value.
func sound(m *memory.Memory) error {
	return errors.Join(
		sqldb.Texts(memoriesTable, m.ID, m.ID, m.Text, m.AgentID, string(m.Channel.Kind), m.Channel.ID, m.SessionID, m.Language,
			string(m.Kind), m.SupersededBy, m.Quarantine, string(m.Standing)),
		sqldb.Times(memoriesTable, m.ID, m.CreatedAt, m.UpdatedAt, m.ObservedAt, m.LastSaidAt, m.LastUsedAt, m.ValidFrom, m.ValidTo, m.WithdrawnAt),
		sqldb.Numbers(memoriesTable, m.ID, 0, 1, m.Importance))
}

// find reads a memory that the audience may see.
func find(ctx context.Context, q sqldb.Querier, user memory.User, id string, audience memory.Audience) (int64, memory.Memory, error) {
	row, m, err := scanMemory(q.QueryRow(ctx, `SELECT `+memoryColumns+` FROM memories m JOIN users u ON u.id = m.user_row
		WHERE u.namespace = ? AND u.user_id = ? AND m.id = ?`, user.Namespace, user.ID, id).Scan, user)
	if errors.Is(err, sql.ErrNoRows) || (err == nil || errors.Is(err, memory.ErrDamaged)) && !audience.Sees(m.Channel) {
		return 0, memory.Memory{}, fmt.Errorf("memory %q: %w", id, memory.ErrNotFound)
	}
	return row, m, err
}

func textKey(text string) []byte {
	sum := sha256.Sum256([]byte(vectorstore.TextKey(text)))
	return sum[:16]
}

func insert(ctx context.Context, tx sqldb.Tx, userRow int64, m *memory.Memory, embedding vectorstore.Embedding) (row int64, err error) {
	provenance, err := json.Marshal(m.Provenance)
	if err != nil {
		return 0, err
	}
	row, err = tx.Insert(ctx, `INSERT INTO memories (user_row, id, agent_id, channel_kind, channel_id, session_id, visibility,
		text, text_key, language, kind, importance, explicit, provenance, created_at, updated_at, observed_at, mentions,
		last_said_at, valid_from, valid_to, superseded_by, quarantine, withdrawn_at, standing)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		userRow, m.ID, m.AgentID, string(m.Channel.Kind), m.Channel.ID, m.SessionID, m.Channel.VisibilityKey(),
		m.Text, textKey(m.Text), m.Language, string(m.Kind), m.Importance, m.Explicit, string(provenance),
		sqldb.Micros(m.CreatedAt), sqldb.Micros(m.UpdatedAt), sqldb.Micros(m.ObservedAt), m.Mentions,
		sqldb.Micros(m.LastSaidAt), sqldb.Micros(m.ValidFrom), sqldb.Micros(m.ValidTo), m.SupersededBy, m.Quarantine,
		sqldb.Micros(m.WithdrawnAt), string(m.Standing))
	if err != nil {
		return 0, err
	}
	return row, insertEmbedding(ctx, tx, row, embedding)
}

// save writes the fields of a memory that may change, except the text, see saveText.
func save(ctx context.Context, tx sqldb.Tx, row int64, m *memory.Memory) error {
	_, err := tx.Exec(ctx, `UPDATE memories SET language = ?, kind = ?, importance = ?, explicit = ?, updated_at = ?, mentions = ?,
		last_said_at = ?, valid_to = ?, superseded_by = ?, quarantine = ?, withdrawn_at = ?, standing = ? WHERE row = ?`,
		m.Language, string(m.Kind), m.Importance, m.Explicit, sqldb.Micros(m.UpdatedAt), m.Mentions, sqldb.Micros(m.LastSaidAt),
		sqldb.Micros(m.ValidTo), m.SupersededBy, m.Quarantine, sqldb.Micros(m.WithdrawnAt), string(m.Standing), row)
	return err
}

// saveText writes a memory's text and replaces its vectors, which belong to the old text.
func saveText(ctx context.Context, tx sqldb.Tx, row int64, m *memory.Memory, embedding vectorstore.Embedding) error {
	_, err := tx.Exec(ctx, `UPDATE memories SET text = ?, text_key = ? WHERE row = ?`, m.Text, textKey(m.Text), row)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM embeddings WHERE memory_row = ?`, row); err != nil {
		return err
	}
	return insertEmbedding(ctx, tx, row, embedding)
}

// readEmbedding reads a memory's vectors of a fingerprint.
func readEmbedding(ctx context.Context, q sqldb.Querier, row int64, fingerprint string) (e vectorstore.Embedding, err error) {
	e.Fingerprint = fingerprint
	rows, err := q.Query(ctx, `SELECT vector FROM embeddings WHERE memory_row = ?
		AND fingerprint = (SELECT id FROM fingerprints WHERE name = ?) ORDER BY chunk`, row, fingerprint)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var vector []byte
		if err := rows.Scan(&vector); err != nil {
			return e, err
		}
		chunk, err := decode(vector, fingerprint, row)
		if sqldb.Skip(q, err) {
			continue
		}
		e.Chunks = append(e.Chunks, chunk)
	}
	return e, rows.Err()
}

func insertEmbedding(ctx context.Context, tx sqldb.Tx, memoryRow int64, e vectorstore.Embedding) error {
	// A memory without vectors of the current fingerprint is left to the backfill.
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

func update(ctx context.Context, tx sqldb.Tx, user memory.User, id string, audience memory.Audience, patch *vectorstore.Patch) (memory.Memory, error) {
	row, m, err := find(ctx, tx, user, id, audience)
	if err != nil {
		return m, err
	}
	switch {
	case !m.WithdrawnAt.IsZero():
		return m, fmt.Errorf("memory %q is withdrawn: revert that before you change it: %w", id, memory.ErrPrecondition)
	case m.SupersededBy != "":
		return m, fmt.Errorf("memory %q is superseded by %q: change that one, or revert the change that superseded it: %w",
			id, m.SupersededBy, memory.ErrPrecondition)
	}
	before := m
	if patch.Text != nil {
		m.Text = *patch.Text
	}
	if patch.Language != nil {
		m.Language = *patch.Language
	}
	if patch.Kind != nil {
		m.Kind = *patch.Kind
	}
	if patch.Importance != nil {
		m.Importance = *patch.Importance
	}
	if patch.Standing != nil {
		m.Standing = *patch.Standing
	}
	m.UpdatedAt = patch.At.Truncate(time.Microsecond).UTC()
	if patch.Text != nil || patch.Embedding.Fingerprint != "" {
		if err := saveText(ctx, tx, row, &m, patch.Embedding); err != nil {
			return m, err
		}
	}
	if err := save(ctx, tx, row, &m); err != nil {
		return m, err
	}
	if m.Text == before.Text && m.Language == before.Language && m.Kind == before.Kind && m.Standing == before.Standing &&
		m.Importance == before.Importance {
		return m, nil
	}
	return m, writeRevision(ctx, tx, row, revision{
		change: vectorstore.ChangeEdited, at: m.UpdatedAt,
		before: overwritten{
			Text: &before.Text, Language: &before.Language, Kind: &before.Kind, Standing: &before.Standing,
			Importance: &before.Importance, UpdatedAt: &before.UpdatedAt,
		},
	})
}

// listRows reads rows in order until the page is full. The filter is applied here and not in SQL, so that searches and lists always
// agree; a user has few enough rows.
func listRows(ctx context.Context, q sqldb.Querier, user memory.User, query vectorstore.ListQuery, after *cursor) (page vectorstore.Page, err error) {
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
		if sqldb.Skip(q, err) {
			continue
		}
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
func load(ctx context.Context, q sqldb.Querier, user memory.User, x *index) (err error) {
	rows, err := q.Query(ctx, `SELECT `+memoryColumns+`, e.vector FROM users u JOIN memories m ON m.user_row = u.id
		LEFT JOIN embeddings e ON e.memory_row = m.row AND e.fingerprint = (SELECT id FROM fingerprints WHERE name = ?)
		WHERE u.namespace = ? AND u.user_id = ? AND m.withdrawn_at IS NULL AND m.quarantine = ''
		ORDER BY m.row, e.chunk`, x.fingerprint, user.Namespace, user.ID)
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
		if sqldb.Skip(q, err) {
			continue
		}
		if err != nil {
			return err
		}
		if m.ID != current.ID {
			if err := flush(); err != nil {
				return err
			}
			current, embedding.Chunks = m, nil
		}
		if vector == nil {
			continue
		}
		chunk, err := decode(vector, x.fingerprint, m.ID)
		if sqldb.Skip(q, err) {
			continue // keywords still find the memory
		}
		embedding.Chunks = append(embedding.Chunks, chunk)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return flush()
}

// encode encodes a vector as little-endian float32.
func encode(vector []float32) []byte {
	b := make([]byte, 0, 4*len(vector))
	for _, v := range vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// decode decodes a vector of a memory. If it does not have the length of its fingerprint, or contains NaN, the error is a
// *memory.DamagedError.
func decode(b []byte, fingerprint string, id any) ([]float32, error) {
	dimensions := len(b) / 4
	if f, err := embed.ParseFingerprint(fingerprint); err == nil {
		dimensions = f.Dimensions
	}
	vector, problem := sqldb.DecodeVector(b, dimensions)
	if problem != "" {
		return nil, &memory.DamagedError{Table: "embeddings", ID: fmt.Sprint(id), Problem: "its vector " + problem}
	}
	return vector, nil
}
