package sqlstore

import (
	"context"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// refSeparator stands in a session's ref between whose it is and its id. No id holds it: it is a control character.
const refSeparator = "\x1f"

// refOf is the ref of the session that a user begins in a channel: a group's sessions are the group's, others the user's.
func refOf(userID string, channel memory.Channel, id string) string {
	if channel.Kind == memory.ChannelGroup {
		return "g" + channel.ID + refSeparator + id
	}
	return "u" + userID + refSeparator + id
}

// sharedSessions are the sessions of an id in which a user takes part, as begun by others or in other channels. The one whose id is
// that of no session is found without a look at all the user's sessions.
const sharedSessions = `WHERE s.id IS NOT NULL AND EXISTS (SELECT 1 FROM sessions WHERE namespace = ?1 AND id = ?2 AND id IS NOT NULL)
	AND s.row IN (SELECT p.session_row FROM users u CROSS JOIN session_participants p ON p.user_row = u.id
		CROSS JOIN sessions o ON o.row = p.session_row WHERE u.namespace = ?1 AND u.user_id = ?3 AND o.id = ?2)
	ORDER BY s.visibility <> ?4, s.row`

// sessionsMeant are the sessions that a viewer may mean by an id, the likeliest first: the viewer's own, or in a group the group's;
// then those in which the user takes part. Whether the viewer sees one is for the caller to find out.
func sessionsMeant(ctx context.Context, q sqldb.Querier, v session.Viewer, id string) ([]sessionRow, error) {
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

// sessionToWrite is the session to which a viewer adds under an id, or nil when there is none yet: the viewer's own or the group's;
// outside of groups also one that another person began and in which the user takes part. Whether it may be added to is for the
// caller to find out.
func sessionToWrite(ctx context.Context, q sqldb.Querier, v session.Viewer, id string) (*sessionRow, error) {
	found, err := querySessions(ctx, q, `WHERE s.namespace = ? AND s.ref = ?`, v.Namespace, refOf(v.UserID, v.Channel, id))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && v.Channel.Kind != memory.ChannelGroup {
		if found, err = sessionsMeant(ctx, q, v, id); err != nil {
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

// findSession finds a session by its ref, or by an id that no other session of the namespace has; nil when there is none. Of more
// participants than a session names, the user is among those named.
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

// disown gives a session that others take part in a ref without the id of a user who leaves it.
func disown(ctx context.Context, tx sqldb.Tx, sessionRow, userRow int64) error {
	_, err := tx.Exec(ctx, `UPDATE sessions SET ref = 'r' || row || char(31) || id WHERE row = ?1 AND id IS NOT NULL
		AND ref = 'u' || (SELECT user_id FROM users WHERE id = ?2) || char(31) || id`, sessionRow, userRow)
	return err
}
