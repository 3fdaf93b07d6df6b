package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Sessions implements session.Store.
type Sessions struct {
	db    sqldb.Access
	queue *Queue
	cache *sessionCache
	// Quotas limit how much history is stored; optional. They must be set before the sessions are used.
	Quotas *Quotas
}

var _ session.Store = (*Sessions)(nil)

// NewSessions returns the sessions in the database, whose dialogues the queue accepts. There must be only one per database, because it
// caches sessions.
func NewSessions(db sqldb.Access, queue *Queue) *Sessions {
	s := &Sessions{db: db, queue: queue, cache: newSessionCache()}
	db.OnOpen(s.cache.clear)
	return s
}

// rewrite calls fn in a transaction that may change any session.
func (s *Sessions) rewrite(ctx context.Context, fn func(tx sqldb.Tx) error) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		s.cache.clear()
		return fn(tx)
	})
}

// sessionRow is a stored session.
type sessionRow struct {
	session.Session
	row           int64
	participants  int // their number; Session lists only some
	oldestAt      time.Time
	oldestSaved   time.Time // stored value of oldestAt
	revision      int64
	defaultEvery  int
	idle          time.Duration
	considerAt    time.Time
	considerAfter time.Time
	summarizeAt   time.Time
	users         map[string]int64 // rows of some participants; must not be changed
	damage        error            // why it cannot be read; other fields have the readable values
}

// The participants are selected as JSON, so that a page of sessions needs one query.
const sessionColumns = `s.row, s.namespace, s.id, s.ref, s.channel_kind, s.channel_id, s.title, s.metadata, s.memorize_every,
	s.messages, s.user_messages, s.unconsidered, s.first_said_at, s.last_said_at, s.created_at, s.updated_at, s.active_at,
	s.window_start, s.last_position, s.revision, s.default_every, s.idle, s.consider_at, s.consider_after, s.summarize_at,
	s.participants, s.oldest_at,
	(SELECT json_group_array(user_id) FROM (SELECT u.user_id FROM session_participants p CROSS JOIN users u ON u.id = p.user_row
		WHERE p.session_row = s.row ORDER BY p.number LIMIT 1000)),
	(SELECT json_group_array(agent_id) FROM (SELECT agent_id FROM session_agents WHERE session_row = s.row
		ORDER BY number LIMIT 1000))`

func scanSession(scan func(...any) error) (s sessionRow, err error) {
	var every sql.NullInt64
	var firstMessage, lastMessage, created, updated, active, considerAt, considerAfter, summarizeAt, oldest sql.NullInt64
	var idle int64
	var participants, agents []byte
	err = scan(&s.row, &s.Namespace, &s.ID, &s.Ref, &s.Channel.Kind, &s.Channel.ID, &s.Title, &s.Metadata, &every,
		&s.Messages, &s.UserMessages, &s.Unconsidered, &firstMessage, &lastMessage, &created, &updated, &active,
		&s.WindowStart, &s.Last, &s.revision, &s.defaultEvery, &idle, &considerAt, &considerAfter, &summarizeAt,
		&s.participants, &oldest, &participants, &agents)
	if err != nil {
		return s, sqldb.Scanned("sessions", s.row, err)
	}
	if every.Valid {
		n := int(every.Int64)
		s.MemorizeEvery = &n
	}
	s.FirstSaidAt, s.LastSaidAt, s.CreatedAt, s.UpdatedAt = sqldb.Time(firstMessage), sqldb.Time(lastMessage), sqldb.Time(created), sqldb.Time(updated)
	s.ActiveAt, s.oldestAt, s.idle = sqldb.Time(active), sqldb.Time(oldest), time.Duration(idle)*time.Microsecond
	s.oldestSaved = s.oldestAt
	s.considerAt, s.considerAfter, s.summarizeAt = sqldb.Time(considerAt), sqldb.Time(considerAfter), sqldb.Time(summarizeAt)
	return s, errors.Join(
		sqldb.DecodeJSON("sessions", s.row, participants, &s.Participants), sqldb.DecodeJSON("sessions", s.row, agents, &s.Agents),
		sqldb.Texts("sessions", s.row, s.ID, s.Title, s.Metadata, s.Channel.ID),
		sqldb.Times("sessions", s.row, s.FirstSaidAt, s.LastSaidAt, s.CreatedAt, s.UpdatedAt, s.ActiveAt))
}

