package server_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestConversationMemoryOfTheFirstDesign is the dialogue by which the first design explains conversation memory: no user, an id made by
// the first call, and the prompt block of the third.
func TestConversationMemoryOfTheFirstDesign(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.labels={ancestor_yan: 严氏先祖}")
	scope := &memsidecarv1.Scope{Namespace: "yantian/yantian-main", AgentId: "ancestor_yan"}
	turns := [][2]string{
		{"请问严氏家训有哪些？", "后生问得好。老夫当年定下家训十则：一曰孝悌为本，二曰耕读传家..."},
		{"第一条孝悌为本是什么意思？", "孝悌为本，乃是说孝顺父母、敬爱兄长是做人的根本..."},
		{"有什么具体的故事吗？", "说起孝悌，老夫想起一个故事..."},
	}
	var block string
	for i, turn := range turns {
		window, err := r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && window.GetPromptContext() != "" {
			t.Errorf("before anything was said there is %q", window.GetPromptContext())
		}
		block = window.GetPromptContext()
		resp := r.AppendTo(t, scope, sidecartest.Said(turn[0]), sidecartest.Answered(turn[1]))
		if resp.GetCreated() != (i == 0) || resp.GetSession().GetId() == "" {
			t.Errorf("turn %d: %v", i, resp)
		}
		scope = sidecartest.InSession(scope, resp.GetSession().GetId())
	}
	want := `【对话历史 - 仅供上下文参考，不作为事实依据】
以下是与用户的近期对话，帮助你理解用户的兴趣和问题背景。
注意：任何历史事实、人物、事件的信息必须从证据库中检索验证，不能仅凭对话历史回答。

用户: 请问严氏家训有哪些？
严氏先祖: 后生问得好。老夫当年定下家训十则：一曰孝悌为本，二曰耕读传家...
用户: 第一条孝悌为本是什么意思？
严氏先祖: 孝悌为本，乃是说孝顺父母、敬爱兄长是做人的根本...

【对话历史结束】`
	if block != want {
		t.Errorf("the block of the third turn is\n%s\nwant\n%s", block, want)
	}
	got, err := r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	s := got.GetSession()
	if s.GetMessageCount() != 6 || s.GetUserMessageCount() != 3 || len(got.GetRecentMessages()) != 6 ||
		s.GetFirstMessageTime().AsTime().After(s.GetLastMessageTime().AsTime()) || len(s.GetParticipantIds()) != 0 ||
		!slices.Equal(s.GetAgentIds(), []string{"ancestor_yan"}) {
		t.Errorf("the session is %v", got)
	}
	// Another site cannot reach it.
	other := proto.CloneOf(scope)
	other.Namespace = "yantian/another"
	if _, err := r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: other}); status.Code(err) != codes.NotFound {
		t.Errorf("another namespace gets %v", err)
	}
	if _, err := r.Sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: scope}); status.Code(err) != codes.NotFound {
		t.Errorf("after its deletion there is %v", err)
	}
	if again := r.AppendTo(t, scope, sidecartest.Said("还在吗？")); !again.GetCreated() || again.GetSession().GetMessageCount() != 1 {
		t.Errorf("the id cannot be used again: %v", again)
	}
}

