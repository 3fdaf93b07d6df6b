package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestConsideredByItself: a bot that only appends has what was said remembered, once, also over a restart.
func TestConsideredByItself(t *testing.T) {
	dir := t.TempDir()
	r := serveIn(t, dir, "session.memorize_every=3")
	scope := within(direct("ann"), "s")
	r.appendTo(t, scope, said("My name is Ann."), answered("Hello Ann."))
	waiting := r.appendTo(t, scope, said("I live in Lisbon."), answered("Nice.")).GetSession().GetUnconsideredCount()
	if waiting != 2 {
		t.Errorf("%d wait", waiting)
	}
	r.stop()
	r = serveIn(t, dir, "session.memorize_every=3")
	r.appendTo(t, scope, said("I am allergic to peanuts."), answered("I will remember that."))
	texts := r.eventually(t, scope, 3)
	for _, word := range []string{"Ann", "Lisbon", "peanuts"} {
		if !strings.Contains(strings.Join(texts, "\n"), word) {
			t.Errorf("%s is not remembered: %q", word, texts)
		}
	}
	considerations, err := r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: scope})
	if err != nil || len(considerations.GetConsiderations()) != 1 || considerations.GetConsiderations()[0].GetMessageCount() != 6 {
		t.Errorf("%v, %v", considerations, err)
	}
	// What was considered is not considered again when the bot asks.
	c := r.consider(t, scope)
	if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED {
		t.Errorf("asked again: %v", c)
	}
	r.appendTo(t, scope, said("My birthday is on May 5th."))
	if c := r.consider(t, scope); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED || c.GetMessageCount() != 1 {
		t.Errorf("what was left: %v", c)
	}
}

// eventually waits until the user has as many memories, and returns their texts.
func (r *running) eventually(t *testing.T, scope *memsidecarv1.Scope, count int) (texts []string) {
	t.Helper()
	eventually(t, "there are enough memories", func() bool {
		texts = nil
		for _, m := range r.list(t, scope) {
			texts = append(texts, m.GetText())
		}
		return len(texts) >= count
	})
	return texts
}

// TestTwoCallsAreEnough: a bot that only considers its dialogues has history, window and recall of messages as well, and
// a dialogue that overlaps with the one before is neither recorded nor considered twice.
func TestTwoCallsAreEnough(t *testing.T) {
	r := serve(t)
	scope := within(direct("小明"), "s")
	one, two, three, four := said("我叫小明，我喜欢吃辣"), answered("好的，小明"), said("我下周要去成都出差"), answered("一路顺风")
	for i, m := range []*memsidecarv1.Message{one, two, three, four} {
		m.Id = fmt.Sprint("m", i)
	}
	first := r.consider(t, scope, one, two)
	second := r.consider(t, scope, one, two, three, four)
	if first.GetMessageCount() != 2 || second.GetMessageCount() != 2 || second.GetScope().GetSessionId() != "s" {
		t.Errorf("considered %v and %v", first, second)
	}
	if third := r.consider(t, scope, three, four); third.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED {
		t.Errorf("all of it again: %v", third)
	}
	if got := r.history(t, scope); len(got) != 4 {
		t.Errorf("the history is %q", got)
	}
	window, err := r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope})
	if err != nil || len(window.GetMessages()) != 4 {
		t.Errorf("the window is %v, %v", window, err)
	}
	// Without a session id they are in the user's current one.
	c := r.consider(t, direct("小红"), said("我在上海工作"))
	if c.GetScope().GetSessionId() == "" {
		t.Errorf("recorded nowhere: %v", c)
	}
	recalled, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
		Scope: direct("小明"), Query: "成都出差", Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
	})
	if err != nil || len(recalled.GetMessages()) == 0 || len(recalled.GetMemories()) != 0 {
		t.Fatalf("recalled %v, %v", recalled, err)
	}
	best := recalled.GetMessages()[0]
	if best.GetMessage().GetMessage().GetContent() != three.GetContent() || len(best.GetBefore()) != 1 || len(best.GetAfter()) != 1 ||
		best.GetBefore()[0].GetMessage().GetContent() != two.GetContent() {
		t.Errorf("the best is %v", best)
	}
	if !strings.Contains(recalled.GetPromptContext(), "我下周要去成都出差") {
		t.Errorf("the block is\n%s", recalled.GetPromptContext())
	}
	for _, scope := range []*memsidecarv1.Scope{direct("小红"), group("小明", "g"), {UserId: "小明"}} {
		other, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
			Scope: scope, Query: "成都出差", Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
		})
		if err != nil || len(other.GetMessages()) != 0 {
			t.Errorf("%v recalls %v, %v", scope, other, err)
		}
	}
}

// TestNotRecorded: recording can be switched off, and so can the whole of it, for a namespace.
func TestNotRecorded(t *testing.T) {
	r := serve(t, "session.record_considered=false", "namespaces=[{name: quiet/*, session_enabled: false}]")
	r.consider(t, within(direct("ann"), "s"), said("My name is Ann."))
	if _, err := r.sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: within(direct("ann"), "s")}); status.Code(err) != codes.NotFound {
		t.Errorf("recorded: %v", err)
	}
	quiet := within(direct("ann"), "s")
	quiet.Namespace = "quiet/site"
	_, err := r.sessions().AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: quiet, Messages: []*memsidecarv1.Message{said("x")}})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("where sessions are off: %v", err)
	}
	window, err := r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: quiet})
	if err != nil || len(window.GetMessages()) != 0 {
		t.Errorf("where sessions are off: %v, %v", window, err)
	}
	if c := r.consider(t, quiet, said("My name is Ann.")); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Errorf("where sessions are off, considering gives %v", c)
	}
}
