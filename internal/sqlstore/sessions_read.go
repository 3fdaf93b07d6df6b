package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// The columns that decide whether a message is selected come before its text, which is not read otherwise.
const sessionMessageColumns = `row, position, withheld, coalesce(consideration, ''), received_at, message`

func queryMessages(ctx context.Context, q sqldb.Querier, s *sessionRow, where string, args ...any) ([]session.Message, error) {
	rows, err := q.Query(ctx, `SELECT `+sessionMessageColumns+` FROM session_messages `+where, args...)
	if err != nil {
		return nil, err
	}
	return sqldb.CollectReadable(q, rows, func(scan func(...any) error) (session.Message, error) {
		m, _, err := scanSessionMessage(s, scan)
		return m, err
	})
}

// messagesTable is the table's name in errors about unreadable messages.
const messagesTable = "session_messages"

// decodeMessage decodes a message of a session. An unreadable one is a *memory.DamagedError.
func decodeMessage(row int64, text []byte, m *memory.Message) error {
	if err := sqldb.DecodeJSON(messagesTable, row, text, m); err != nil {
		return err
	}
	return sqldb.Times(messagesTable, row, m.Time.UTC())
}

// scanSessionMessage reads sessionMessageColumns. size is the stored size of the message.
func scanSessionMessage(s *sessionRow, scan func(...any) error) (m session.Message, size int, err error) {
	m.SessionID, m.Channel = s.ID, s.Channel
	var row int64
	var received sql.NullInt64
	var text []byte
	if err := scan(&row, &m.Position, &m.Excluded, &m.ConsiderationID, &received, &text); err != nil {
		return m, 0, sqldb.Scanned(messagesTable, row, err)
	}
	m.ReceivedAt = sqldb.Time(received)
	return m, len(text), decodeMessage(row, text, &m.Message)
}

// maxPageBytes limits the messages of a page, unless the first alone is larger: half of the default limit of gRPC clients, because the
// page may also contain them as text.
const maxPageBytes = 3 << 19

// queryPage reads messages up to a number and a size, and returns the position of the last one if there are more.
func queryPage(ctx context.Context, q sqldb.Querier, s *sessionRow, limit int, where string, args ...any) (messages []session.Message, more int64, err error) {
	rows, err := q.Query(ctx, `SELECT `+sessionMessageColumns+` FROM session_messages `+where, args...)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	bytes, last := 0, int64(0)
	for read := 0; rows.Next(); read++ {
		if read == limit {
			return messages, last, nil
		}
		m, size, err := scanSessionMessage(s, rows.Scan)
		if sqldb.Skip(q, err) {
			last = m.Position
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if bytes += size; bytes > maxPageBytes && len(messages) > 0 {
			return messages, last, nil
		}
		messages, last = append(messages, m), m.Position
	}
	return messages, 0, rows.Err()
}

// agentClause restricts messages to those of one agent. It names the index, because the wrong one reads the whole session.
func agentClause(agent *string) (index, clause string, value string) {
	switch {
	case agent == nil:
		return "INDEXED BY session_messages_by_place", "?2 = ''", ""
	case *agent == "": // most messages, or hardly any: they are not in the index
		return "INDEXED BY session_messages_by_place", "agent_id = ?2", ""
	}
	return "INDEXED BY session_messages_by_agent", "agent_id = ?2 AND agent_id <> ''", *agent
}

// Messages implements session.Store.
func (s *Sessions) Messages(ctx context.Context, v session.Viewer, sessionID string, query session.MessageQuery) (page session.Page, err error) {
	after := int64(0)
	if query.After != "" {
		if after, err = strconv.ParseInt(query.After, 10, 64); err != nil || after <= 0 {
			return page, memory.Invalid("page_token", "is invalid: start again without it")
		}
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		page = session.Page{}
		found, err := visibleSession(ctx, q, v, sessionID)
		if err != nil {
			return err
		}
		// Messages appended during the call are on a later page, or none: the positions are limited by the session read before.
		first, last, order := max(query.Start, 1), found.Last, "ASC"
		if query.NewestFirst {
			first, order = 1, "DESC"
			if query.Start > 0 {
				last = min(last, query.Start)
			}
		}
		page.Session = found.Session
		if page.Total, err = found.count(ctx, q, query.AgentID, first, last); err != nil {
			return err
		}
		switch {
		case after > 0 && query.NewestFirst:
			last = min(last, after-1)
		case after > 0:
			first = max(first, after+1)
		}
		index, clause, agent := agentClause(query.AgentID)
		var more int64
		page.Messages, more, err = queryPage(ctx, q, found, query.Limit, index+` WHERE session_row = ?1 AND `+clause+`
			AND position BETWEEN ?3 AND ?4 ORDER BY position `+order+` LIMIT ?5`, found.row, agent, first, last, query.Limit+1)
		if more != 0 {
			page.Next = strconv.FormatInt(more, 10)
		}
		return err
	})
	return page, err
}

