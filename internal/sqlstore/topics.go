package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Topics implements topics.Source.
type Topics struct{ db sqldb.Access }

var _ topics.Source = (*Topics)(nil)

// NewTopics returns the source of messages for topics.
func NewTopics(db sqldb.Access) *Topics { return &Topics{db} }

const (
	// maxTopicSessions is the number of sessions to search: those with the newest last messages.
	maxTopicSessions = topics.MaxMessages
	// textsAtOnce is the number of texts per query.
	textsAtOnce = 500
	// maxTopicBytes limits the stored messages to read, whose metadata may be larger than their text.
	maxTopicBytes = 64 << 20
)

// messageRef is a message whose text is not yet read.
type messageRef struct {
	row, at int64
	speaker int64 // the user's row, or minus the session's
}

// Messages implements topics.Source; newest first. It reads the index session by session, and of each only what may be among the newest
// messages of all, so that the number of messages hardly matters.
func (s *Topics) Messages(ctx context.Context, q topics.Query) (messages []topics.Message, truncated bool, err error) {
	err = s.db.Read(ctx, func(r sqldb.Querier) error {
		messages = nil
		var user int64
		if q.SessionID == "" && q.UserID != "" {
			var err error
			user, err = UserRow(ctx, r, memory.User{Namespace: q.Namespace, ID: q.UserID})
			if err != nil || user == 0 {
				return err
			}
		}
		sessions, more, err := topicSessions(ctx, r, q, user)
		if err != nil {
			return err
		}
		found, cut, err := newestMessageTime(ctx, r, q, user, sessions)
		if err != nil {
			return err
		}
		messages, truncated, err = topicTexts(ctx, r, found)
		truncated = truncated || cut || more
		return err
	})
	return messages, truncated, err
}

// topicSession is a session with the time of its last message.
type topicSession struct{ row, last int64 }

// topicSessions lists the sessions that have messages of the period, newest message first.
func topicSessions(ctx context.Context, r sqldb.Querier, q topics.Query, user int64) (sessions []topicSession, more bool, err error) {
	// A session's first and last time cover all its messages, so they exclude sessions outside the period.
	query := `SELECT s.row, s.last_said_at FROM sessions s`
	where := ` WHERE s.namespace = ? AND s.id IS NOT NULL AND s.last_said_at >= ? AND s.first_said_at < ?`
	args := []any{q.Namespace, sqldb.Micros(q.After), sqldb.Micros(q.Before)}
	if keys, all := q.Audience.Keys(); !all {
		visible, err := json.Marshal(keys)
		if err != nil {
			return nil, false, err
		}
		where += ` AND s.visibility IN (SELECT value FROM json_each(?))`
		args = append(args, string(visible))
	}
	switch {
	case q.SessionID != "":
		found, err := findSession(ctx, r, q.Namespace, q.SessionID, "")
		if err != nil || found == nil {
			return nil, false, err
		}
		where += ` AND s.row = ?`
		args = append(args, found.row)
	case user != 0:
		query += ` JOIN session_participants p ON p.session_row = s.row`
		where += ` AND p.user_row = ?`
		args = append(args, user)
	}
	rows, err := r.Query(ctx, query+where+` ORDER BY s.last_said_at DESC, s.row DESC LIMIT ?`, append(args, maxTopicSessions+1)...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	for rows.Next() {
		var t topicSession
		if err := rows.Scan(&t.row, &t.last); err != nil {
			return nil, false, err
		}
		sessions = append(sessions, t)
	}
	if more = len(sessions) > maxTopicSessions; more {
		sessions = sessions[:maxTopicSessions]
	}
	return sessions, more, rows.Err()
}

// newestMessageTime returns the newest messages of the sessions, newest first.
func newestMessageTime(ctx context.Context, r sqldb.Querier, q topics.Query, user int64, sessions []topicSession) (found []messageRef, cut bool, err error) {
	since := q.After.UnixMicro()
	newest := func() {
		slices.SortFunc(found, func(a, b messageRef) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.row, a.row)) })
		if len(found) > topics.MaxMessages {
			cut, found = true, found[:topics.MaxMessages]
			since = found[len(found)-1].at
		}
	}
	for _, session := range sessions {
		if session.last < since {
			cut = true
			break // all others ended earlier
		}
		if found, err = appendMessageRefs(ctx, r, found, q, user, session.row, since); err != nil {
			return nil, false, err
		}
		if len(found) > 2*topics.MaxMessages {
			newest()
		}
	}
	newest()
	return found, cut, nil
}

