package session

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/topics"
)

// Topics counts what was talked about.
type Topics interface {
	Count(ctx context.Context, q topics.Query, limit int) (topics.Report, error)
}

// TopicsQuery selects the messages whose topics are counted.
type TopicsQuery struct {
	Viewer        Viewer
	UserID        string    // "": all users
	SessionID     string    // "": all sessions
	After, Before time.Time // a zero Before means now
	Limit         int       // of topics
}

// CountTopics counts the topics of messages that the viewer may see.
func (k *Service) CountTopics(ctx context.Context, q TopicsQuery) (topics.Report, error) {
	if err := k.CheckEnabled(q.Viewer.Namespace); err != nil {
		return topics.Report{}, err
	}
	counted := topics.Query{
		Namespace: q.Viewer.Namespace, UserID: q.UserID, Audience: q.Viewer.Audience, After: q.After, Before: q.Before,
	}
	if counted.Before.IsZero() {
		counted.Before = k.Now()
	}
	if q.SessionID != "" {
		found, err := k.Get(ctx, q.Viewer, q.SessionID)
		if err != nil {
			return topics.Report{}, err
		}
		counted.SessionID = found.Ref
	}
	return k.Topics.Count(ctx, counted, q.Limit)
}
