package server_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// pastMessages returns what Retrieve says with past messages as its source: the messages found, those around them, and the block.
func pastMessages(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, query string) string {
	t.Helper()
	got := r.Recalled(t, &memsidecarv1.RetrieveRequest{
		Scope: scope, Query: query, TopK: proto.Int32(20), Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
	})
	var all strings.Builder
	for _, m := range got.GetMessages() {
		for _, one := range slices.Concat(m.GetBefore(), []*memsidecarv1.SessionMessage{m.GetMessage()}, m.GetAfter()) {
			all.WriteString(one.GetMessage().GetContent() + "\n")
		}
	}
	return all.String() + got.GetPromptContext()
}

// topicsOf returns the topics of a session, on one line.
func topicsOf(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope) string {
	t.Helper()
	return sidecartest.Must(r.Sessions().GetTopics(t.Context(), &memsidecarv1.GetTopicsRequest{Scope: scope}))(t).String()
}

// TestWithdrawnMemoriesDoNotComeBackFromMessages: The messages that a withdrawn memory rests on, the request, and the answers to them are not
// found, also after a restart; the history has them. When the memory is restored, they are found again.
func TestWithdrawnMemoriesDoNotComeBackFromMessages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ told, echoed, request, query, secret, other string }{
		"en": {
			"My ex is called Tomasz.", "Tomasz, got it.", "Forget what I told you about my ex Tomasz", "Tomasz ex", "Tomasz", "I collect vintage kettles.",
		},
		"zh": {"我前男友叫李雷，在医院当护士。", "李雷，记住了", "忘掉我说的关于我前男友的事", "前男友 李雷", "李雷", "我喜欢收藏水壶"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := sidecartest.ServeIn(t, dir)
			scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
			id := r.Consider(t, scope, sidecartest.Said(test.told), sidecartest.Answered(test.echoed)).GetChanges()[0].GetMemoryId()
			r.Consider(t, scope, sidecartest.Said(test.other), sidecartest.Answered("OK"))
			if got := pastMessages(t, r, scope, test.query); !strings.Contains(got, test.told) || !strings.Contains(got, test.echoed) {
				t.Fatalf("before, found %s", got)
			}
			r.Consider(t, scope, sidecartest.Said(test.request), sidecartest.Answered(test.echoed))
			for range 2 {
				if got := pastMessages(t, r, scope, test.query); strings.Contains(got, test.secret) {
					t.Errorf("withdrawn, found %s", got)
				}
				if got := pastMessages(t, r, scope, test.other); !strings.Contains(got, test.other) {
					t.Errorf("another message is gone: %s", got)
				}
				if got := topicsOf(t, r, scope); strings.Contains(got, test.secret) {
					t.Errorf("the topics are %s", got)
				}
				if got := r.History(t, scope); !slices.Contains(got, test.told) || len(got) != 6 {
					t.Errorf("the history is %q", got)
				}
				r.Stop()
				r = sidecartest.ServeIn(t, dir)
			}
			sidecartest.Must(r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: id}))(t)
			if got := pastMessages(t, r, scope, test.query); !strings.Contains(got, test.told) || !strings.Contains(got, test.request) {
				t.Errorf("restored, found %s", got)
			}
		})
	}
}

// TestWhatWasNotToBeKeptIsNotFound: Messages that the user asked not to keep are not found as past messages and make no topics: the message
// of the request, the one before, and the one after it, in one call or in several.
func TestWhatWasNotToBeKeptIsNotFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		said   []string
		secret string
	}{
		"same":      {[]string{"Don't save this: I failed the exam in Trondheim."}, "Trondheim"},
		"around":    {[]string{"I live in Trondheim. Please don't remember this."}, "Trondheim"},
		"before":    {[]string{"I am moving to Trondheim in May.", "Don't save that."}, "Trondheim"},
		"after":     {[]string{"Don't save what I tell you next.", "I am moving to Trondheim in May."}, "Trondheim"},
		"同一条":       {[]string{"这条不要保存：我在特隆赫姆考试没及格。"}, "特隆赫姆"},
		"前一条":       {[]string{"我五月要搬到特隆赫姆", "别记这个"}, "特隆赫姆"},
		"nothing":   {[]string{"Did you see Trondheim yesterday?", "Keep that off the record, please."}, "Trondheim"},
		"reinforce": {[]string{"I live in Trondheim.", "I live in Trondheim.", "forget that"}, "Trondheim"},
	} {
		for _, together := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := sidecartest.Serve(t)
				scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
				var all []*memsidecarv1.Message
				for _, text := range test.said {
					turn := []*memsidecarv1.Message{sidecartest.Said(text), sidecartest.Answered("You said: " + text)}
					if all = append(all, turn...); !together {
						r.Consider(t, scope, turn...)
					}
				}
				if together {
					r.Consider(t, scope, all...)
				}
				r.Consider(t, scope, sidecartest.Said("I collect vintage kettles."))
				if got := pastMessages(t, r, scope, strings.Join(test.said, " ")); strings.Contains(got, test.secret) {
					t.Errorf("together %t: found %s", together, got)
				}
				if got := pastMessages(t, r, scope, "kettles"); !strings.Contains(got, "vintage") {
					t.Errorf("together %t: another message is gone: %s", together, got)
				}
				if got := topicsOf(t, r, scope); strings.Contains(got, test.secret) {
					t.Errorf("together %t: the topics are %s", together, got)
				}
				if got := r.Texts(t, scope, strings.Join(test.said, " ")); strings.Contains(strings.Join(got, " "), test.secret) {
					t.Errorf("together %t: the memories are %q", together, got)
				}
			})
		}
	}
}