// TestMessagesComeBackUnchanged: Messages of any content come back unchanged, after a restart, in pages and in an export.
func TestMessagesComeBackUnchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir)
	at := time.Date(2025, 12, 31, 10, 0, 1, 123456789, time.UTC)
	sent := []*memsidecarv1.Message{
		{
			Id:        "m1",
			Role:      memsidecarv1.Role_ROLE_USER,
			SpeakerId: "ann",
			AgentId:   "monitor",
			Content:   "帮我查看CPU使用率",
			SendTime:  timestamppb.New(at),
		},
		{
			Id: "m2", Role: memsidecarv1.Role_ROLE_ASSISTANT, AgentId: "monitor",
			Content: "让我查看一下系统资源使用情况\n\t\"引号\" \u2028 </tag> 👩‍👩‍👧", SendTime: timestamppb.New(at.Add(time.Nanosecond)),
			ToolCalls: []*memsidecarv1.ToolCall{{
				Id: "call-1", Name: "sys_monitor", ArgumentsJson: `{"metric": "cpu",  "big":9007199254740993, "f": 1.0, "e":1e2}`,
				Result: "CPU 使用率: 3.0%\n", Status: "success", Duration: durationpb.New(500 * time.Millisecond), StartTime: timestamppb.New(at.Add(time.Second)),
			}},
			MetadataJson: `{ "b": 1, "a": 123456789012345678901234567890, "a": 2 }`,
		},
		{Id: "m3", Role: memsidecarv1.Role_ROLE_TOOL, AgentId: "monitor", Content: "raw", SendTime: timestamppb.New(at)},
		{
			Id:       "m4",
			Role:     memsidecarv1.Role_ROLE_SYSTEM,
			AgentId:  "monitor",
			Content:  "be brief",
			SendTime: timestamppb.New(at.Add(-time.Hour)),
		},
	}
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	scope.AgentId = "monitor"
	r.AppendTo(t, scope, sent...)
	if again := r.AppendTo(t, scope, sent[1], sent[3]); again.GetAddedCount() != 0 || !slices.Equal(again.GetPositions(), []int64{2, 4}) {
		t.Errorf("sent again: %v", again)
	}
	changed := proto.CloneOf(sent[0])
	changed.Content = "something else"
	_, err := r.Sessions().
		AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{changed}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("the same id with other content: %v", err)
	}
	r.Stop()

	r = sidecartest.ServeIn(t, dir)
	page, err := r.Sessions().ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope, PageSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := r.Sessions().
		ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope, PageSize: 3, PageToken: page.GetNextPageToken()})
	if err != nil {
		t.Fatal(err)
	}
	about, exported := r.ExportSession(t, scope)
	if about.GetMessageCount() != 4 {
		t.Errorf("exported %v", about)
	}
	for name, got := range map[string][]*memsidecarv1.SessionMessage{"listed": append(page.GetMessages(), rest.GetMessages()...), "exported": exported} {
		if len(got) != len(sent) {
			t.Fatalf("%s %d messages of %d", name, len(got), len(sent))
		}
		for i, m := range got {
			if !proto.Equal(m.GetMessage(), sent[i]) || m.GetPosition() != int64(i+1) {
				t.Errorf("%s\n%v\nwant\n%v", name, m, sent[i])
			}
		}
	}
	if page.GetTotalSize() != 4 || rest.GetNextPageToken() != "" {
		t.Errorf("%d in all; after the second page: %q", page.GetTotalSize(), rest.GetNextPageToken())
	}
	text, err := r.Sessions().
		ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope, NewestFirst: true, RenderText: true, Language: "zh"})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"=== 对话历史 ===", "用户: 帮我查看CPU使用率", "sys_monitor", "CPU 使用率: 3.0%"} {
		if !strings.Contains(text.GetText(), part) {
			t.Errorf("%q is missing in the text:\n%s", part, text.GetText())
		}
	}
	if first := text.GetMessages()[0].GetMessage().GetId(); first != "m4" {
		t.Errorf("newest first begins with %s", first)
	}
}

