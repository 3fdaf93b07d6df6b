package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// ask makes the unary call that takes this type of request.
func ask(t *testing.T, conn grpc.ClientConnInterface, request proto.Message) error {
	t.Helper()
	for _, method := range unaryMethods() {
		if method.Input().FullName() == request.ProtoReflect().Descriptor().FullName() {
			return conn.Invoke(t.Context(), sidecartest.FullName(method), request, sidecartest.NewMessage(t, method.Output()))
		}
	}
	t.Fatalf("no unary call takes a %T", request)
	return nil
}

// wrongScope returns a scope in which every field is invalid. wrongInScope lists the fields.
func wrongScope() *memsidecarv1.Scope {
	return &memsidecarv1.Scope{
		Namespace: "a//b", AgentId: strings.Repeat("x", 257), ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP,
		SessionId: "line\nbreak",
	}
}

func wrongInScope(also ...string) []string {
	return append(also, "scope.namespace", "scope.user_id", "scope.agent_id", "scope.channel_id", "scope.session_id")
}

// TestErrorNamesEveryWrongField: The author of a bot sees all mistakes at once.
func TestErrorNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	noTime := &timestamppb.Timestamp{Seconds: 1 << 60}
	oldTime := timestamppb.New(time.Date(1066, 10, 14, 0, 0, 0, 0, time.UTC))
	known := r.Create(t, sidecartest.Direct("u"), "Likes tea")
	for _, test := range []struct {
		request proto.Message
		wrong   []string
	}{
		{&memsidecarv1.RetrieveRequest{
			Scope: wrongScope(), TopK: proto.Int32(0), MinRelevance: new(1.5), MaxContextChars: proto.Int32(199),
			Kinds: []memsidecarv1.MemoryKind{99}, CreatedAfterTime: noTime, CreatedBeforeTime: noTime, Agent: 9,
		}, wrongInScope("query", "top_k", "min_relevance", "max_context_chars", "kinds", "created_after_time", "created_before_time", "agent")},
		{&memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "q", Agent: memsidecarv1.AgentFilter_AGENT_FILTER_THIS}, []string{"scope.agent_id"}},
		{
			&memsidecarv1.RetrieveRequest{
				Scope: sidecartest.Direct("u"), Query: strings.Repeat("问", 32_001), TopK: proto.Int32(101),
				MinRelevance: new(-0.1), MaxContextChars: proto.Int32(100_001),
			},
			[]string{"query", "top_k", "min_relevance", "max_context_chars"},
		},
		{
			&memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "q", TopK: proto.Int32(-1), Kinds: []memsidecarv1.MemoryKind{0}},
			[]string{"top_k", "kinds"},
		},
		{&memsidecarv1.ConsiderMemorizingRequest{
			Scope: wrongScope(), RequestId: strings.Repeat("x", 129), Wait: durationpb.New(-1), Messages: []*memsidecarv1.Message{
				{Content: "no role", SendTime: noTime, MetadataJson: "[]"},
				{
					Role: memsidecarv1.Role_ROLE_ASSISTANT, SpeakerId: "someone", Id: "one\ntwo",
					ToolCalls: []*memsidecarv1.ToolCall{{ArgumentsJson: "{", Duration: durationpb.New(-1), StartTime: oldTime}},
				},
			},
		}, wrongInScope("request_id", "wait", "messages[0].role", "messages[0].send_time", "messages[0].metadata_json", "messages[1].speaker_id",
			"messages[1].id", "messages[1].tool_calls[0].arguments_json", "messages[1].tool_calls[0].duration", "messages[1].tool_calls[0].start_time")},
		{&memsidecarv1.ConsiderMemorizingRequest{Scope: sidecartest.Direct("u")}, []string{"messages"}},
		// Messages without a speaker are not blamed for an invalid scope.
		{
			&memsidecarv1.ConsiderMemorizingRequest{
				Scope:    &memsidecarv1.Scope{UserId: "a\nb", AgentId: "c\td"},
				Messages: []*memsidecarv1.Message{sidecartest.Said("hi"), sidecartest.Answered("hi")},
			},
			[]string{"scope.user_id", "scope.agent_id"},
		},
		{&memsidecarv1.GetConsiderationRequest{Scope: wrongScope()}, wrongInScope("consideration_id")},
		{
			&memsidecarv1.ListConsiderationsRequest{Scope: wrongScope(), States: []memsidecarv1.ConsiderationState{99, 0}, PageSize: -1, PageToken: "?"},
			wrongInScope("states", "page_size", "page_token"),
		},
		{&memsidecarv1.RetryConsiderationRequest{Scope: wrongScope(), ConsiderationId: "\x01"}, wrongInScope("consideration_id")},
		{
			&memsidecarv1.CreateMemoryRequest{
				Scope: wrongScope(), RequestId: "\n",
				Memory: &memsidecarv1.Memory{Kind: 99, Importance: proto.Float64(2), ObserveTime: noTime},
			},
			wrongInScope("request_id", "memory.text", "memory.kind", "memory.importance", "memory.observe_time"),
		},
		{
			&memsidecarv1.CreateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{Text: strings.Repeat("字", 4001), ObserveTime: oldTime}},
			[]string{"memory.text", "memory.observe_time"},
		},
		{&memsidecarv1.GetMemoryRequest{Scope: wrongScope()}, wrongInScope("memory_id")},
		{
			&memsidecarv1.ListMemoriesRequest{Scope: wrongScope(), PageSize: -1, PageToken: "?", Filter: "kind", States: []memsidecarv1.MemoryState{1, 99}},
			wrongInScope("page_size", "page_token", "filter", "states[1]"),
		},
		{&memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u"), Filter: `state = "active"`, States: []memsidecarv1.MemoryState{2}}, []string{"filter"}},
		{
			&memsidecarv1.UpdateMemoryRequest{
				Scope:      wrongScope(),
				Memory:     &memsidecarv1.Memory{Kind: 99, Importance: proto.Float64(-1)},
				UpdateMask: sidecartest.Mask("text", "kind", "importance", "colour"),
			},
			wrongInScope("memory.id", "memory.text", "memory.kind", "memory.importance", "update_mask"),
		},
		{&memsidecarv1.UpdateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{Id: known.GetId()}}, []string{"update_mask"}},
		{&memsidecarv1.UpdateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{Id: known.GetId(), Text: "  "}}, []string{"memory.text"}},
		{&memsidecarv1.DeleteMemoryRequest{Scope: wrongScope()}, wrongInScope("memory_id")},
		{&memsidecarv1.ListMemoryRevisionsRequest{Scope: wrongScope()}, wrongInScope("memory_id")},
		{&memsidecarv1.RevertMemoryRequest{Scope: wrongScope(), RevisionId: "\n"}, wrongInScope("memory_id", "revision_id")},
		{&memsidecarv1.ReleaseMemoryRequest{Scope: wrongScope()}, wrongInScope("memory_id")},
		{&memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "q", ReadTime: noTime}, []string{"read_time"}},
		{&memsidecarv1.ListUsersRequest{
			Scope: sidecartest.WithoutChannel("u"), UserIdPrefix: "\n", Order: 9, PageSize: -1, PageToken: "?",
		}, []string{"scope.user_id", "user_id_prefix", "order", "page_size", "page_token"}},
		{&memsidecarv1.ListUsersRequest{UserIdPrefix: "u", Order: memsidecarv1.UserOrder_USER_ORDER_LAST_ACTIVE}, []string{"user_id_prefix"}},
		{&memsidecarv1.ListUsersRequest{Scope: sidecartest.Group("", "g")}, []string{"scope.channel_id", "scope.channel_kind"}},
		{&memsidecarv1.ForgetUserRequest{Scope: wrongScope()}, wrongInScope("scope.channel_kind")},
		{&memsidecarv1.GetUserSettingsRequest{Scope: wrongScope()}, wrongInScope()},
		{
			&memsidecarv1.UpdateUserSettingsRequest{
				Scope:      wrongScope(),
				Settings:   &memsidecarv1.UserSettings{TimeZone: "Mars/Olympus", Language: "not a language"},
				UpdateMask: sidecartest.Mask("time_zone", "language", "colour"),
			},
			wrongInScope("settings.time_zone", "settings.language", "update_mask"),
		},
		{&memsidecarv1.UpdateUserSettingsRequest{Scope: sidecartest.Direct("u")}, []string{"update_mask"}},
		{
			&memsidecarv1.UpdateUserSettingsRequest{Scope: sidecartest.Direct("u"), Settings: &memsidecarv1.UserSettings{TimeZone: "Local", Paused: true}},
			[]string{"settings.time_zone"},
		},
		{&memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: "a b", ChannelKind: 9}}, []string{"scope.namespace", "scope.channel_kind"}},
	} {
		t.Run(string(test.request.ProtoReflect().Descriptor().Name()), func(t *testing.T) {
			sidecartest.WantInvalid(t, ask(t, r.Conn, test.request), test.wrong...)
		})
	}
	_, err := sidecartest.Must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: wrongScope()}))(t).Recv()
	sidecartest.WantInvalid(t, err, wrongInScope("scope.channel_kind")...)
	_, err = r.Import(t, wrongScope())
	sidecartest.WantInvalid(t, err, wrongInScope()...)
	_, err = r.Import(t, sidecartest.Direct("u"), known, &memsidecarv1.Memory{
		Id: "\x00", Kind: 99, Importance: proto.Float64(7), ObserveTime: noTime, CreateTime: oldTime, Scope: wrongScope(),
		State: memsidecarv1.MemoryState_MEMORY_STATE_SUPERSEDED, ValidEndTime: oldTime, QuarantineReason: strings.Repeat("x", 2001),
	})
	sidecartest.WantInvalid(t, err, "memory[1].id", "memory[1].text", "memory[1].kind", "memory[1].importance", "memory[1].observe_time",
		"memory[1].superseded_by_id", "memory[1].quarantine_reason", "memory[1].valid_end_time",
		"memory[1].create_time", "memory[1].scope.agent_id", "memory[1].scope.channel_id", "memory[1].scope.session_id")
}

