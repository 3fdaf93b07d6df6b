package server

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// names maps between the values of an API enum and those of the domain.
type names[P, D comparable] struct {
	toProto  map[D]P
	toDomain map[P]D
}

func newNames[P, D comparable](pairs map[P]D) names[P, D] {
	n := names[P, D]{toProto: map[D]P{}, toDomain: pairs}
	for p, d := range pairs {
		n.toProto[d] = p
	}
	return n
}

var (
	channelKinds = newNames(map[memsidecarv1.ChannelKind]memory.ChannelKind{
		memsidecarv1.ChannelKind_CHANNEL_KIND_UNSPECIFIED: memory.ChannelUnspecified,
		memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT:      memory.ChannelDirect,
		memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP:       memory.ChannelGroup,
	})
	roles = newNames(map[memsidecarv1.Role]memory.Role{
		memsidecarv1.Role_ROLE_USER:      memory.RoleUser,
		memsidecarv1.Role_ROLE_ASSISTANT: memory.RoleAssistant,
		memsidecarv1.Role_ROLE_SYSTEM:    memory.RoleSystem,
		memsidecarv1.Role_ROLE_TOOL:      memory.RoleTool,
	})
	kinds = newNames(map[memsidecarv1.MemoryKind]memory.Kind{
		memsidecarv1.MemoryKind_MEMORY_KIND_FACT:         memory.KindFact,
		memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE:   memory.KindPreference,
		memsidecarv1.MemoryKind_MEMORY_KIND_RELATIONSHIP: memory.KindRelationship,
		memsidecarv1.MemoryKind_MEMORY_KIND_PLAN:         memory.KindPlan,
		memsidecarv1.MemoryKind_MEMORY_KIND_APPOINTMENT:  memory.KindAppointment,
		memsidecarv1.MemoryKind_MEMORY_KIND_DECISION:     memory.KindDecision,
		memsidecarv1.MemoryKind_MEMORY_KIND_EXPERIENCE:   memory.KindExperience,
		memsidecarv1.MemoryKind_MEMORY_KIND_TASK:         memory.KindTask,
		memsidecarv1.MemoryKind_MEMORY_KIND_PROBLEM:      memory.KindProblem,
		memsidecarv1.MemoryKind_MEMORY_KIND_REQUEST:      memory.KindRequest,
	})
	sources = newNames(map[memsidecarv1.MemorySource]memory.Source{
		memsidecarv1.MemorySource_MEMORY_SOURCE_DIALOGUE: memory.SourceDialogue,
		memsidecarv1.MemorySource_MEMORY_SOURCE_API:      memory.SourceAPI,
		memsidecarv1.MemorySource_MEMORY_SOURCE_IMPORT:   memory.SourceImport,
	})
	states = newNames(map[memsidecarv1.ConsiderationState]memory.State{
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING:    memory.StatePending,
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_RUNNING:    memory.StateRunning,
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED: memory.StateRemembered,
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED:    memory.StateSkipped,
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED:     memory.StateFailed,
	})
	actions = newNames(map[memsidecarv1.MemoryAction]memory.Action{
		memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED:        memory.ActionAdded,
		memsidecarv1.MemoryAction_MEMORY_ACTION_REINFORCED:   memory.ActionReinforced,
		memsidecarv1.MemoryAction_MEMORY_ACTION_LEFT_DELETED: memory.ActionLeftDeleted,
		memsidecarv1.MemoryAction_MEMORY_ACTION_UPDATED:      memory.ActionUpdated,
		memsidecarv1.MemoryAction_MEMORY_ACTION_OUTDATED:     memory.ActionOutdated,
		memsidecarv1.MemoryAction_MEMORY_ACTION_WITHDRAWN:    memory.ActionWithdrawn,
		memsidecarv1.MemoryAction_MEMORY_ACTION_QUARANTINED:  memory.ActionQuarantined,
		memsidecarv1.MemoryAction_MEMORY_ACTION_NOT_FOUND:    memory.ActionNotFound,
	})
	standings = newNames(map[memsidecarv1.Standing]memory.StandingClass{
		memsidecarv1.Standing_STANDING_ADDRESS: memory.StandingAddress,
		memsidecarv1.Standing_STANDING_STYLE:   memory.StandingStyle,
		memsidecarv1.Standing_STANDING_SAFETY:  memory.StandingSafety,
	})
	memoryStates = newNames(map[memsidecarv1.MemoryState]memory.Status{
		memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE:      memory.StatusActive,
		memsidecarv1.MemoryState_MEMORY_STATE_SUPERSEDED:  memory.StatusSuperseded,
		memsidecarv1.MemoryState_MEMORY_STATE_EXPIRED:     memory.StatusExpired,
		memsidecarv1.MemoryState_MEMORY_STATE_QUARANTINED: memory.StatusQuarantined,
		memsidecarv1.MemoryState_MEMORY_STATE_WITHDRAWN:   memory.StatusWithdrawn,
	})
)

