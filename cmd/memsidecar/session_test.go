package main

import (
	"errors"
	"fmt"
	"io"
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
)

// sessions is the running sidecar's session service.
func (r *running) sessions() memsidecarv1.SessionServiceClient {
	return memsidecarv1.NewSessionServiceClient(r.conn)
}

// within is the scope in a session.
func within(scope *memsidecarv1.Scope, session string) *memsidecarv1.Scope {
	scope = proto.CloneOf(scope)
	scope.SessionId = session
	return scope
}

// appendTo appends messages to a session and returns the answer.
func (r *running) appendTo(t *testing.T, scope *memsidecarv1.Scope, messages ...*memsidecarv1.Message) *memsidecarv1.AppendMessagesResponse {
	t.Helper()
	resp, err := r.sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// history returns the contents of a session's messages, oldest first.
func (r *running) history(t *testing.T, scope *memsidecarv1.Scope) []string {
	t.Helper()
	var contents []string
	request := &memsidecarv1.ListMessagesRequest{Scope: scope}
	for {
		page, err := r.sessions().ListMessages(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.GetMessages() {
			contents = append(contents, m.GetMessage().GetContent())
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return contents
		}
	}
}

// TestThreeTurns is the dialogue by which the first design explains its conversation memory: without a user, an id made by
// the first call, and the block for the prompt of the third.
func TestThreeTurns(t *testing.T) {
	r := serve(t, "session.labels={ancestor_yan: 严氏先祖}")
	scope := &memsidecarv1.Scope{Namespace: "yantian/yantian-main", AgentId: "ancestor_yan"}
	turns := [][2]string{
		{"请问严氏家训有哪些？", "后生问得好。老夫当年定下家训十则：一曰孝悌为本，二曰耕读传家..."},
		{"第一条孝悌为本是什么意思？", "孝悌为本，乃是说孝顺父母、敬爱兄长是做人的根本..."},
		{"有什么具体的故事吗？", "说起孝悌，老夫想起一个故事..."},
	}
	var block string
	for i, turn := range turns {
		window, err := r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && window.GetPromptContext() != "" {
			t.Errorf("before anything was said there is %q", window.GetPromptContext())
		}
		block = window.GetPromptContext()
		resp := r.appendTo(t, scope, said(turn[0]), answered(turn[1]))
		if resp.GetCreated() != (i == 0) || resp.GetSession().GetId() == "" {
			t.Errorf("turn %d: %v", i, resp)
		}
		scope = within(scope, resp.GetSession().GetId())
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
	got, err := r.sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	s := got.GetSession()
	if s.GetMessageCount() != 6 || s.GetUserMessageCount() != 3 || len(got.GetRecentMessages()) != 6 ||
		s.GetFirstMessageTime().AsTime().After(s.GetLastMessageTime().AsTime()) || len(s.GetParticipantIds()) != 0 ||
		!slices.Equal(s.GetAgentIds(), []string{"ancestor_yan"}) {
		t.Errorf("the session is %v", got)
	}
	// Another site has nothing of it, whatever it names.
	other := proto.CloneOf(scope)
	other.Namespace = "yantian/another"
	if _, err := r.sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: other}); status.Code(err) != codes.NotFound {
		t.Errorf("another namespace gets %v", err)
	}
	if _, err := r.sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: scope}); status.Code(err) != codes.NotFound {
		t.Errorf("after its deletion there is %v", err)
	}
	if again := r.appendTo(t, scope, said("还在吗？")); !again.GetCreated() || again.GetSession().GetMessageCount() != 1 {
		t.Errorf("the id cannot be used again: %v", again)
	}
}

// TestFullFidelity: whatever a message holds comes back as it was sent, over a restart, page by page and in an export.
func TestFullFidelity(t *testing.T) {
	dir := t.TempDir()
	r := serveIn(t, dir)
	at := time.Date(2025, 12, 31, 10, 0, 1, 123456789, time.UTC)
	sent := []*memsidecarv1.Message{
		{Id: "m1", Role: memsidecarv1.Role_ROLE_USER, SpeakerId: "ann", AgentId: "monitor", Content: "帮我查看CPU使用率", SendTime: timestamppb.New(at)},
		{
			Id: "m2", Role: memsidecarv1.Role_ROLE_ASSISTANT, AgentId: "monitor", Content: "让我查看一下系统资源使用情况\n\t\"引号\" \u2028 </tag> 👩‍👩‍👧", SendTime: timestamppb.New(at.Add(time.Nanosecond)),
			ToolCalls: []*memsidecarv1.ToolCall{{
				Id: "call-1", Name: "sys_monitor", ArgumentsJson: `{"metric": "cpu",  "big":9007199254740993, "f": 1.0, "e":1e2}`,
				Result: "CPU 使用率: 3.0%\n", Status: "success", Duration: durationpb.New(500 * time.Millisecond), StartTime: timestamppb.New(at.Add(time.Second)),
			}},
			MetadataJson: `{ "b": 1, "a": 123456789012345678901234567890, "a": 2 }`,
		},
		{Id: "m3", Role: memsidecarv1.Role_ROLE_TOOL, AgentId: "monitor", Content: "raw", SendTime: timestamppb.New(at)},
		{Id: "m4", Role: memsidecarv1.Role_ROLE_SYSTEM, AgentId: "monitor", Content: "be brief", SendTime: timestamppb.New(at.Add(-time.Hour))},
	}
	scope := within(direct("ann"), "s")
	scope.AgentId = "monitor"
	r.appendTo(t, scope, sent...)
	if again := r.appendTo(t, scope, sent[1], sent[3]); again.GetAddedCount() != 0 || !slices.Equal(again.GetPositions(), []int64{2, 4}) {
		t.Errorf("sent again: %v", again)
	}
	changed := proto.CloneOf(sent[0])
	changed.Content = "something else"
	_, err := r.sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{changed}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("the same id with other content: %v", err)
	}
	r.stop()

	r = serveIn(t, dir)
	page, err := r.sessions().ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope, PageSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := r.sessions().ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope, PageSize: 3, PageToken: page.GetNextPageToken()})
	if err != nil {
		t.Fatal(err)
	}
	about, exported := r.exportSession(t, scope)
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
	text, err := r.sessions().ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope, NewestFirst: true, RenderText: true, Language: "zh"})
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