// TestErrorFitsInto8KiBOfHeaders: The gRPC libraries for C and Java refuse more than 8 KiB of headers.
func TestErrorFitsInto8KiBOfHeaders(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	conn := sidecartest.Must(
		grpc.NewClient(r.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithMaxHeaderListSize(8<<10)),
	)(
		t,
	)
	t.Cleanup(func() { _ = conn.Close() })
	everywhere := &memsidecarv1.ConsiderMemorizingRequest{Scope: sidecartest.Direct("u")}
	for range 1000 {
		everywhere.Messages = append(everywhere.Messages, &memsidecarv1.Message{Content: "without a role"})
	}
	for name, test := range map[string]struct {
		request proto.Message
		wrong   string
	}{
		"a thousand wrong fields": {everywhere, "messages[0].role"},
		"a long mask": {&memsidecarv1.UpdateUserSettingsRequest{
			Scope: sidecartest.Direct("u"), UpdateMask: sidecartest.Mask(strings.Repeat("很长", 100_000)),
		}, "update_mask"},
		"a long filter": {&memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u"), Filter: strings.Repeat("长", 600) + " = 1"}, "filter"},
		"a deep filter": {&memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u"), Filter: strings.Repeat("(", 1_000_000)}, "filter"},
	} {
		err := ask(t, conn, test.request)
		sidecartest.WantCode(t, err, codes.InvalidArgument)
		if fields := sidecartest.WrongFields(err); len(fields) == 0 || fields[0] != test.wrong {
			t.Errorf("%s: names %q, want %s", name, fields, test.wrong)
		}
	}
	if err := ask(t, conn, everywhere); !strings.Contains(err.Error(), "more wrong fields") ||
		!slices.Contains(sidecartest.WrongFields(err), "request") {
		t.Errorf("does not say that there is more: %v", err)
	}
}

func TestUnknownIDIsNotFound(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, id := range []string{"nothing", "mem_", "con_01a1fad3-97f5-7095-9a89-a5eb726b2cef", "' OR 1=1 --", "%", "😀"} {
		for _, request := range []proto.Message{
			&memsidecarv1.GetMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: id},
			&memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: id},
			&memsidecarv1.UpdateMemoryRequest{Scope: sidecartest.Direct("u"), Memory: &memsidecarv1.Memory{Id: id, Text: "x"}},
			&memsidecarv1.ListMemoryRevisionsRequest{Scope: sidecartest.Direct("u"), MemoryId: id},
			&memsidecarv1.RevertMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: id},
			&memsidecarv1.ReleaseMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: id},
			&memsidecarv1.GetConsiderationRequest{Scope: sidecartest.Direct("u"), ConsiderationId: id},
			&memsidecarv1.RetryConsiderationRequest{Scope: sidecartest.Direct("u"), ConsiderationId: id},
		} {
			sidecartest.WantCode(t, ask(t, r.Conn, request), codes.NotFound)
		}
	}
}

