package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestAppendedMessagesAreConsidered: Appended messages are remembered, once, also after a restart.
func TestAppendedMessagesAreConsidered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir, "session.memorize_every=3")
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	r.AppendTo(t, scope, sidecartest.Said("My daughter's name is Dora."), sidecartest.Answered("Hello Dora."))
	waiting := r.AppendTo(t, scope, sidecartest.Said("I work as a nurse in Lisbon."), sidecartest.Answered("Nice.")).GetSession().GetUnconsideredCount()
	if waiting != 2 {
		t.Errorf("%d wait", waiting)
	}
	r.Stop()
	r = sidecartest.ServeIn(t, dir, "session.memorize_every=3")
	r.AppendTo(t, scope, sidecartest.Said("I am allergic to peanuts."), sidecartest.Answered("I will remember that."))
	texts := eventually(t, r, scope, 3)
	for _, word := range []string{"Dora", "Lisbon", "peanuts"} {
		if !strings.Contains(strings.Join(texts, "\n"), word) {
			t.Errorf("%s is not remembered: %q", word, texts)
		}
	}
	considerations, err := r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: scope})
	if err != nil || len(considerations.GetConsiderations()) != 1 || considerations.GetConsiderations()[0].GetMessageCount() != 6 {
		t.Errorf("%v, %v", considerations, err)
	}
	// Messages that were considered are not considered again on request.
	c := r.Consider(t, scope)
	if c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED {
		t.Errorf("asked again: %v", c)
	}
	r.AppendTo(t, scope, sidecartest.Said("My birthday is on May 5th."))
	if c := r.Consider(t, scope); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED || c.GetMessageCount() != 1 {
		t.Errorf("the result of the rest: %v", c)
	}
}

// eventually waits until the user has n memories, and returns their texts.
func eventually(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, count int) (texts []string) {
	t.Helper()
	sidecartest.Eventually(t, "there are enough memories", func() bool {
		texts = nil
		for _, m := range r.Memories(t, scope) {
			texts = append(texts, m.GetText())
		}
		return len(texts) >= count
	})
	return texts
}

// TestConsideredDialoguesAreRecorded: Considered dialogues are recorded: they are in the history, the window and message search. A
// dialogue that overlaps with the one before is neither recorded nor considered twice.
func TestConsideredDialoguesAreRecorded(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.InSession(sidecartest.Direct("小明"), "s")
	one, two, three, four := sidecartest.Said("我叫小明，我喜欢吃辣"), sidecartest.Answered("好的，小明"), sidecartest.Said("我下周要去成都出差"), sidecartest.Answered("一路顺风")
	for i, m := range []*memsidecarv1.Message{one, two, three, four} {
		m.Id = fmt.Sprint("m", i)
	}
	first := r.Consider(t, scope, one, two)
	second := r.Consider(t, scope, one, two, three, four)
	if first.GetMessageCount() != 2 || second.GetMessageCount() != 2 || second.GetScope().GetSessionId() != "s" {
		t.Errorf("considered %v and %v", first, second)
	}
	if third := r.Consider(t, scope, three, four); third.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED {
		t.Errorf("all of it again: %v", third)
	}
	if got := r.History(t, scope); len(got) != 4 {
		t.Errorf("the history is %q", got)
	}
	window, err := r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope})
	if err != nil || len(window.GetMessages()) != 4 {
		t.Errorf("the window is %v, %v", window, err)
	}
	// Without a session id they are in the current session.
	c := r.Consider(t, sidecartest.Direct("小红"), sidecartest.Said("我在上海工作"))
	if c.GetScope().GetSessionId() == "" {
		t.Errorf("recorded nowhere: %v", c)
	}
	recalled, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
		Scope: sidecartest.Direct("小明"), Query: "成都出差", Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
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
	for _, scope := range []*memsidecarv1.Scope{sidecartest.Direct("小红"), sidecartest.Group("小明", "g"), {UserId: "小明"}} {
		other, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
			Scope: scope, Query: "成都出差", Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
		})
		if err != nil || len(other.GetMessages()) != 0 {
			t.Errorf("%v recalls %v, %v", scope, other, err)
		}
	}
}

// TestRecordingCanBeSwitchedOff: Recording, and sessions as a whole, can be switched off for a namespace.
func TestRecordingCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.record_considered=false", "namespaces=[{name: quiet/*, session_enabled: false}]")
	r.Consider(t, sidecartest.InSession(sidecartest.Direct("ann"), "s"), sidecartest.Said("My daughter's name is Dora."))
	if _, err := r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: sidecartest.InSession(sidecartest.Direct("ann"), "s")}); status.Code(
		err,
	) != codes.NotFound {
		t.Errorf("recorded: %v", err)
	}
	quiet := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	quiet.Namespace = "quiet/site"
	_, err := r.Sessions().
		AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: quiet, Messages: []*memsidecarv1.Message{sidecartest.Said("x")}})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("where sessions are off: %v", err)
	}
	window, err := r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: quiet})
	if err != nil || len(window.GetMessages()) != 0 {
		t.Errorf("where sessions are off: %v, %v", window, err)
	}
	if c := r.Consider(t, quiet, sidecartest.Said("My daughter's name is Dora.")); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Errorf("where sessions are off, considering gives %v", c)
	}
}