func querySessions(ctx context.Context, q sqldb.Querier, where string, args ...any) ([]sessionRow, error) {
	rows, err := q.Query(ctx, `SELECT `+sessionColumns+` FROM sessions s `+where, args...)
	if err != nil {
		return nil, err
	}
	return sqldb.Collect(rows, func(scan func(...any) error) (sessionRow, error) {
		s, err := scanSession(scan)
		if sqldb.Skip(q, err) {
			s.damage, err = err, nil
		}
		return s, err
	})
}

// errNoSession is the error if a session does not exist or the viewer may not see it.
func errNoSession(id string) error {
	if _, after, ok := strings.Cut(id, refSeparator); ok {
		id = after
	}
	return fmt.Errorf("session %q: %w", id, memory.ErrNotFound)
}

// name makes sure that a participant is among the listed ones.
func (s *sessionRow) name(ctx context.Context, q sqldb.Querier, userID string) error {
	if userID == "" || s.participants <= len(s.Participants) || slices.Contains(s.Participants, userID) {
		return nil
	}
	var takesPart bool
	err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM session_participants p JOIN users u ON u.id = p.user_row
		WHERE u.namespace = ? AND u.user_id = ? AND p.session_row = ?)`, s.Namespace, userID, s.row).Scan(&takesPart)
	if err == nil && takesPart {
		s.Participants[len(s.Participants)-1] = userID
	}
	return err
}

// visibleSession returns the session if the viewer may see it, else memory.ErrNotFound.
func visibleSession(ctx context.Context, q sqldb.Querier, v session.Viewer, id string) (*sessionRow, error) {
	matched, err := matchingSessions(ctx, q, v, id)
	if err != nil {
		return nil, err
	}
	for i := range matched {
		if v.Sees(&matched[i].Session) {
			return &matched[i], nil
		}
	}
	return nil, errNoSession(id)
}

// writableSession returns the session if the viewer may see it and write to it.
func writableSession(ctx context.Context, q sqldb.Querier, v session.Viewer, id string) (*sessionRow, error) {
	s, err := visibleSession(ctx, q, v, id)
	if err != nil {
		return nil, err
	}
	if err := s.refused(v); err != nil {
		return nil, err
	}
	return s, nil
}

// refused returns an error if the viewer may not write to the session.
func (s *sessionRow) refused(v session.Viewer) error {
	if why := v.MayWrite(&s.Session); why != "" {
		return &session.RefusedError{SessionID: s.ID, Refusal: why}
	}
	return nil
}

// newSession creates a session.
func newSession(ctx context.Context, tx sqldb.Tx, scope memory.Scope, id string, about *session.Import, at time.Time) (*sessionRow, error) {
	if id == "" {
		return nil, memory.Invalid("scope.session_id", "is required")
	}
	created, updated := at, at
	if about == nil {
		about = &session.Import{}
	}
	if !about.CreatedAt.IsZero() {
		created = about.CreatedAt
	}
	if !about.UpdatedAt.IsZero() {
		updated = about.UpdatedAt
	}
	ref := refOf(scope.UserID, scope.Channel, id)
	// Revisions start at a random number, so that a summary of a deleted session with the same id does not match this one.
	_, err := tx.Exec(ctx, `INSERT INTO sessions (namespace, id, ref, channel_kind, channel_id, visibility, title, metadata,
		memorize_every, messages, user_messages, unconsidered, created_at, updated_at, oldest_at, window_start, last_position,
		revision, default_every, idle, participants) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?, ?, ?, 1, 0, ?, 0, 0, 0)`,
		scope.Namespace, id, ref, string(scope.Channel.Kind), scope.Channel.ID, scope.Channel.VisibilityKey(), about.Title,
		about.Metadata, about.MemorizeEvery, sqldb.Micros(created), sqldb.Micros(updated), sqldb.Micros(at), at.UnixMicro())
	if err != nil {
		return nil, err
	}
	return findSession(ctx, tx, scope.Namespace, ref, scope.UserID)
}

// save writes the columns that messages change. Setting a column rewrites its index even if the value stays the same. The time of the
// oldest message changes rarely, so it is written only then.
func (s *sessionRow) save(ctx context.Context, tx sqldb.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE sessions SET messages = ?, user_messages = ?, unconsidered = ?, first_said_at = ?,
		last_said_at = ?, updated_at = ?, active_at = ?, window_start = ?, last_position = ?, revision = ?, default_every = ?,
		idle = ?, consider_at = ?, consider_after = ?, summarize_at = ?, participants = ? WHERE row = ?`,
		s.Messages, s.UserMessages, s.Unconsidered, sqldb.Micros(s.FirstSaidAt), sqldb.Micros(s.LastSaidAt), sqldb.Micros(s.UpdatedAt),
		sqldb.Micros(s.ActiveAt), s.WindowStart, s.Last, s.revision, s.defaultEvery, s.idle.Microseconds(), sqldb.Micros(s.considerAt),
		sqldb.Micros(s.considerAfter), sqldb.Micros(s.summarizeAt), s.participants, s.row)
	if err != nil || s.oldestAt.Equal(s.oldestSaved) {
		return err
	}
	s.oldestSaved = s.oldestAt
	_, err = tx.Exec(ctx, `UPDATE sessions SET oldest_at = ? WHERE row = ?`, sqldb.Micros(s.oldestAt), s.row)
	return err
}

