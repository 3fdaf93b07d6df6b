package server

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// GetTopics implements memsidecarv1.SessionServiceServer.
func (s *sessionService) GetTopics(ctx context.Context, r *memsidecarv1.GetTopicsRequest) (*memsidecarv1.GetTopicsResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	q := topics.Query{
		Namespace: scope.Namespace, SessionID: scope.SessionID, UserID: scope.UserID, Audience: viewer.Audience,
		After: toTime(r.GetAfterTime(), "after_time", &v), Before: toTime(r.GetBeforeTime(), "before_time", &v),
	}
	if q.Before.IsZero() {
		q.Before = s.options.Now()
	}
	most := limit(r.MaxTopics != nil, r.GetMaxTopics(), topics.DefaultTopics, 1, topics.MaxTopics, "max_topics", &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.Conversations.CheckEnabled(scope.Namespace); err != nil {
		return nil, err
	}
	if scope.SessionID != "" {
		found, err := s.Conversations.Get(ctx, viewer, scope.SessionID)
		if err != nil {
			return nil, err
		}
		q.SessionID = found.Ref
	}
	report, err := s.Topics.Count(ctx, q, most)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.GetTopicsResponse{MessageCount: int64(report.Messages), Truncated: report.Truncated}
	for _, topic := range report.Topics {
		resp.Topics = append(resp.Topics, &memsidecarv1.Topic{
			Text: topic.Text, MessageCount: int64(topic.Messages), PreviousCount: int64(topic.Previous), Score: topic.Score,
		})
	}
	return resp, nil
}