// TestTwoBotsWriteToOneSession: Two bots write to one session concurrently. Nothing is lost, and each bot's messages keep their order.
func TestTwoBotsWriteToOneSession(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.memorize_every=0")
	const each = 60
	var both sync.WaitGroup
	for _, bot := range []string{"a", "b"} {
		both.Go(func() {
			scope := sidecartest.InSession(sidecartest.Group("ann", "g"), "s")
			scope.AgentId = bot
			for i := range each {
				m := sidecartest.Answered(fmt.Sprintf("%s %d", bot, i))
				m.Id = m.GetContent()
				for range 2 { // each is sent twice, as after a lost answer
					if _, err := r.Sessions().AppendMessages(
						t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{m}},
					); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	both.Wait()
	next := map[string]int{}
	for _, content := range r.History(t, sidecartest.InSession(sidecartest.Group("ann", "g"), "s")) {
		var i int
		var bot string
		if _, err := fmt.Sscanf(content, "%s %d", &bot, &i); err != nil || i != next[bot] {
			t.Fatalf("%q where %d of %q was to come", content, next[bot], bot)
		}
		next[bot]++
	}
	if next["a"] != each || next["b"] != each {
		t.Errorf("there are %v", next)
	}
}

// TestSessionIsVisibleToItsParticipants: A session is visible to its participants, in its channel.
func TestSessionIsVisibleToItsParticipants(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	r.AppendTo(
		t,
		sidecartest.InSession(sidecartest.Direct("ann"), "private"),
		sidecartest.Said("my secret is blue"),
		sidecartest.Answered("noted"),
	)
	r.AppendTo(t, sidecartest.InSession(sidecartest.Group("ann", "g"), "public"), sidecartest.Said("hello all"))
	r.AppendTo(t, sidecartest.InSession(sidecartest.Group("ben", "g"), "public"), sidecartest.Said("hello ann"))
	r.AppendTo(t, sidecartest.InSession(&memsidecarv1.Scope{}, "nobody"), sidecartest.Said("who am I"))
	sees := func(scope *memsidecarv1.Scope, session string) bool {
		t.Helper()
		_, err := r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: sidecartest.InSession(scope, session)})
		if code := status.Code(err); code != codes.OK && code != codes.NotFound {
			t.Fatal(err)
		}
		window, contextErr := r.Sessions().
			GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: sidecartest.InSession(scope, session)})
		if contextErr != nil || (len(window.GetMessages()) > 0) != (err == nil) {
			t.Errorf("%v sees %s: GetSession %v, GetContext %v (%v)", scope, session, err, window, contextErr)
		}
		return err == nil
	}
	for _, test := range []struct {
		scope   *memsidecarv1.Scope
		session string
		want    bool
	}{
		{sidecartest.Direct("ann"), "private", true},
		{sidecartest.Direct("ben"), "private", false},
		{sidecartest.Group("ann", "g"), "private", false},
		{&memsidecarv1.Scope{UserId: "ann"}, "private", false},
		{&memsidecarv1.Scope{}, "private", false},
		{sidecartest.Direct("ann"), "public", true},
		{sidecartest.Direct("eve"), "public", false},
		{sidecartest.Group("eve", "g"), "public", true}, // she reads along
		{sidecartest.Group("ann", "h"), "public", false},
		{&memsidecarv1.Scope{}, "nobody", true},
		{&memsidecarv1.Scope{UserId: "ann"}, "nobody", false},
	} {
		if got := sees(test.scope, test.session); got != test.want {
			t.Errorf("%v sees %s: %t", test.scope, test.session, got)
		}
	}
	// An id that other users or channels use is free for a new session. Another kind of channel of the same user is refused.
	_, err := r.Sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{
		Scope: sidecartest.InSession(&memsidecarv1.Scope{UserId: "ann"}, "private"), Messages: []*memsidecarv1.Message{sidecartest.Said("x")},
	})
	sidecartest.WantCode(t, err, codes.FailedPrecondition)
	list, err := r.Sessions().ListSessions(t.Context(), &memsidecarv1.ListSessionsRequest{Scope: sidecartest.Direct("ann")})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range list.GetSessions() {
		ids = append(ids, s.GetId())
	}
	if !slices.Equal(ids, []string{"public", "private"}) {
		t.Errorf("ann's sessions are %v", ids)
	}
	for _, scope := range []*memsidecarv1.Scope{
		sidecartest.InSession(sidecartest.Group("ann", "g"), "private"),
		sidecartest.InSession(&memsidecarv1.Scope{}, "private"),
	} {
		if !r.AppendTo(t, scope, sidecartest.Said("x")).GetCreated() {
			t.Errorf("%s wrote to ann's session", scope)
		}
	}
	resp, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.InSession(
			sidecartest.Direct("ben"),
			"private",
		), Messages: []*memsidecarv1.Message{sidecartest.Said("My name is Ben.")}, Wait: sidecartest.LongWait(),
	})
	if err != nil || resp.GetNotRecordedReason() != "" ||
		resp.GetConsideration().GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Errorf("considered: %v, %v", resp, err)
	}
	if got := r.History(t, sidecartest.InSession(sidecartest.Direct("ann"), "private")); len(got) != 2 {
		t.Errorf("ann's session became %q", got)
	}
}

