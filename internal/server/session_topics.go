package server

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// GetTopics implements memsidecarv1.SessionServiceServer.
func (s *sessionService) GetTopics(ctx context.Context, r *memsidecarv1.GetTopicsRequest) (*memsidecarv1.GetTopicsResponse, error) {
	var v memory.Violations
	scope, viewer := s.sessionScope(r.GetScope(), &v)
	q := session.TopicsQuery{
		Viewer: viewer, UserID: scope.UserID, SessionID: scope.SessionID,
		After: toTime(r.GetAfterTime(), "after_time", &v), Before: toTime(r.GetBeforeTime(), "before_time", &v),
	}
	q.Limit = limit(r.MaxTopics != nil, r.GetMaxTopics(), topics.DefaultTopics, 1, topics.MaxTopics, "max_topics", &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	report, err := s.Conversations.CountTopics(ctx, q)
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
