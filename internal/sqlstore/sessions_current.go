package sqlstore

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// everybody stands in current_sessions for those in a group who have no current session of their own.
const everybody = 0

// channelKey names one channel: unlike its visibility, that of a direct chat is its own.
func channelKey(c memory.Channel) string { return string(c.Kind) + ":" + c.ID }

// The row of the session that is meant when a request names none: of a user, or of everybody in a group.
const (
	currentOfUser = `(SELECT c.session_row FROM users u JOIN current_sessions c ON c.namespace = u.namespace AND c.user_row = u.id
		WHERE u.namespace = ?1 AND u.user_id = ?2 AND c.channel = ?3)`
	currentOfAll = `(SELECT session_row FROM current_sessions WHERE namespace = ?1 AND user_row = 0 AND ?2 = ?2 AND channel = ?3)`
)

// currentSession is the session that is meant when a request names none, or nil. The user is among those named in it.
func currentSession(ctx context.Context, q sqldb.Querier, namespace, userID string, channel memory.Channel) (*sessionRow, error) {
	var places []string
	if userID != "" {
		places = append(places, currentOfUser)
	}
	if channel.Kind == memory.ChannelGroup {
		places = append(places, currentOfAll)
	}
	for _, place := range places {
		found, err := querySessions(ctx, q, `WHERE s.id IS NOT NULL AND s.row = `+place, namespace, userID, channelKey(channel))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && found[0].damage != nil {
			return nil, found[0].damage
		}
		if len(found) > 0 {
			return &found[0], found[0].name(ctx, q, userID)
		}
	}
	return nil, nil //nolint:nilnil // there is none, as in findSession
}

// setCurrent makes a session the current one of a user, or of everybody in a group.
func setCurrent(ctx context.Context, tx sqldb.Tx, s *sessionRow, userRow int64, channel memory.Channel) error {
	_, err := tx.Exec(ctx, `INSERT INTO current_sessions (namespace, user_row, channel, session_row) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT DO UPDATE SET session_row = ?4`, s.Namespace, userRow, channelKey(channel), s.row)
	return err
}

// Current implements session.Store.
func (s *Sessions) Current(ctx context.Context, v session.Viewer) (id string, err error) {
	err = s.db.Read(ctx, func(q sqldb.Querier) error {
		found, err := currentSession(ctx, q, v.Namespace, v.UserID, v.Channel)
		if id = ""; found != nil {
			id = found.ID
		}
		return err
	})
	return id, err
}

// Switch implements session.Store.
func (s *Sessions) Switch(ctx context.Context, v session.Viewer, sessionID string, at time.Time) (got session.Session, created bool, err error) {
	if v.UserID == "" {
		return got, false, memory.Invalid("scope.user_id", "is required: a current session is somebody's")
	}
	at = at.Truncate(time.Microsecond).UTC()
	user := memory.User{Namespace: v.Namespace, ID: v.UserID}
	err = s.rewrite(ctx, func(tx sqldb.Tx) error {
		got, created = session.Session{}, false
		if sessionID == "" {
			return leaveCurrent(ctx, tx, user, v.Channel)
		}
		found, err := sessionToWrite(ctx, tx, v, sessionID)
		if err != nil {
			return err
		}
		if found == nil {
			created = true
			scope := memory.Scope{Namespace: v.Namespace, UserID: v.UserID, Channel: v.Channel}
			if found, err = newSession(ctx, tx, scope, sessionID, nil, at); err != nil {
				return err
			}
		}
		if err := found.refused(v); err != nil {
			return err
		}
		userRow, err := EnsureUserRow(ctx, tx, user)
		if err != nil {
			return err
		}
		if err := found.join(ctx, tx, userRow); err != nil {
			return err
		}
		if err := found.save(ctx, tx); err != nil {
			return err
		}
		if err := setCurrent(ctx, tx, found, userRow, v.Channel); err != nil {
			return err
		}
		if found, err = findSession(ctx, tx, v.Namespace, found.Ref, v.UserID); err == nil {
			got = found.Session
		}
		return err
	})
	return got, created, err
}

// leaveCurrent leaves the user without a current session in the channel.
func leaveCurrent(ctx context.Context, tx sqldb.Tx, user memory.User, channel memory.Channel) error {
	userRow, err := UserRow(ctx, tx, user)
	if err != nil || userRow == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM current_sessions WHERE namespace = ? AND user_row = ? AND channel = ?`,
		user.Namespace, userRow, channelKey(channel))
	if err != nil {
		return err
	}
	return DropUserRow(ctx, tx, userRow)
}