// scopeOf converts and checks a request's scope.
func scopeOf(p *memsidecarv1.Scope, needsUser bool, v *memory.Violations) memory.Scope {
	s := toScope(p)
	*v = append(*v, s.Validate("scope", needsUser)...)
	return s
}

func toScope(p *memsidecarv1.Scope) memory.Scope {
	kind, ok := channelKinds.toDomain[p.GetChannelKind()]
	if !ok {
		kind = memory.ChannelKind(p.GetChannelKind().String()) // unknown values are rejected by Validate
	}
	return memory.Scope{
		Namespace: p.GetNamespace(), UserID: p.GetUserId(), AgentID: p.GetAgentId(),
		Channel: memory.Channel{Kind: kind, ID: p.GetChannelId()}, SessionID: p.GetSessionId(),
	}.Normalize()
}

func fromScope(s memory.Scope) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{
		Namespace: s.Namespace, UserId: s.UserID, AgentId: s.AgentID, ChannelId: s.Channel.ID,
		ChannelKind: channelKinds.toProto[s.Channel.Kind], SessionId: s.SessionID,
	}
}

// toTime converts a time; unset becomes the zero time.
func toTime(p *timestamppb.Timestamp, field string, v *memory.Violations) time.Time {
	if p == nil {
		return time.Time{}
	}
	if !p.IsValid() {
		v.Add(field, "is not a valid time")
		return time.Time{}
	}
	if p.AsTime().IsZero() { // some languages' zero time; here it would mean unset
		v.Add(field, "is in the year 1: leave it unset when there is no time")
	}
	return p.AsTime()
}

func fromTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func toDuration(p *durationpb.Duration, field string, v *memory.Violations) time.Duration {
	if p == nil {
		return 0
	}
	if !p.IsValid() {
		v.Add(field, "is not a valid duration")
		return 0
	}
	return p.AsDuration()
}

func fromDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// toDurationPointer converts a duration for which unset and 0 differ.
func toDurationPointer(p *durationpb.Duration, field string, v *memory.Violations) *time.Duration {
	if p == nil {
		return nil
	}
	d := toDuration(p, field, v)
	return &d
}

func fromDurationPointer(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(*d)
}

// toMessages converts messages to the form in which they are stored.
func toMessages(list []*memsidecarv1.Message, v *memory.Violations) []memory.Message {
	messages := make([]memory.Message, len(list))
	for i, p := range list {
		messages[i] = toMessage(p, fmt.Sprintf("messages[%d]", i), v)
	}
	return messages
}

func toMessage(p *memsidecarv1.Message, at string, v *memory.Violations) memory.Message {
	m := memory.Message{
		ID: p.GetId(), Role: roles.toDomain[p.GetRole()], Speaker: p.GetSpeakerId(), AgentID: p.GetAgentId(),
		Content: p.GetContent(), Time: toTime(p.GetSendTime(), at+".send_time", v), Metadata: p.GetMetadataJson(),
	}
	for j, call := range p.GetToolCalls() {
		in := fmt.Sprintf("%s.tool_calls[%d]", at, j)
		m.Tools = append(m.Tools, memory.ToolCall{
			ID: call.GetId(), Name: call.GetName(), Arguments: call.GetArgumentsJson(), Result: call.GetResult(),
			Status: call.GetStatus(), Duration: toDurationPointer(call.GetDuration(), in+".duration", v),
			Time: toTime(call.GetStartTime(), in+".start_time", v),
		})
	}
	return m
}