// TestScopeWithoutSessionMeansTheCurrentOne: Without a session id, the current session of the channel is meant.
func TestScopeWithoutSessionMeansTheCurrentOne(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	first := r.AppendTo(t, sidecartest.Direct("ann"), sidecartest.Said("one")).GetSession().GetId()
	if again := r.AppendTo(t, sidecartest.Direct("ann"), sidecartest.Said("two")).GetSession().GetId(); again != first {
		t.Errorf("the second message is in %s, the first in %s", again, first)
	}
	if other := r.AppendTo(t, sidecartest.Direct("ben"), sidecartest.Said("one")).GetSession().GetId(); other == first {
		t.Error("another user is in the same session")
	}
	inGroup := r.AppendTo(t, sidecartest.Group("ann", "g"), sidecartest.Said("hello")).GetSession().GetId()
	if together := r.AppendTo(t, sidecartest.Group("ben", "g"), sidecartest.Said("hi")).GetSession().GetId(); together != inGroup ||
		together == first {
		t.Errorf("in a group they are in %s and %s", together, inGroup)
	}
	switched, err := r.Sessions().
		SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: sidecartest.InSession(sidecartest.Direct("ann"), "holiday")})
	if err != nil || !switched.GetCreated() {
		t.Fatalf("%v, %v", switched, err)
	}
	if now := r.AppendTo(t, sidecartest.Direct("ann"), sidecartest.Said("three")).GetSession().GetId(); now != "holiday" {
		t.Errorf("after the switch it is %s", now)
	}
	back, err := r.Sessions().
		SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: sidecartest.InSession(sidecartest.Direct("ann"), first)})
	if err != nil || back.GetCreated() || back.GetSession().GetMessageCount() != 2 {
		t.Errorf("back: %v, %v", back, err)
	}
	if got := r.History(t, sidecartest.Direct("ann")); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the current session has %q", got)
	}
	if _, err := r.Sessions().SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: sidecartest.Direct("ann")}); err != nil {
		t.Fatal(err)
	}
	if fresh := r.AppendTo(t, sidecartest.Direct("ann"), sidecartest.Said("four")); !fresh.GetCreated() {
		t.Errorf("without a current session: %v", fresh)
	}
}

// TestExportedSessionCanBeImported: An imported export becomes the same session elsewhere. Importing it where it came from adds nothing.
func TestExportedSessionCanBeImported(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.memorize_every=0")
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	scope.AgentId = "npc"
	withID := sidecartest.Said("with an id")
	withID.Id = "m1"
	r.AppendTo(t, scope, sidecartest.Said("哈哈"), sidecartest.Answered("怎么了？"), sidecartest.Said("哈哈"), withID)
	if _, err := r.Sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{
		Scope: scope, Session: &memsidecarv1.Session{Title: "笑", MetadataJson: `{"n": 1.0}`, MemorizeEvery: proto.Int32(7)},
	}); err != nil {
		t.Fatal(err)
	}
	about, messages := r.ExportSession(t, scope)
	for _, test := range []struct {
		to             string
		added, skipped int64
	}{{"s", 0, 4}, {"copy", 4, 0}, {"copy", 0, 4}} {
		stream, err := r.Sessions().ImportSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		requests := []*memsidecarv1.ImportSessionRequest{{Item: &memsidecarv1.ImportSessionRequest_Session{
			Session: &memsidecarv1.ImportedSession{Scope: sidecartest.InSession(sidecartest.Direct("ann"), test.to), Session: about},
		}}}
		for _, m := range messages {
			requests = append(
				requests,
				&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Message{Message: m.GetMessage()}},
			)
		}
		for _, request := range requests {
			if err := stream.Send(request); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := stream.CloseAndRecv()
		if err != nil || resp.GetAddedCount() != test.added || resp.GetSkippedCount() != test.skipped {
			t.Errorf("into %s: %v, %v", test.to, resp, err)
		}
	}
	copied, same := r.ExportSession(t, sidecartest.InSession(sidecartest.Direct("ann"), "copy"))
	if copied.GetTitle() != "笑" || copied.GetMetadataJson() != `{"n": 1.0}` || copied.GetMemorizeEvery() != 7 ||
		!proto.Equal(copied.GetCreateTime(), about.GetCreateTime()) || !proto.Equal(copied.GetUpdateTime(), about.GetUpdateTime()) {
		t.Errorf("the copy is %v, want %v", copied, about)
	}
	for i := range messages {
		if !proto.Equal(same[i].GetMessage(), messages[i].GetMessage()) {
			t.Errorf("%v became %v", messages[i], same[i])
		}
	}
	if copied.GetUnconsideredCount() != 0 {
		t.Errorf("imported messages are pending: %v", copied)
	}
}

