package sqlstore

import (
	"context"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// groupRow is the user row in current_sessions for the members of a group without a current session of their own.
const groupRow = 0

// channelKey identifies one channel. Unlike the visibility it distinguishes direct chats.
func channelKey(c memory.Channel) string { return string(c.Kind) + ":" + c.ID }

// The row of the session for a request without a session id: the user's current one, or the group's.
const (
	currentOfUser = `(SELECT c.session_row FROM users u JOIN current_sessions c ON c.namespace = u.namespace AND c.user_row = u.id
		WHERE u.namespace = ?1 AND u.user_id = ?2 AND c.channel = ?3)`
	currentOfAll = `(SELECT session_row FROM current_sessions WHERE namespace = ?1 AND user_row = 0 AND ?2 = ?2 AND channel = ?3)`
)

// currentSession returns the session for a request without a session id, or nil. The user is among its listed participants.
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

// setCurrent makes a session the current one of a user or of a group.
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
		return got, false, memory.Invalid("scope.user_id", "is required: a current session belongs to a user")
	}
	at = at.Truncate(time.Microsecond).UTC()
	user := memory.User{Namespace: v.Namespace, ID: v.UserID}
	err = s.rewrite(ctx, func(tx sqldb.Tx) error {
		got, created = session.Session{}, false
		if sessionID == "" {
			return clearCurrent(ctx, tx, user, v.Channel)
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

// clearCurrent clears the user's current session in the channel.
func clearCurrent(ctx context.Context, tx sqldb.Tx, user memory.User, channel memory.Channel) error {
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

// refSeparator separates the owner and the id in a session's ref. It is a control character, which no id contains.
const refSeparator = "\x1f"

// refOf returns the ref of a session: it contains the group for a group's session, else the user who starts it.
func refOf(userID string, channel memory.Channel, id string) string {
	if channel.Kind == memory.ChannelGroup {
		return "g" + channel.ID + refSeparator + id
	}
	return "u" + userID + refSeparator + id
}

// sharedSessions selects the sessions of an id in which a user takes part, started by others or in other channels. If no session has
// the id, the user's sessions are not read.
const sharedSessions = `WHERE s.id IS NOT NULL AND EXISTS (SELECT 1 FROM sessions WHERE namespace = ?1 AND id = ?2 AND id IS NOT NULL)
	AND s.row IN (SELECT p.session_row FROM users u CROSS JOIN session_participants p ON p.user_row = u.id
		CROSS JOIN sessions o ON o.row = p.session_row WHERE u.namespace = ?1 AND u.user_id = ?3 AND o.id = ?2)
	ORDER BY s.visibility <> ?4, s.row`

// matchingSessions returns the sessions that an id may mean to a viewer, likeliest first: the viewer's own, or in a group the group's;
// then those in which the user takes part. The caller checks whether the viewer may see one.
func matchingSessions(ctx context.Context, q sqldb.Querier, v session.Viewer, id string) ([]sessionRow, error) {
	found, err := querySessions(ctx, q, `WHERE s.namespace = ? AND s.ref = ?`, v.Namespace, refOf(v.UserID, v.Channel, id))
	if err != nil {
		return nil, err
	}
	var shared []sessionRow
	if v.UserID == "" {
		shared, err = querySessions(ctx, q, `WHERE s.namespace = ? AND s.id = ? AND s.participants = 0 AND s.channel_kind <> 'group'
			ORDER BY s.row LIMIT 10`, v.Namespace, id)
	} else {
		shared, err = querySessions(ctx, q, sharedSessions, v.Namespace, id, v.UserID, v.Channel.VisibilityKey())
	}
	if err != nil {
		return nil, err
	}
	for i := range shared {
		if len(found) == 0 || shared[i].row != found[0].row {
			found = append(found, shared[i])
		}
	}
	for i := range found {
		if found[i].damage != nil {
			return nil, found[i].damage
		}
		if err := found[i].name(ctx, q, v.UserID); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// sessionToWrite returns the session to which a viewer appends under an id, or nil: the viewer's own or the group's; outside groups
// also another user's session in which the viewer takes part. The caller checks whether the viewer may write to it.
func sessionToWrite(ctx context.Context, q sqldb.Querier, v session.Viewer, id string) (*sessionRow, error) {
	found, err := querySessions(ctx, q, `WHERE s.namespace = ? AND s.ref = ?`, v.Namespace, refOf(v.UserID, v.Channel, id))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && v.Channel.Kind != memory.ChannelGroup {
		if found, err = matchingSessions(ctx, q, v, id); err != nil {
			return nil, err
		}
	}
	for i := range found {
		if v.Channel.Kind == memory.ChannelGroup || found[i].Channel.Kind != memory.ChannelGroup {
			if found[i].damage != nil {
				return nil, found[i].damage
			}
			return &found[i], found[i].name(ctx, q, v.UserID)
		}
	}
	return nil, nil //nolint:nilnil // there is none, as in findSession
}

// findSession returns a session by its ref, or by an id that is unique in the namespace, or nil. If it has more participants than it
// lists, the user is among the listed ones.
func findSession(ctx context.Context, q sqldb.Querier, namespace, ref, userID string) (*sessionRow, error) {
	where := `WHERE s.namespace = ? AND s.ref = ?`
	if !strings.Contains(ref, refSeparator) {
		where = `WHERE s.namespace = ? AND s.id = ? LIMIT 2`
	}
	found, err := querySessions(ctx, q, where, namespace, ref)
	if err != nil || len(found) != 1 {
		return nil, err
	}
	if found[0].damage != nil {
		return nil, found[0].damage
	}
	return &found[0], found[0].name(ctx, q, userID)
}

// replaceRef replaces the ref of a session with other participants, if it contains the id of a leaving user.
func replaceRef(ctx context.Context, tx sqldb.Tx, sessionRow, userRow int64) error {
	_, err := tx.Exec(ctx, `UPDATE sessions SET ref = 'r' || row || char(31) || id WHERE row = ?1 AND id IS NOT NULL
		AND ref = 'u' || (SELECT user_id FROM users WHERE id = ?2) || char(31) || id`, sessionRow, userRow)
	return err
}
