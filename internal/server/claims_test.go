package server_test

import (
	"slices"
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestInventedResultsStayOutOfTheWindow: While a numbered list is shown, a short reply without a tool call is recorded but kept out of
// the next window if it claims something that is neither in the list nor in a tool's result. This is the default. True claims and
// ordinary replies stay in the window.
func TestInventedResultsStayOutOfTheWindow(t *testing.T) {
	t.Parallel()
	const claim = memsidecarv1.WithheldReason_WITHHELD_REASON_UNSUPPORTED_CLAIM
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("小林")
	scope.SessionId = "telegram_1"
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(12)})
	say := func(scope *memsidecarv1.Scope, question, reply string) *memsidecarv1.AppendMessagesResponse {
		t.Helper()
		return sidecartest.Must(r.Sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{
			Scope: scope, Messages: []*memsidecarv1.Message{sidecartest.Said(question), sidecartest.Answered(reply)},
		}))(t)
	}
	say(scope, "查询最新的电影信息", "最新影片列表：\n1. 得闲谨制\n2. 镖人\n3. 惊变28年2：白骨圣殿")
	window := func(scope *memsidecarv1.Scope) []string {
		t.Helper()
		var texts []string
		for _, m := range sidecartest.Must(r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope}))(t).GetMessages() {
			texts = append(texts, m.GetMessage().GetContent())
		}
		return texts
	}
	for reply, want := range map[string]bool{
		"第三部的链接：https://www.gying.org/movies/45776":  true,
		"第三部的链接：https://www.gying.org/mv/823D":       false,
		"Here is the link: https://example.org/mv/9": true,
		"你选的是第3部《惊变28年2：白骨圣殿》。":                      false,
		"好的，还需要别的吗？":                                 false,
	} {
		done := say(scope, "3", reply)
		got := len(done.GetWithheld()) == 1 && done.GetWithheld()[0].GetReason() == claim && done.GetWithheld()[0].GetPosition() == done.GetPositions()[1]
		if got != want || slices.Contains(window(scope), reply) == want {
			t.Errorf("%q: withheld %v; the window is %q", reply, done.GetWithheld(), window(scope))
		}
		all := sidecartest.Must(r.Sessions().ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope, NewestFirst: true, PageSize: 1}))(t)
		if m := all.GetMessages()[0]; m.GetMessage().GetContent() != reply || m.GetWithheld() != want || (m.GetWithheldReason() == claim) != want {
			t.Errorf("%q is recorded as %s", reply, m)
		}
	}
	// Dialogues sent to ConsiderMemorizing are checked, too.
	const invented = "已找到第三部的资源，下载链接：https://www.gying.org/movies/45777"
	r.Consider(t, scope, sidecartest.Said("3的链接"), sidecartest.Answered(invented))
	if slices.Contains(window(scope), invented) {
		t.Error("a considered reply with a made-up URL is in the window")
	}
	// A tool's result is true. Without a shown list nothing is checked.
	tool := &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_TOOL, Content: `{"url": "https://cdn.example/f/77"}`}
	sidecartest.Must(r.Sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{
		Scope: scope, Messages: []*memsidecarv1.Message{sidecartest.Said("再查一下"), tool, sidecartest.Answered("查到了。")},
	}))(t)
	if done := say(scope, "链接呢", "链接是 https://cdn.example/f/77"); len(done.GetWithheld()) != 0 {
		t.Errorf("a true claim is excluded: %s", done)
	}
	elsewhere := sidecartest.Direct("老王")
	elsewhere.SessionId = "telegram_2"
	if done := say(elsewhere, "链接呢", "链接是 https://www.gying.org/movies/45776"); len(done.GetWithheld()) != 0 {
		t.Errorf("excluded without a list: %s", done)
	}
	// The check can be turned off.
	r.Stop()
	r = sidecartest.ServeIn(t, r.Dir, "session.claim_max_chars=0")
	if done := say(scope, "3", "链接：https://www.gying.org/movies/1"); len(done.GetWithheld()) != 0 {
		t.Errorf("excluded although the check is off: %s", done)
	}
}