// TestWithdrawalExcludesOnlyItsSpeaker: In a group, another person's words about the same thing are still found, and after the first person
// is forgotten no file holds them.
func TestWithdrawalExcludesOnlyItsSpeaker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir)
	g := room{r, "g"}
	g.consider(t, by("one", "I live in Trondheim."), by("two", "I live in Trondheim as well."))
	g.consider(t, by("one", "Forget that I live in Trondheim"), by("two", "ok"))
	one, two := sidecartest.Group("one", "g"), sidecartest.Group("two", "g")
	if got := pastMessages(t, r, one, "Trondheim"); strings.Contains(got, "I live in Trondheim.") {
		t.Errorf("the one who took it back finds %s", got)
	}
	if got := pastMessages(t, r, two, "Trondheim"); !strings.Contains(got, "as well") || strings.Contains(got, "in Trondheim.") {
		t.Errorf("the other finds %s", got)
	}
	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.UserScope(one)}))(t)
	if got := pastMessages(t, r, two, "Trondheim"); !strings.Contains(got, "as well") {
		t.Errorf("after the first was forgotten the other finds %s", got)
	}
	r.Stop()
	sidecartest.WantNoFileWith(t, dir, "I live in Trondheim.")
}

// TestOutdatedMessagesSayWhatHoldsNow: A past message whose memory was superseded names the memory that holds now, in a field and in the block,
// as of the time that is asked about. A withdrawn memory is not named.
func TestOutdatedMessagesSayWhatHoldsNow(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	r.Consider(t, scope, sidecartest.Said("I live in Trondheim."), sidecartest.Answered("OK"))
	between := timestamppb.Now()
	r.Consider(t, scope, sidecartest.Said("I moved to Bergen and no longer live in Trondheim."), sidecartest.Answered("OK"))
	last := r.Consider(t, scope, sidecartest.Said("I moved to Narvik and no longer live in Bergen."), sidecartest.Answered("OK"))
	id := last.GetChanges()[0].GetMemoryId()
	later := func(at *timestamppb.Timestamp) (*memsidecarv1.RetrievedMessage, string) {
		got := r.Recalled(t, &memsidecarv1.RetrieveRequest{
			Scope: scope, Query: "Trondheim", ReadTime: at, NeighborCount: proto.Int32(0),
			Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
		})
		return got.GetMessages()[0], got.GetPromptContext()
	}
	if m, block := later(nil); m.GetSupersededById() != id || !strings.Contains(m.GetSupersededByText(), "Narvik") ||
		!strings.Contains(block, "I live in Trondheim. (later: "+m.GetSupersededByText()+")") {
		t.Errorf("found %v in %s", m, block)
	}
	if m, block := later(between); m.GetSupersededById() != "" || strings.Contains(block, "later") {
		t.Errorf("before the move, found %v in %s", m, block)
	}
	r.Consider(t, scope, sidecartest.Said("Please forget what I told you about Narvik."))
	if got := pastMessages(t, r, scope, "Trondheim Bergen Narvik moved live"); strings.Contains(got, "Narvik") || strings.Contains(got, "Trondheim") {
		t.Errorf("withdrawn, found %s", got)
	}
}

// TestSummariesAndDigestsLeaveOutWhatIsWithdrawn: The summary that GetContext returns, and the digest of the day, do not say what was
// withdrawn or was not to be kept, also when they had said it before.
func TestSummariesAndDigestsLeaveOutWhatIsWithdrawn(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.max_messages=2", "digest.enabled=true")
	scope := sidecartest.InSession(sidecartest.Direct("ann"), "s")
	r.Consider(t, scope, sidecartest.Said("My ex is called Tomasz."), sidecartest.Answered("OK"))
	r.Consider(t, scope, sidecartest.Said("How do I get to Trondheim? By the way, I decided to learn the oboe."), sidecartest.Answered("By train."))
	for range 4 {
		r.Consider(t, scope, sidecartest.Said("I collect vintage kettles."), sidecartest.Answered("OK"))
	}
	both := func() string {
		window := sidecartest.Must(r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope}))(t)
		return window.GetSummary().GetText() + "\n" + summarize(t, r, sidecartest.Direct("ann"), "").String()
	}
	if got := both(); !strings.Contains(got, "Tomasz") || !strings.Contains(got, "Trondheim") || !strings.Contains(got, "kettles") {
		t.Fatalf("at first: %s", got)
	}
	r.Consider(t, scope, sidecartest.Said("Forget what I told you about my ex"), sidecartest.Answered("OK"))
	r.Consider(t, scope, sidecartest.Said("Don't save this: I failed in Uppsala."), sidecartest.Answered("Uppsala, I see."))
	r.Consider(t, scope, sidecartest.Said("I collect vintage kettles."), sidecartest.Answered("OK"))
	r.Consider(t, scope, sidecartest.Said("I collect vintage kettles."), sidecartest.Answered("OK"))
	if got := both(); strings.Contains(got, "Tomasz") || strings.Contains(got, "Uppsala") || !strings.Contains(got, "Trondheim") {
		t.Errorf("afterwards: %s", got)
	}
}
