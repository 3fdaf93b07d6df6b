package server

import (
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

func fromSession(s *session.Session, windowExpiry time.Time) *memsidecarv1.Session {
	return &memsidecarv1.Session{
		Id: s.ID, Namespace: s.Namespace, ChannelId: s.Channel.ID, ChannelKind: channelKinds.toProto[s.Channel.Kind],
		ParticipantIds: s.Participants, AgentIds: s.Agents, Title: s.Title, MetadataJson: s.Metadata,
		MemorizeEvery: fromEvery(s.MemorizeEvery), MessageCount: s.Messages, UserMessageCount: s.UserMessages,
		UnconsideredCount: s.Unconsidered, FirstMessageTime: fromTime(s.FirstSaidAt), LastMessageTime: fromTime(s.LastSaidAt),
		CreateTime: fromTime(s.CreatedAt), UpdateTime: fromTime(s.UpdatedAt),
		WindowExpireTime: fromTime(windowExpiry),
	}
}

func fromSessionMessages(messages []session.Message) []*memsidecarv1.SessionMessage {
	list := make([]*memsidecarv1.SessionMessage, len(messages))
	for i := range messages {
		list[i] = fromSessionMessage(&messages[i])
	}
	return list
}

func fromSessionMessage(m *session.Message) *memsidecarv1.SessionMessage {
	return &memsidecarv1.SessionMessage{
		Message: fromMessage(&m.Message), SessionId: m.SessionID, Position: m.Position, ReceiveTime: fromTime(m.ReceivedAt),
		ConsiderationId: m.ConsiderationID, Withheld: m.Excluded != session.NotExcluded,
		WithheldReason: withheldReasons[m.Excluded],
	}
}

var withheldReasons = map[session.Exclusion]memsidecarv1.WithheldReason{
	session.WithheldFailure: memsidecarv1.WithheldReason_WITHHELD_REASON_FAILURE,
	session.WithheldClaim:   memsidecarv1.WithheldReason_WITHHELD_REASON_UNSUPPORTED_CLAIM,
}

func fromWithheld(messages []session.ExcludedMessage) (list []*memsidecarv1.WithheldMessage) {
	for _, m := range messages {
		list = append(list, &memsidecarv1.WithheldMessage{Position: m.Position, Reason: withheldReasons[m.Reason]})
	}
	return list
}

func fromSummary(s *session.Summary) *memsidecarv1.SessionSummary {
	if s == nil {
		return nil
	}
	return &memsidecarv1.SessionSummary{
		Text: s.Text, LastPosition: s.Last, MessageCount: s.Messages, MadeBy: s.MadeBy, UpdateTime: fromTime(s.At),
	}
}

// agentFilter returns the agent whose memories count; nil means all agents.
func agentFilter(p memsidecarv1.AgentFilter, scope memory.Scope, v *memory.Violations) *string {
	switch p {
	case memsidecarv1.AgentFilter_AGENT_FILTER_UNSPECIFIED, memsidecarv1.AgentFilter_AGENT_FILTER_ANY:
	case memsidecarv1.AgentFilter_AGENT_FILTER_THIS:
		if scope.AgentID == "" {
			v.Add("scope.agent_id", "is required with AGENT_FILTER_THIS")
		}
		return &scope.AgentID
	default:
		v.Add("agent", "is not a known filter")
	}
	return nil
}

// windowAgent is agentFilter for a window. Each agent has a default window of its own, which is used when no session is named. A named session
// may have several agents.
func windowAgent(p memsidecarv1.AgentFilter, scope memory.Scope, v *memory.Violations) *string {
	if p == memsidecarv1.AgentFilter_AGENT_FILTER_UNSPECIFIED && scope.SessionID == "" && scope.AgentID != "" {
		return &scope.AgentID
	}
	return agentFilter(p, scope, v)
}

// learnedBy is agentFilter for memories, where the default is configurable.
func (o *Options) learnedBy(p memsidecarv1.AgentFilter, scope memory.Scope, v *memory.Violations) *string {
	if p == memsidecarv1.AgentFilter_AGENT_FILTER_UNSPECIFIED && o.OwnAgent && scope.AgentID != "" {
		return &scope.AgentID
	}
	return agentFilter(p, scope, v)
}

// limit reads a number that may be unset.
func limit(set bool, value int32, usual, lowest, highest int, field string, v *memory.Violations) int {
	if !set {
		return usual
	}
	n := int(value)
	if n < lowest || n > highest {
		v.Add(field, "is not between %d and %d", lowest, highest)
	}
	return n
}