func fromMessages(messages []memory.Message) []*memsidecarv1.Message {
	list := make([]*memsidecarv1.Message, len(messages))
	for i := range messages {
		list[i] = fromMessage(&messages[i])
	}
	return list
}

func fromMessage(m *memory.Message) *memsidecarv1.Message {
	return &memsidecarv1.Message{
		Id: m.ID, Role: roles.toProto[m.Role], SpeakerId: m.Speaker, AgentId: m.AgentID, Content: m.Content,
		SendTime: fromTime(m.Time), MetadataJson: m.Metadata, ToolCalls: fromToolCalls(m.Tools),
	}
}

func fromToolCalls(calls []memory.ToolCall) []*memsidecarv1.ToolCall {
	var list []*memsidecarv1.ToolCall
	for _, call := range calls {
		list = append(list, &memsidecarv1.ToolCall{
			Id: call.ID, Name: call.Name, ArgumentsJson: call.Arguments, Result: call.Result, Status: call.Status,
			Duration: fromDurationPointer(call.Duration), StartTime: fromTime(call.Time),
		})
	}
	return list
}

// fromMemory is a memory with its state at a time.
func fromMemory(m *memory.Memory, at time.Time) *memsidecarv1.Memory {
	return &memsidecarv1.Memory{
		Id: m.ID, Text: m.Text, Kind: kinds.toProto[m.Kind], Standing: standings.toProto[m.Standing], Importance: &m.Importance, Explicit: m.Explicit,
		Language: m.Language,
		Scope: fromScope(memory.Scope{
			Namespace: m.User.Namespace, UserID: m.User.ID, AgentID: m.AgentID, Channel: m.Channel, SessionID: m.SessionID,
		}),
		Provenance: &memsidecarv1.Provenance{
			Source: sources.toProto[m.Provenance.Source], ConsiderationId: m.Provenance.ConsiderationID,
			SpeakerId: m.Provenance.SpeakerID, MessageIds: m.Provenance.MessageIDs, Quote: m.Provenance.Quote,
			Reason: m.Provenance.Reason, DecidedBy: m.Provenance.DecidedBy,
			Question: m.Provenance.Question, Slot: m.Provenance.Slot, Dates: m.Provenance.Dates,
		},
		CreateTime: fromTime(m.CreatedAt), UpdateTime: fromTime(m.UpdatedAt), ObserveTime: fromTime(m.ObservedAt),
		MentionCount: clamped(m.Mentions), LastMentionTime: fromTime(m.LastSaidAt),
		UseCount: m.UseCount, LastUseTime: fromTime(m.LastUsedAt),
		State: memoryStates.toProto[m.StatusAt(at)], ValidStartTime: fromTime(m.HoldsSince()), ValidEndTime: fromTime(m.ValidTo),
		SupersededById: m.SupersededBy, QuarantineReason: m.Quarantine,
	}
}

// toMemory converts an imported memory. The names of invalid fields begin with at.
func toMemory(p *memsidecarv1.Memory, at string, v *memory.Violations) memory.Memory {
	scope := toScope(p.GetScope())
	source := p.GetProvenance()
	m := memory.Memory{
		ID: p.GetId(), AgentID: scope.AgentID, Channel: scope.Channel, SessionID: scope.SessionID,
		Text: p.GetText(), Kind: toKind(p.GetKind(), at+".kind", v), Importance: importance(p),
		Standing: toStanding(p.GetStanding(), at+".standing", v), Explicit: p.GetExplicit(), Language: p.GetLanguage(),
		Provenance: memory.Provenance{
			Source: sources.toDomain[source.GetSource()], ConsiderationID: source.GetConsiderationId(),
			SpeakerID: source.GetSpeakerId(), MessageIDs: source.GetMessageIds(), Quote: source.GetQuote(),
			Reason: source.GetReason(), DecidedBy: source.GetDecidedBy(),
			Question: source.GetQuestion(), Slot: source.GetSlot(), Dates: source.GetDates(),
		},
		CreatedAt:  toTime(p.GetCreateTime(), at+".create_time", v),
		UpdatedAt:  toTime(p.GetUpdateTime(), at+".update_time", v),
		ObservedAt: toTime(p.GetObserveTime(), at+".observe_time", v),
		Mentions:   int(p.GetMentionCount()),
		LastSaidAt: toTime(p.GetLastMentionTime(), at+".last_mention_time", v),
		ValidFrom:  toTime(p.GetValidStartTime(), at+".valid_start_time", v), ValidTo: toTime(p.GetValidEndTime(), at+".valid_end_time", v),
		SupersededBy: p.GetSupersededById(), Quarantine: p.GetQuarantineReason(),
	}
	// The state follows from the other fields, except for withdrawn memories, which are not imported.
	switch status := memoryStates.toDomain[p.GetState()]; {
	case status == memory.StatusWithdrawn:
		m.WithdrawnAt = time.Now()
	case status == memory.StatusSuperseded && m.SupersededBy == "":
		v.Add(at+".superseded_by_id", "is required in this state: name the memory that replaced it")
	case status == memory.StatusExpired && m.ValidTo.IsZero():
		v.Add(at+".valid_end_time", "is required in this state: say when it stopped being true")
	case status == memory.StatusQuarantined && m.Quarantine == "":
		v.Add(at+".quarantine_reason", "is required in this state: say why it is not trusted")
	}
	return m
}