// appendMessageRefs adds the messages of a session that may be among the newest, and one more, which shows that there are more. It reads only
// the index.
func appendMessageRefs(ctx context.Context, r sqldb.Querier, found []messageRef, q topics.Query, user, session, since int64) ([]messageRef, error) {
	query := `SELECT row, said_at, owner_row FROM session_messages
		WHERE session_row = ? AND role = 'user' AND withheld = 0 AND said_at >= ? AND said_at < ?
		AND NOT EXISTS (SELECT 1 FROM memory_messages x WHERE x.message_row = session_messages.row AND x.excluded = 1)`
	args := []any{session, since, sqldb.Micros(q.Before)}
	if user != 0 {
		query += ` AND owner_row = ?`
		args = append(args, user)
	}
	if q.AgentID != nil { // the only condition that is not in the index
		query += ` AND agent_id = ?`
		args = append(args, *q.AgentID)
	}
	rows, err := r.Query(ctx, query+` ORDER BY said_at DESC LIMIT ?`, append(args, topics.MaxMessages+1)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	for rows.Next() {
		var m messageRef
		var owner sql.NullInt64
		if err := rows.Scan(&m.row, &m.at, &owner); err != nil {
			return nil, err
		}
		if m.speaker = owner.Int64; !owner.Valid {
			m.speaker = -session
		}
		found = append(found, m)
	}
	return found, rows.Err()
}

// topicTexts reads the texts of messages up to a limit.
func topicTexts(ctx context.Context, r sqldb.Querier, found []messageRef) (messages []topics.Message, truncated bool, err error) {
	runes, bytes := topics.MaxRunes, maxTopicBytes
	for part := range slices.Chunk(found, textsAtOnce) {
		texts, err := readTexts(ctx, r, part)
		if err != nil {
			return nil, false, err
		}
		for _, m := range part {
			text, ok := texts[m.row]
			if !ok { // deleted in between
				continue
			}
			if runes -= utf8.RuneCountInString(text.text); runes < 0 {
				return messages, true, nil
			}
			bytes -= text.stored
			messages = append(messages, topics.Message{Speaker: strconv.FormatInt(m.speaker, 10), Text: text.text})
		}
		if bytes < 0 {
			return messages, true, nil
		}
	}
	return messages, false, nil
}

// storedText is the start of a message, and its stored size.
type storedText struct {
	text   string
	stored int
}

func readTexts(ctx context.Context, r sqldb.Querier, part []messageRef) (map[int64]storedText, error) {
	list := make([]int64, len(part))
	for i, m := range part {
		list[i] = m.row
	}
	slices.Sort(list) // in the order of the disk
	ids, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	rows, err := r.Query(ctx, `SELECT m.row, octet_length(m.message), coalesce(substr(iif(json_valid(m.message), m.message ->> '$.content', ''), 1, ?), '')
		FROM json_each(?) i CROSS JOIN session_messages m ON m.row = i.value`, topics.MaxMessageRunes, string(ids))
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	texts := make(map[int64]storedText, len(part))
	for rows.Next() {
		var row int64
		var t storedText
		if err := rows.Scan(&row, &t.stored, &t.text); err != nil {
			return nil, err
		}
		texts[row] = t
	}
	return texts, rows.Err()
}