// TestTwoBots: two bots write to one session at once; nothing is lost, and each one's messages keep their order.
func TestTwoBots(t *testing.T) {
	r := serve(t, "session.memorize_every=0")
	const each = 60
	var both sync.WaitGroup
	for _, bot := range []string{"a", "b"} {
		both.Go(func() {
			scope := within(group("ann", "g"), "s")
			scope.AgentId = bot
			for i := range each {
				m := answered(fmt.Sprintf("%s %d", bot, i))
				m.Id = m.GetContent()
				for range 2 { // each is sent twice, as after a lost answer
					if _, err := r.sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{m}}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	both.Wait()
	next := map[string]int{}
	for _, content := range r.history(t, within(group("ann", "g"), "s")) {
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

// TestSessionsKeepPeopleApart: a session is seen by those who take part in it, in its channel.
func TestSessionsKeepPeopleApart(t *testing.T) {
	r := serve(t)
	r.appendTo(t, within(direct("ann"), "private"), said("my secret is blue"), answered("noted"))
	r.appendTo(t, within(group("ann", "g"), "public"), said("hello all"))
	r.appendTo(t, within(group("ben", "g"), "public"), said("hello ann"))
	r.appendTo(t, within(&memsidecarv1.Scope{}, "nobody"), said("who am I"))
	sees := func(scope *memsidecarv1.Scope, session string) bool {
		t.Helper()
		_, err := r.sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: within(scope, session)})
		if code := status.Code(err); code != codes.OK && code != codes.NotFound {
			t.Fatal(err)
		}
		window, contextErr := r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: within(scope, session)})
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
		{direct("ann"), "private", true},
		{direct("ben"), "private", false},
		{group("ann", "g"), "private", false},
		{&memsidecarv1.Scope{UserId: "ann"}, "private", false},
		{&memsidecarv1.Scope{}, "private", false},
		{direct("ann"), "public", true},
		{direct("eve"), "public", false},
		{group("eve", "g"), "public", true}, // she reads along
		{group("ann", "h"), "public", false},
		{&memsidecarv1.Scope{}, "nobody", true},
		{&memsidecarv1.Scope{UserId: "ann"}, "nobody", false},
	} {
		if got := sees(test.scope, test.session); got != test.want {
			t.Errorf("%v sees %s: %t", test.scope, test.session, got)
		}
	}
	// The id of somebody else's session, or of one of another place, is free for a session of one's own. Another kind of channel of the
	// same user is refused.
	_, err := r.sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{
		Scope: within(&memsidecarv1.Scope{UserId: "ann"}, "private"), Messages: []*memsidecarv1.Message{said("x")},
	})
	wantCode(t, err, codes.FailedPrecondition)
	list, err := r.sessions().ListSessions(t.Context(), &memsidecarv1.ListSessionsRequest{Scope: direct("ann")})
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
	for _, scope := range []*memsidecarv1.Scope{within(group("ann", "g"), "private"), within(&memsidecarv1.Scope{}, "private")} {
		if !r.appendTo(t, scope, said("x")).GetCreated() {
			t.Errorf("%s wrote to ann's session", scope)
		}
	}
	resp, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: within(direct("ben"), "private"), Messages: []*memsidecarv1.Message{said("My name is Ben.")}, Wait: patiently(),
	})
	if err != nil || resp.GetNotRecordedReason() != "" || resp.GetConsideration().GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Errorf("considered: %v, %v", resp, err)
	}
	if got := r.history(t, within(direct("ann"), "private")); len(got) != 2 {
		t.Errorf("ann's session became %q", got)
	}
}