func TestRetryRefusesWhatDidNotFail(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, text := range []string{"I am allergic to peanuts.", "ok"} { // remembered, skipped
		c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said(text))
		err := ask(t, r.Conn, &memsidecarv1.RetryConsiderationRequest{Scope: sidecartest.Direct("u"), ConsiderationId: c.GetId()})
		sidecartest.WantCode(t, err, codes.FailedPrecondition)
	}
}

// TestPendingLimitOfAUser: Each user has a separate limit. The error says when to try again.
func TestPendingLimitOfAUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sidecartest.SeedConsideration(t, dir, sidecartest.Direct("u"), "waits", sidecartest.Stuck)
	r := sidecartest.ServeIn(t, dir, "queue.max_pending_per_user=2")
	request := &memsidecarv1.ConsiderMemorizingRequest{
		Scope:     sidecartest.Direct("u"),
		Messages:  []*memsidecarv1.Message{sidecartest.Said("hello")},
		RequestId: "second",
	}
	second := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t)
	_, err := r.ConsiderMemorizing(
		t.Context(),
		&memsidecarv1.ConsiderMemorizingRequest{
			Scope:    sidecartest.Direct("u"),
			Messages: []*memsidecarv1.Message{sidecartest.Said("hello")},
		},
	)
	sidecartest.WantCode(t, err, codes.ResourceExhausted)
	var delay time.Duration
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			delay = info.GetRetryDelay().AsDuration()
		}
	}
	if delay <= 0 {
		t.Errorf("does not say when to try again: %v", err)
	}
	// Repeating the same request adds nothing, so it is accepted.
	if again := sidecartest.Must(r.ConsiderMemorizing(t.Context(), request))(t); again.GetConsideration().
		GetId() !=
		second.GetConsideration().
			GetId() {
		t.Errorf("the same request is %s and then %s", second, again)
	}
	if c := r.Consider(
		t, sidecartest.Direct("other"), sidecartest.Said("I am allergic to peanuts."),
	); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Errorf("another user's is %s", c.GetState())
	}
	if n := len(r.Considerations(t, sidecartest.Direct("u"))); n != 2 {
		t.Errorf("%d considerations wait, want 2", n)
	}
}

