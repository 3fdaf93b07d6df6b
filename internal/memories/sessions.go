package memories

import (
	"context"
	"errors"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// SessionReceipt says what deleting a session deleted.
type SessionReceipt struct {
	session.Deleted
	Memories int64
}

// DeleteSession deletes a session that the viewer may write to, with the jobs that wait and the traces, and if asked for the
// memories that came of it. Jobs of those who take part are barred meanwhile, so that none stores anything afterwards.
func (k *Keeper) DeleteSession(ctx context.Context, v session.Viewer, id string, withMemories bool) (r SessionReceipt, err error) {
	s, err := k.Sessions.Get(ctx, v, id)
	if err != nil {
		return r, err
	}
	for _, participant := range s.Participants {
		for _, jobs := range []Considerations{k.Considerations, k.DigestJobs} {
			release, err := jobs.Bar(ctx, memory.User{Namespace: s.Namespace, ID: participant})
			if err != nil {
				return r, err
			}
			defer release()
		}
	}
	if r.Deleted, err = k.Sessions.Delete(ctx, v, id); err != nil {
		return r, err
	}
	if _, err := k.Traces.ForgetSession(ctx, s.Namespace, s.ID, s.Channel); err != nil {
		return r, err
	}
	if !withMemories {
		return r, nil
	}
	for _, participant := range s.Participants {
		deleted, err := k.deleteLearned(ctx, memory.User{Namespace: s.Namespace, ID: participant}, &s)
		r.Memories += deleted
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// deleteLearned deletes what was learned about a user in a session.
func (k *Keeper) deleteLearned(ctx context.Context, user memory.User, s *session.Session) (deleted int64, err error) {
	query := vectorstore.ListQuery{
		Filter: vectorstore.Filter{Audience: memory.Everything()}, OldestFirst: true, Limit: pageSize,
	}
	for more := true; more; more = query.After != "" {
		page, err := k.Store.List(ctx, user, query)
		if err != nil {
			return deleted, err
		}
		for _, m := range page.Memories {
			if m.SessionID != s.ID || m.Channel.VisibilityKey() != s.Channel.VisibilityKey() {
				continue
			}
			err := k.Store.Delete(ctx, user, m.ID, memory.Everything())
			switch {
			case err == nil:
				deleted++
			case !errors.Is(err, memory.ErrNotFound): // somebody else was faster
				return deleted, err
			}
		}
		query.After = page.Next
	}
	return deleted, nil
}