// TestCurrentSession: without a session id the user's current one of the channel is meant.
func TestCurrentSession(t *testing.T) {
	r := serve(t)
	first := r.appendTo(t, direct("ann"), said("one")).GetSession().GetId()
	if again := r.appendTo(t, direct("ann"), said("two")).GetSession().GetId(); again != first {
		t.Errorf("the second message is in %s, the first in %s", again, first)
	}
	if other := r.appendTo(t, direct("ben"), said("one")).GetSession().GetId(); other == first {
		t.Error("another user is in the same session")
	}
	inGroup := r.appendTo(t, group("ann", "g"), said("hello")).GetSession().GetId()
	if together := r.appendTo(t, group("ben", "g"), said("hi")).GetSession().GetId(); together != inGroup || together == first {
		t.Errorf("in a group they are in %s and %s", together, inGroup)
	}
	switched, err := r.sessions().SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: within(direct("ann"), "holiday")})
	if err != nil || !switched.GetCreated() {
		t.Fatalf("%v, %v", switched, err)
	}
	if now := r.appendTo(t, direct("ann"), said("three")).GetSession().GetId(); now != "holiday" {
		t.Errorf("after the switch it is %s", now)
	}
	back, err := r.sessions().SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: within(direct("ann"), first)})
	if err != nil || back.GetCreated() || back.GetSession().GetMessageCount() != 2 {
		t.Errorf("back: %v, %v", back, err)
	}
	if got := r.history(t, direct("ann")); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the current session has %q", got)
	}
	if _, err := r.sessions().SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: direct("ann")}); err != nil {
		t.Fatal(err)
	}
	if fresh := r.appendTo(t, direct("ann"), said("four")); !fresh.GetCreated() {
		t.Errorf("without a current session: %v", fresh)
	}
}

// TestMovedSession: what is exported can be taken in: elsewhere it becomes the same session, where it came from nothing is
// added.
func TestMovedSession(t *testing.T) {
	r := serve(t, "session.memorize_every=0")
	scope := within(direct("ann"), "s")
	scope.AgentId = "npc"
	withID := said("with an id")
	withID.Id = "m1"
	r.appendTo(t, scope, said("哈哈"), answered("怎么了？"), said("哈哈"), withID)
	if _, err := r.sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{
		Scope: scope, Session: &memsidecarv1.Session{Title: "笑", MetadataJson: `{"n": 1.0}`, MemorizeEvery: proto.Int32(7)},
	}); err != nil {
		t.Fatal(err)
	}
	about, messages := r.exportSession(t, scope)
	for _, test := range []struct {
		to             string
		added, skipped int64
	}{{"s", 0, 4}, {"copy", 4, 0}, {"copy", 0, 4}} {
		stream, err := r.sessions().ImportSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		requests := []*memsidecarv1.ImportSessionRequest{{Item: &memsidecarv1.ImportSessionRequest_Session{
			Session: &memsidecarv1.ImportedSession{Scope: within(direct("ann"), test.to), Session: about},
		}}}
		for _, m := range messages {
			requests = append(requests, &memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Message{Message: m.GetMessage()}})
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
	copied, same := r.exportSession(t, within(direct("ann"), "copy"))
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
		t.Errorf("what was taken in waits to be considered: %v", copied)
	}
}

func (r *running) exportSession(t *testing.T, scope *memsidecarv1.Scope) (about *memsidecarv1.Session, messages []*memsidecarv1.SessionMessage) {
	t.Helper()
	stream, err := r.sessions().ExportSession(t.Context(), &memsidecarv1.ExportSessionRequest{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	for {
		record, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return about, messages
		}
		if err != nil {
			t.Fatal(err)
		}
		if m := record.GetMessage(); m != nil {
			messages = append(messages, m)
		} else {
			about = record.GetSession()
		}
	}
}

// TestToolsInWindow: calls of tools take no places in a window that does not show them.
func TestToolsInWindow(t *testing.T) {
	r := serve(t, "session.max_messages=4")
	scope := within(direct("ann"), "s")
	calling := &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_ASSISTANT, ToolCalls: []*memsidecarv1.ToolCall{{Name: "clock", ArgumentsJson: `{"zone":"x"}`}}}
	result := &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_TOOL, Content: "12:00"}
	for range 3 {
		r.appendTo(t, scope, said("What time is it?"), calling, result, answered("It is noon."))
	}
	for _, test := range []struct {
		tools bool
		want  []string
	}{
		{false, []string{"What time is it?", "It is noon.", "What time is it?", "It is noon."}},
		{true, []string{"What time is it?", "", "12:00", "It is noon."}},
	} {
		window, err := r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope, IncludeTools: test.tools})
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

// TestNothingBetweenWindowAndSummary: whatever window is asked for, what it drops is in the summary at once.
func TestNothingBetweenWindowAndSummary(t *testing.T) {
	r := serve(t, "session.memorize_every=0")
	scope := within(direct("小林"), "s")
	facts := []string{"我在杭州西湖边开了一家茶馆", "我每周三晚上去上海学小提琴", "我女儿明年要去成都读大学", "我养了一只叫年糕的橘猫", "我打算六月重新装修二楼", "我对花生和虾都过敏"}
	for _, fact := range facts {
		r.appendTo(t, scope, said(fact+"。"), answered("好的。"))
	}
	for _, limit := range []int32{1, 2, 3, 6, 10, 11} {
		window, err := r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{
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
