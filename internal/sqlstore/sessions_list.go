package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// listPlace is where a page of a list ends.
type listPlace struct{ updated, row int64 }

func (s *sessionRow) listPlace() listPlace { return listPlace{s.UpdatedAt.UnixMicro(), s.row} }

// List implements session.Store.
func (s *Sessions) List(ctx context.Context, v session.Viewer, after string, limit int) (sessions []session.Session, next string, err error) {
	start := listPlace{math.MaxInt64, math.MaxInt64}
	if after != "" {
		if _, err := fmt.Sscanf(after, "%d.%d", &start.updated, &start.row); err != nil {
			return nil, "", memory.Invalid("page_token", "is not one this server gave out: start again without it")
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
			if seen, err = appendSeen(ctx, q, seen, found, v); err != nil {
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

// appendSeen appends those of the sessions found that the viewer sees.
func appendSeen(ctx context.Context, q sqldb.Querier, seen, found []sessionRow, v session.Viewer) ([]sessionRow, error) {
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

// narrowed finds sessions that the viewer may see, so that few others need to be looked at. It is "" when there are none.
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
	case inGroup: // everybody's there, and those of the user that are seen from there
		return `WHERE s.row IN (SELECT row FROM sessions WHERE namespace = ?7 AND visibility = ?8 AND channel_kind = 'group'
			UNION SELECT row FROM sessions WHERE row IN (SELECT session_row FROM session_participants WHERE user_row = ?4)
			AND (?5 OR visibility IN (SELECT value FROM json_each(?6))))`, []any{userRow, all, visible, v.Namespace, own}, nil
	case userRow == 0:
		return "", nil, nil
	}
	return `WHERE s.row IN (SELECT session_row FROM session_participants WHERE user_row = ?4)` + audience,
		[]any{userRow, all, visible}, nil
}

// Namespaces implements session.Store. It jumps from one to the next.
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