// count returns the number of messages between two positions. It does not count rows for a whole session, or if there are no gaps.
func (s *sessionRow) count(ctx context.Context, q sqldb.Querier, agent *string, first, last int64) (n int64, err error) {
	oldest := s.Last + 1
	err = q.QueryRow(ctx, `SELECT position FROM session_messages INDEXED BY session_messages_by_place WHERE session_row = ?
		ORDER BY position LIMIT 1`, s.row).Scan(&oldest)
	if err := sqldb.Optional(err); err != nil {
		return 0, err
	}
	all := first <= oldest && last == s.Last
	switch {
	case agent == nil && all:
		return s.Messages, nil
	case agent == nil && s.Messages == s.Last-oldest+1:
		return max(0, last-max(first, oldest)+1), nil
	case agent != nil && *agent != "" && all:
		err := q.QueryRow(ctx, `SELECT messages FROM session_agents WHERE session_row = ? AND agent_id = ?`, s.row, *agent).Scan(&n)
		return n, sqldb.Optional(err)
	}
	index, clause, value := agentClause(agent)
	err = q.QueryRow(ctx, `SELECT count(*) FROM session_messages `+index+` WHERE session_row = ?1 AND `+clause+`
		AND position BETWEEN ?3 AND ?4`, s.row, value, first, last).Scan(&n)
	return n, err
}

// Window implements session.Store.
func (s *Sessions) Window(ctx context.Context, v session.Viewer, sessionID string, query session.WindowQuery) (w session.Window, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		w = session.Window{}
		found, err := visibleSession(ctx, q, v, sessionID)
		if err != nil {
			return err
		}
		w.Session = found.Session
		if _, w.ReadAt, err = found.summaryState(ctx, q); err != nil {
			return err
		}
		index, clause, agent := agentClause(query.AgentID)
		w.Messages, err = queryMessages(ctx, q, found, index+` WHERE session_row = ?1 AND `+clause+`
			AND position BETWEEN ?3 AND ?4 AND withheld = 0 AND (?5 OR role <> 'tool' AND iif(json_valid(message), json_extract(message, '$.content') <> '', 1))
			AND (?6 OR role <> 'system') ORDER BY position DESC LIMIT ?7`,
			found.row, agent, found.WindowStart, found.Last, query.Tools, query.System, query.Limit)
		if err != nil {
			return err
		}
		slices.Reverse(w.Messages)
		summaries, err := found.summaries(ctx, q)
		if err != nil {
			return err
		}
		wanted := agent
		if alone, err := found.onlyAgent(ctx, q, agent); err != nil {
			return err
		} else if alone {
			wanted = "" // the summary of all is also this agent's
		}
		if i := slices.IndexFunc(summaries, func(s session.Summary) bool { return s.AgentID == wanted }); i >= 0 {
			w.Summary = &summaries[i]
		}
		return nil
	})
	return w, err
}

// onlyAgent reports whether all messages belong to the agent, none to another one or to no agent.
func (s *sessionRow) onlyAgent(ctx context.Context, q sqldb.Querier, agent string) (bool, error) {
	if !slices.Equal(s.Agents, []string{agent}) {
		return false, nil
	}
	n, err := s.count(ctx, q, &agent, 1, s.Last)
	return n == s.Messages, err
}

func (s *sessionRow) summaries(ctx context.Context, q sqldb.Querier) ([]session.Summary, error) {
	rows, err := q.Query(ctx, `SELECT agent_id, text, last_position, messages, made_by, updated_at FROM session_summaries
		WHERE session_row = ? ORDER BY agent_id`, s.row)
	if err != nil {
		return nil, err
	}
	return sqldb.Collect(rows, func(scan func(...any) error) (m session.Summary, err error) {
		var at sql.NullInt64
		err = scan(&m.AgentID, &m.Text, &m.Last, &m.Messages, &m.MadeBy, &at)
		m.At = sqldb.Time(at)
		return m, err
	})
}

// Older implements session.Store.
func (s *Sessions) Older(ctx context.Context, namespace, sessionID string, after int64, agentID string, limit int) (o session.Older, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		o = session.Older{}
		found, err := findSession(ctx, q, namespace, sessionID, "")
		if err != nil {
			return err
		}
		if found == nil {
			return errNoSession(sessionID)
		}
		o.Session = found.Session
		if o.Revision, o.ReadAt, err = found.summaryState(ctx, q); err != nil {
			return err
		}
		if o.Summaries, err = found.summaries(ctx, q); err != nil {
			return err
		}
		var filter *string
		if agentID != "" {
			filter = &agentID
		}
		index, clause, agent := agentClause(filter)
		o.Messages, err = queryMessages(ctx, q, found, index+` WHERE session_row = ?1 AND `+clause+`
			AND position BETWEEN ?3 AND ?4 AND withheld = 0 AND role IN ('user', 'assistant') AND `+notExcluded("session_messages")+`
			ORDER BY position LIMIT ?5`,
			found.row, agent, max(after+1, found.WindowStart), found.Last, limit)
		return err
	})
	return o, err
}