// join adds a user to the participants.
func (s *sessionRow) join(ctx context.Context, tx sqldb.Tx, userRow int64) error {
	added, err := tx.Affect(ctx, `INSERT INTO session_participants (session_row, number, user_row)
		SELECT ?1, (SELECT coalesce(max(number), 0) + 1 FROM session_participants WHERE session_row = ?1), ?2
		WHERE NOT EXISTS (SELECT 1 FROM session_participants WHERE user_row = ?2 AND session_row = ?1)`, s.row, userRow)
	s.participants += int(added)
	return err
}

// Get implements session.Store.
func (s *Sessions) Get(ctx context.Context, v session.Viewer, sessionID string) (got session.Session, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		found, err := visibleSession(ctx, q, v, sessionID)
		if err == nil {
			got = found.Session
		}
		return err
	})
	return got, err
}

// Participants implements session.Store.
func (s *Sessions) Participants(ctx context.Context, namespace, sessionID string) (all []string, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		found, err := findSession(ctx, q, namespace, sessionID, "")
		if err != nil {
			return err
		}
		if found == nil {
			return errNoSession(sessionID)
		}
		rows, err := q.Query(ctx, `SELECT u.user_id FROM session_participants p CROSS JOIN users u ON u.id = p.user_row
			WHERE p.session_row = ? ORDER BY p.number`, found.row)
		if err != nil {
			return err
		}
		all, err = sqldb.Column[string](rows)
		return err
	})
	return all, err
}

// Update implements session.Store.
func (s *Sessions) Update(ctx context.Context, v session.Viewer, sessionID string, p session.Patch) (got session.Session, err error) {
	at := p.At.Truncate(time.Microsecond).UTC()
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		found, err := writableSession(ctx, tx, v, sessionID)
		if err != nil {
			return err
		}
		s.cache.drop(found.row)
		if p.Title != nil {
			found.Title = *p.Title
		}
		if p.Metadata != nil {
			found.Metadata = *p.Metadata
		}
		if p.MemorizeEvery != nil {
			found.MemorizeEvery = *p.MemorizeEvery
			found.schedule(at)
		}
		found.UpdatedAt = at
		got = found.Session
		_, err = tx.Exec(ctx, `UPDATE sessions SET title = ?, metadata = ?, memorize_every = ?, updated_at = ?, consider_at = ?,
			consider_after = ? WHERE row = ?`, found.Title, found.Metadata, found.MemorizeEvery, sqldb.Micros(at),
			sqldb.Micros(found.considerAt), sqldb.Micros(found.considerAfter), found.row)
		return err
	})
	return got, err
}

// schedule sets when the pending messages are considered.
func (s *sessionRow) schedule(at time.Time) {
	every := s.defaultEvery
	if s.MemorizeEvery != nil {
		every = *s.MemorizeEvery
	}
	switch {
	case every <= 0 || s.Unconsidered <= 0:
		s.considerAt, s.considerAfter = time.Time{}, time.Time{}
		return
	case s.Unconsidered >= int64(every):
		if s.considerAt.IsZero() || s.considerAt.After(at) { // due sessions keep their position
			s.considerAt = at
		}
	case s.idle > 0:
		s.considerAt = s.ActiveAt.Add(s.idle)
	default:
		s.considerAt = time.Time{}
		return
	}
	if s.considerAfter.After(s.considerAt) {
		s.considerAt = s.considerAfter
	}
}

// jsonList returns a list for json_each.
func jsonList(texts []string) (string, error) {
	if texts == nil {
		texts = []string{}
	}
	list, err := json.Marshal(texts)
	return string(list), err
}