// clamped converts a count to int32 and limits it to that range.
func clamped(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

const (
	defaultKind       = memory.KindFact
	defaultImportance = 0.5
)

func importance(p *memsidecarv1.Memory) float64 {
	if p == nil || p.Importance == nil {
		return defaultImportance
	}
	return p.GetImportance()
}

// toKind converts a kind; unset means the default.
func toKind(p memsidecarv1.MemoryKind, field string, v *memory.Violations) memory.Kind {
	if p == memsidecarv1.MemoryKind_MEMORY_KIND_UNSPECIFIED {
		return defaultKind
	}
	kind, ok := kinds.toDomain[p]
	if !ok {
		v.Add(field, "is %d, which is not a known kind", p)
		return defaultKind
	}
	return kind
}

// toStanding converts a standing; unset means none.
func toStanding(p memsidecarv1.Standing, field string, v *memory.Violations) memory.StandingClass {
	class, ok := standings.toDomain[p]
	if !ok && p != memsidecarv1.Standing_STANDING_UNSPECIFIED {
		v.Add(field, "is %d, which is not a known standing", p)
	}
	return class
}

func fromConsideration(c memory.Consideration) *memsidecarv1.Consideration {
	return &memsidecarv1.Consideration{
		Id: c.ID, Scope: fromScope(c.Scope), State: states.toProto[c.State], Reason: c.Outcome.Reason,
		Error: c.Outcome.Error, AttemptCount: clamped(c.Attempts), NextAttemptTime: fromTime(c.NextAttemptAt),
		MessageCount: clamped(c.MessageCount), CreateTime: fromTime(c.CreatedAt), UpdateTime: fromTime(c.UpdatedAt),
		DecidedBy: c.Outcome.DecidedBy, Changes: fromChanges(c.Outcome.Changes), FallbackReason: c.Outcome.Fallback,
		DroppedChanges: c.Outcome.Dropped, ForgetEverything: c.Outcome.ForgetEverything,
	}
}

func fromChanges(changes []memory.MemoryChange) []*memsidecarv1.MemoryChange {
	var list []*memsidecarv1.MemoryChange
	for _, change := range changes {
		list = append(list, &memsidecarv1.MemoryChange{
			MemoryId: change.MemoryID, Action: actions.toProto[change.Action], Text: change.Text,
			RelatedMemoryIds: change.Related, Reason: change.Reason,
		})
	}
	return list
}

func fromSettings(s memory.Settings) *memsidecarv1.UserSettings {
	return &memsidecarv1.UserSettings{
		TimeZone: s.TimeZone, Language: s.Language, Paused: s.Paused, MemorizeEvery: fromEvery(s.MemorizeEvery),
		UpdateTime: fromTime(s.UpdatedAt),
	}
}

// fromEvery converts a number of messages that may be unset.
func fromEvery(every *int) *int32 {
	if every == nil {
		return nil
	}
	n := clamped(*every)
	return &n
}

func toEvery(set bool, value int32) *int {
	if !set {
		return nil
	}
	return new(int(value))
}