// summaryState returns a number that rises with everything that makes a summary void, and when the session's context was first asked for.
func (s *sessionRow) summaryState(ctx context.Context, q sqldb.Querier) (revision int64, readAt time.Time, err error) {
	var read sql.NullInt64
	err = q.QueryRow(ctx, `SELECT revision + exclusions, read_at FROM sessions WHERE row = ?`, s.row).Scan(&revision, &read)
	return revision, sqldb.Time(read), err
}

// MarkRead implements session.Store.
func (s *Sessions) MarkRead(ctx context.Context, namespace, sessionID, madeBy string, at time.Time) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		found, err := findSession(ctx, tx, namespace, sessionID, "")
		if err != nil || found == nil {
			return err
		}
		s.cache.drop(found.row)
		_, err = tx.Exec(ctx, `UPDATE sessions SET read_at = ?2, summarize_at = coalesce(summarize_at,
			CASE WHEN EXISTS (SELECT 1 FROM session_summaries WHERE session_row = ?1 AND made_by = ?3) THEN ?2 END) WHERE row = ?1 AND read_at IS NULL`,
			found.row, sqldb.Micros(at), madeBy)
		return err
	})
}

// SaveSummary implements session.Store.
func (s *Sessions) SaveSummary(ctx context.Context, namespace, sessionID string, revision int64, summary session.Summary) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		found, err := findSession(ctx, tx, namespace, sessionID, "")
		if err != nil || found == nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO session_summaries (session_row, agent_id, text, last_position, messages, made_by, updated_at)
			SELECT row, ?3, ?4, ?5, ?6, ?7, ?8 FROM sessions WHERE row = ?1 AND revision + exclusions = ?2
			ON CONFLICT DO UPDATE SET text = ?4, last_position = ?5, messages = ?6, made_by = ?7, updated_at = ?8`,
			found.row, revision, summary.AgentID, summary.Text, summary.Last, summary.Messages, summary.MadeBy,
			sqldb.Micros(summary.At))
		return err
	})
}

// SummaryDone implements session.Store.
func (s *Sessions) SummaryDone(ctx context.Context, namespace, sessionID string, last int64, readAt time.Time) error {
	return s.db.Write(ctx, func(tx sqldb.Tx) error {
		found, err := findSession(ctx, tx, namespace, sessionID, "")
		if err != nil || found == nil {
			return err
		}
		s.cache.drop(found.row)
		_, err = tx.Exec(ctx, `UPDATE sessions SET summarize_at = NULL WHERE row = ? AND last_position <= ? AND read_at IS NOT DISTINCT FROM ?`,
			found.row, last, sqldb.Micros(readAt))
		return err
	})
}

// Sessions implements session.Store.
func (s *Sessions) Sessions(ctx context.Context, user memory.User, after string, limit int) (sessions []session.Session, next string, err error) {
	start := int64(0)
	if after != "" {
		if start, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, "", memory.Invalid("page_token", "is invalid: start again without it")
		}
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		sessions, next = nil, ""
		userRow, err := UserRow(ctx, q, user)
		if err != nil || userRow == 0 {
			return err
		}
		found, err := querySessions(ctx, q, `JOIN session_participants p ON p.session_row = s.row
			WHERE p.user_row = ? AND p.session_row > ? AND s.id IS NOT NULL ORDER BY p.session_row LIMIT ?`,
			userRow, start, limit+1)
		if err != nil {
			return err
		}
		for i := range found {
			if i == limit {
				next = strconv.FormatInt(found[i-1].row, 10)
				break
			}
			if found[i].damage != nil {
				continue
			}
			if err := found[i].name(ctx, q, user.ID); err != nil {
				return err
			}
			sessions = append(sessions, found[i].Session)
		}
		return nil
	})
	return sessions, next, err
}

// OwnMessages implements session.Store. It reads by session, not all messages of the user.
func (s *Sessions) OwnMessages(ctx context.Context, user memory.User, sessionID string, after int64, limit int) (messages []session.Message, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		found, err := findSession(ctx, q, user.Namespace, sessionID, "")
		if err != nil {
			return err
		}
		if found == nil {
			return errNoSession(sessionID)
		}
		userRow, err := UserRow(ctx, q, user)
		if err != nil {
			return err
		}
		messages, err = queryMessages(ctx, q, found, `INDEXED BY session_messages_by_place
			WHERE session_row = ? AND position > ? AND owner_row = ? ORDER BY position LIMIT ?`, found.row, after, userRow, limit)
		return err
	})
	return messages, err
}

// listPlace is the end of a page of a list.
type listPlace struct{ updated, row int64 }

func (s *sessionRow) listPlace() listPlace { return listPlace{s.UpdatedAt.UnixMicro(), s.row} }

// List implements session.Store.
func (s *Sessions) List(ctx context.Context, v session.Viewer, after string, limit int) (sessions []session.Session, next string, err error) {
	start := listPlace{math.MaxInt64, math.MaxInt64}
	if after != "" {
		if _, err := fmt.Sscanf(after, "%d.%d", &start.updated, &start.row); err != nil {
			return nil, "", memory.Invalid("page_token", "is invalid: start again without it")
		}
	}
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		sessions, next = nil, ""
		where, args, err := narrowed(ctx, q, v)
		if err != nil || where == "" {
			return err
		}
		var seen []sessionRow
		place := start
		for more := true; more && len(seen) <= limit; {
			found, err := querySessions(ctx, q, where+` AND s.id IS NOT NULL AND (s.updated_at, s.row) < (?1, ?2)
				ORDER BY s.updated_at DESC, s.row DESC LIMIT ?3`, append([]any{place.updated, place.row, limit + 1}, args...)...)
			if err != nil {
				return err
			}
			if more = len(found) > limit; more {
				place = found[limit].listPlace()
			}
			if seen, err = appendVisible(ctx, q, seen, found, v); err != nil {
				return err
			}
		}
		for i := range seen[:min(len(seen), limit)] {
			sessions = append(sessions, seen[i].Session)
		}
		if len(seen) > limit {
			end := seen[limit-1].listPlace()
			next = fmt.Sprintf("%d.%d", end.updated, end.row)
		}
		return nil
	})
	return sessions, next, err
}

// appendVisible appends those of the sessions found that the viewer may see.
func appendVisible(ctx context.Context, q sqldb.Querier, seen, found []sessionRow, v session.Viewer) ([]sessionRow, error) {
	for i := range found {
		if found[i].damage != nil {
			continue
		}
		if err := found[i].name(ctx, q, v.UserID); err != nil {
			return nil, err
		}
		if v.Sees(&found[i].Session) {
			seen = append(seen, found[i])
		}
	}
	return seen, nil
}

// narrowed returns a condition that selects few other sessions than those visible to the viewer. It may be "".
func narrowed(ctx context.Context, q sqldb.Querier, v session.Viewer) (where string, args []any, err error) {
	keys, all := v.Audience.Keys()
	visible, err := jsonList(keys)
	if err != nil {
		return "", nil, err
	}
	const audience = ` AND (?5 OR s.visibility IN (SELECT value FROM json_each(?6)))`
	inGroup, own := v.Channel.Kind == memory.ChannelGroup, v.Channel.VisibilityKey()
	elsewhere := all || slices.ContainsFunc(keys, func(key string) bool { return key != own })
	switch {
	case inGroup && (v.UserID == "" || !elsewhere):
		return `WHERE s.namespace = ?4 AND s.visibility = ?5 AND s.channel_kind = 'group'`, []any{v.Namespace, own}, nil
	case v.UserID == "":
		return `WHERE s.namespace = ?4 AND s.participants = 0` + audience, []any{v.Namespace, all, visible}, nil
	}
	userRow, err := UserRow(ctx, q, memory.User{Namespace: v.Namespace, ID: v.UserID})
	switch {
	case err != nil:
		return "", nil, err
	case inGroup: // all sessions of the group, and those of the user visible there
		return `WHERE s.row IN (SELECT row FROM sessions WHERE namespace = ?7 AND visibility = ?8 AND channel_kind = 'group'
			UNION SELECT row FROM sessions WHERE row IN (SELECT session_row FROM session_participants WHERE user_row = ?4)
			AND (?5 OR visibility IN (SELECT value FROM json_each(?6))))`, []any{userRow, all, visible, v.Namespace, own}, nil
	case userRow == 0:
		return "", nil, nil
	}
	return `WHERE s.row IN (SELECT session_row FROM session_participants WHERE user_row = ?4)` + audience,
		[]any{userRow, all, visible}, nil
}

// Namespaces implements session.Store. It skips from one to the next in an index.
func (s *Sessions) Namespaces(ctx context.Context) (all []string, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		all = nil
		last := ""
		for {
			err := q.QueryRow(ctx, `SELECT namespace FROM sessions WHERE namespace > ? ORDER BY namespace LIMIT 1`, last).Scan(&last)
			if err != nil {
				return sqldb.Optional(err)
			}
			all = append(all, last)
		}
	})
	return all, err
}