// TestPageTokenBelongsToItsQuery: A page token is valid for its query only, with any page size.
func TestPageTokenBelongsToItsQuery(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for i := range 3 {
		r.Create(t, sidecartest.Direct("u"), fmt.Sprintf("Likes tea number %d", i))
	}
	first := &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("u"), PageSize: 1, Filter: "importance > 0.1"}
	token := sidecartest.Must(r.ListMemories(t.Context(), first))(t).GetNextPageToken()
	for name, change := range map[string]func(*memsidecarv1.ListMemoriesRequest){
		"filter":  func(q *memsidecarv1.ListMemoriesRequest) { q.Filter = "importance > 0.2" },
		"user":    func(q *memsidecarv1.ListMemoriesRequest) { q.Scope.UserId = "v" },
		"channel": func(q *memsidecarv1.ListMemoriesRequest) { q.Scope.ChannelKind = 0 },
		"token":   func(q *memsidecarv1.ListMemoriesRequest) { q.PageToken = token[1:] },
		"cut":     func(q *memsidecarv1.ListMemoriesRequest) { q.PageToken = token[:len(token)-4] },
		"longer":  func(q *memsidecarv1.ListMemoriesRequest) { q.PageToken += "AAAA" },
	} {
		request, _ := proto.Clone(first).(*memsidecarv1.ListMemoriesRequest)
		request.PageToken = token
		change(request)
		_, err := r.ListMemories(t.Context(), request)
		if got := sidecartest.WrongFields(err); len(got) != 1 || got[0] != "page_token" {
			t.Errorf("with another %s: %v", name, err)
		}
	}
	_, err := r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: sidecartest.Direct("u"), PageToken: token})
	sidecartest.WantInvalid(t, err, "page_token")
	first.PageToken, first.PageSize = token, 50
	if rest := sidecartest.Must(r.ListMemories(t.Context(), first))(t); len(rest.GetMemories()) != 2 || rest.GetNextPageToken() != "" {
		t.Errorf("with another page size: %d memories and token %q", len(rest.GetMemories()), rest.GetNextPageToken())
	}
}