// TestToolCallsDoNotFillTheWindow: Tool calls use no places in a window that does not show them.
func TestToolCallsDoNotFillTheWindow(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.max_messages=4")
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	calling := &memsidecarv1.Message{
		Role:      memsidecarv1.Role_ROLE_ASSISTANT,
		ToolCalls: []*memsidecarv1.ToolCall{{Name: "clock", ArgumentsJson: `{"zone":"x"}`}},
	}
	result := &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_TOOL, Content: "12:00"}
	for range 3 {
		r.AppendTo(t, scope, sidecartest.Said("What time is it?"), calling, result, sidecartest.Answered("It is noon."))
	}
	for _, test := range []struct {
		tools bool
		want  []string
	}{
		{false, []string{"What time is it?", "It is noon.", "What time is it?", "It is noon."}},
		{true, []string{"What time is it?", "", "12:00", "It is noon."}},
	} {
		window, err := r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope, IncludeTools: test.tools})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range window.GetMessages() {
			got = append(got, m.GetMessage().GetContent())
		}
		if !slices.Equal(got, test.want) || strings.Contains(window.GetPromptContext(), "zone") != test.tools {
			t.Errorf("with tools %t: %q in\n%s", test.tools, got, window.GetPromptContext())
		}
	}
}

// TestSummaryCoversWhatTheWindowDrops: For every window size, the summary immediately covers the messages that the window omits.
func TestSummaryCoversWhatTheWindowDrops(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.memorize_every=0")
	scope := sidecartest.InSession(sidecartest.Direct("小林"), "s")
	facts := []string{"我在杭州西湖边开了一家茶馆", "我每周三晚上去上海学小提琴", "我女儿明年要去成都读大学", "我养了一只叫年糕的橘猫", "我打算六月重新装修二楼", "我对花生和虾都过敏"}
	for _, fact := range facts {
		r.AppendTo(t, scope, sidecartest.Said(fact+"。"), sidecartest.Answered("好的。"))
	}
	for _, limit := range []int32{1, 2, 3, 6, 10, 11} {
		window, err := r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{
			Scope: scope, MaxMessages: new(limit), MaxTurns: new(int32(100)),
		})
		if err != nil {
			t.Fatal(err)
		}
		first := window.GetMessages()[0].GetPosition()
		if got := window.GetSummary(); window.GetDroppedCount() > 0 && got.GetLastPosition() != first-1 {
			t.Errorf("%d messages: they begin at %d, the summary ends at %d", limit, first, got.GetLastPosition())
		}
		for _, fact := range facts {
			if !strings.Contains(window.GetPromptContext(), fact) {
				t.Errorf("%d messages: %q is neither in the window nor in the summary:\n%s", limit, fact, window.GetPromptContext())
			}
		}
	}
}
