package manage

import (
	"context"
	"errors"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
)

// SessionReceipt says what deleting a session deleted.
type SessionReceipt struct {
	session.Deleted
	Memories int64
}

// DeleteSession deletes a session that the viewer may write to, its pending jobs and traces, and on request the memories learned in it.
// Background work of the participants is blocked until the end, so that no job stores anything afterwards. The session itself is
// deleted last, so that an interrupted call can be repeated and completes the deletion.
func (e *Eraser) DeleteSession(ctx context.Context, v session.Viewer, id string, withMemories bool) (r SessionReceipt, err error) {
	if r, err = e.deleteSession(ctx, v, id, withMemories); err != nil {
		return r, err
	}
	// The session is deleted. A failed purge is not an error.
	_, _ = e.Purger.Purge(ctx)
	return r, nil
}

// deleteSession is DeleteSession without the purge. Jobs may run during the purge.
func (e *Eraser) deleteSession(ctx context.Context, v session.Viewer, id string, withMemories bool) (r SessionReceipt, err error) {
	if err := e.Policies.CheckEnabled(v.Namespace); err != nil {
		return r, err
	}
	s, err := e.Sessions.Get(ctx, v, id)
	if err != nil {
		return r, err
	}
	if why := v.MayWrite(&s); why != "" {
		return r, fmt.Errorf("%w: session %q cannot be deleted by this request: %s", memory.ErrPrecondition, id, why)
	}
	participants := s.Participants
	if len(participants) >= session.MaxNamed { // there may be more than it names
		if participants, err = e.Sessions.Participants(ctx, s.Namespace, s.Ref); err != nil {
			return r, err
		}
	}
	release, err := e.blockAll(ctx, s.Namespace, participants)
	if err != nil {
		return r, err
	}
	defer release()
	if withMemories {
		for _, participant := range participants {
			deleted, err := e.deleteLearned(ctx, memory.User{Namespace: s.Namespace, ID: participant}, &s)
			r.Memories += deleted
			if err != nil {
				return r, err
			}
		}
	}
	var users []string // owners of the session; empty for a group's, which all its members share
	if s.Channel.Kind != memory.ChannelGroup {
		if users = participants; len(users) == 0 {
			users = []string{""}
		}
	}
	if _, err := e.Traces.ForgetSession(ctx, s.Namespace, s.ID, s.Channel, users...); err != nil {
		return r, err
	}
	if err := e.Lists.ForgetSession(ctx, s.Namespace, s.ID, s.Channel, users...); err != nil {
		return r, err
	}
	if r.Deleted, err = e.Sessions.Delete(ctx, v, id); err != nil {
		return r, err
	}
	for _, participant := range participants {
		e.Memories.Rewrite(context.WithoutCancel(ctx), memory.User{Namespace: s.Namespace, ID: participant})
	}
	return r, nil
}

// deleteLearned deletes the memories about a user that were learned in a session.
func (e *Eraser) deleteLearned(ctx context.Context, user memory.User, s *session.Session) (deleted int64, err error) {
	err = each(ctx, e.Memories.Store, user, func(m memory.Memory) error {
		if m.SessionID != s.ID || m.Channel.VisibilityKey() != s.Channel.VisibilityKey() {
			return nil
		}
		err := e.Memories.remove(ctx, user, m.ID, memory.Everything())
		switch {
		case err == nil:
			deleted++
		case !errors.Is(err, memory.ErrNotFound): // else deleted concurrently
			return err
		}
		return nil
	})
	return deleted, err
}
