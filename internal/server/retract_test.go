package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestRetractedPlansAreNotFound: Plans that are cancelled, moved, changed or outgrown are not retrieved any more. Others stay. Each line
// is said on its own day, the last one today.
func TestRetractedPlansAreNotFound(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct {
		lines       []string
		query       string
		found, gone string // words that the result must or must not contain, separated by |
	}{
		"moved": {
			[]string{
				"I have a meeting with Tom in six days at 3pm.", "My meeting with Tom is no longer in six days, it got moved to tomorrow at 4pm.",
			},
			"meeting with Tom", "4pm", "3pm",
		},
		"改期": {[]string{"我下周五下午三点要看牙医。", "我看牙医改到下周四下午三点了，不是周五。"}, "牙医", "改到", "要看"},
		"called off": {
			[]string{"I have a dentist appointment in five days at 2pm.", "Please forget my dentist appointment, it was cancelled."},
			"dentist appointment", "", "dentist",
		},
		"no longer": {
			[]string{"I play badminton every Sunday with my brother.", "I no longer play badminton, I go swimming now."},
			"badminton", "swimming", "Sunday",
		},
		"不再": {[]string{"我每天早上喝咖啡。", "我戒咖啡了，现在改喝绿茶，每天早上喝一杯。"}, "咖啡", "绿茶", "早上喝咖啡"},
		"another job": {
			[]string{"I work at a bakery in Lyon.", "I no longer work at the bakery in Lyon, I'm a nurse now."},
			"where do you work, bakery, nurse", "nurse", "work at a bakery",
		},
		"换工作": {[]string{"我在北京一家医院当护士。", "我从医院辞职了，现在在学校当老师。"}, "医院 学校 工作", "老师", "护士"},
		"back and forth": {
			[]string{
				"I live in Porto and work from home.", "I moved to Faro last year, I no longer live in Porto.",
				"I moved back to Porto last month, I no longer live in Faro.",
			},
			"Porto Faro", "back to Porto", "work from home|moved to Faro",
		},
		"another's habit stays": {
			[]string{"My wife plays chess every Sunday with her sister.", "I no longer play badminton, I go swimming now."},
			"chess badminton", "wife plays chess|swimming", "nothing of the kind",
		},
		"another appointment stays": {
			[]string{"I have a dentist appointment in five days at 2pm.", "Please forget my haircut, it was cancelled."},
			"dentist appointment", "2pm", "nothing of the kind",
		},
	} {
		scope := sidecartest.Direct(name)
		for i, line := range test.lines {
			m := sidecartest.Said(line)
			m.SendTime = timestamppb.New(time.Now().AddDate(0, 0, i+1-len(test.lines)))
			r.Consider(t, scope, m, sidecartest.Answered("OK"))
		}
		found := strings.ToLower(strings.Join(r.Texts(t, scope, test.query), "\n"))
		for word := range strings.SplitSeq(test.found, "|") {
			if !strings.Contains(found, strings.ToLower(word)) {
				t.Errorf("%s: found %q, without %q", name, found, word)
			}
		}
		for word := range strings.SplitSeq(test.gone, "|") {
			if strings.Contains(found, strings.ToLower(word)) {
				t.Errorf("%s: found %q, with %q", name, found, word)
			}
		}
	}
}

// TestRequestToForgetWithdrawsMemories: A request to forget withdraws the memories it is about, names them, and can be reverted.
func TestRequestToForgetWithdrawsMemories(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct{ told, request, query string }{
		"en": {"My ex is called Tom and lives in York.", "Forget what I told you about my ex", "ex Tom"},
		"zh": {"我前男友叫李雷，在医院当护士。", "忘掉我说的关于我前男友的事", "前男友 李雷"},
	} {
		scope := sidecartest.Direct(name)
		id := r.Consider(t, scope, sidecartest.Said(test.told), sidecartest.Answered("OK")).GetChanges()[0].GetMemoryId()
		c := r.Consider(t, scope, sidecartest.Said(test.request), sidecartest.Answered("OK"))
		if changes := c.GetChanges(); len(changes) != 1 || changes[0].GetMemoryId() != id ||
			changes[0].GetAction() != memsidecarv1.MemoryAction_MEMORY_ACTION_WITHDRAWN || !strings.Contains(c.GetReason(), "one memory was withdrawn") {
			t.Errorf("%s: the request did %v", name, c)
		}
		if got := r.Texts(t, scope, test.query); len(got) > 0 {
			t.Errorf("%s: found %q", name, got)
		}
		if c := r.Consider(t, scope, sidecartest.Said(test.request), sidecartest.Answered("OK")); !strings.Contains(
			c.GetReason(),
			"nothing was withdrawn",
		) {
			t.Errorf("%s: the second request did %v", name, c)
		}
		sidecartest.Must(r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: id}))(t)
		if got := r.Texts(t, scope, test.query); !slices.Equal(got, []string{test.told}) {
			t.Errorf("%s: brought back, found %q", name, got)
		}
	}
	// "That" refers to a message of an earlier dialogue.
	scope := sidecartest.Direct("that")
	r.Consider(t, scope, sidecartest.Said("I live in Rome with my wife."), sidecartest.Answered("OK"))
	r.Consider(t, scope, sidecartest.Said("I live in Rome with my wife."), sidecartest.Answered("OK"), sidecartest.Said("forget that"))
	if got := r.Texts(t, scope, "Rome"); len(got) > 0 {
		t.Errorf("found %q", got)
	}
}

// TestOneOfTwoStatementsIsRetracted: Of two statements in one message, one can be retracted or changed alone.
func TestOneOfTwoStatementsIsRetracted(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct{ job, health, forget, changed, query string }{
		"en": {
			"I work at a bakery in Lyon.", "I'm allergic to shrimps.", "Forget what I told you about the shrimps",
			"I no longer work at the bakery in Lyon, I'm a nurse now.", "bakery nurse shrimps",
		},
		"zh": {"我在北京一家医院当护士。", "我对花生过敏。", "忘掉我说的关于花生的事", "我从医院辞职了，现在在学校当老师。", "医院 老师 花生"},
	} {
		forgetting, changing := sidecartest.Direct(name+" forgets"), sidecartest.Direct(name+" changes")
		told := sidecartest.Said(test.job + " " + test.health)
		r.Consider(t, forgetting, told, sidecartest.Answered("OK"))
		r.Consider(t, forgetting, sidecartest.Said(test.forget), sidecartest.Answered("OK"))
		if got := r.Texts(t, forgetting, test.query); !slices.Equal(got, []string{test.job}) {
			t.Errorf("%s: with one forgotten, found %q", name, got)
		}
		r.Consider(t, changing, told, sidecartest.Answered("OK"))
		r.Consider(t, changing, sidecartest.Said(test.changed), sidecartest.Answered("OK"))
		got := r.Texts(t, changing, test.query)
		slices.Sort(got)
		want := []string{test.changed, test.health}
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: after a change, found %q", name, got)
		}
	}
}

// TestGroupMembersRetractOnlyTheirOwn: In a group each member retracts only their own statements.
func TestGroupMembersRetractOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct{ said, takenBack, left string }{
		"en": {"I play badminton every Sunday with my brother.", "I no longer play badminton, I go swimming now.", "swimming"},
		"zh": {"我每天早上喝咖啡。", "我戒了咖啡，现在每天早上喝茶。", "喝茶"},
		"fg": {"I work at a bakery in Lyon.", "Please forget what I said about the bakery in Lyon.", ""},
	} {
		g := room{r, name}
		one, two := "one-"+name, "two-"+name
		g.consider(t, by(one, test.said), by(two, test.said))
		got := g.consider(t, by(one, test.takenBack), by(two, "ok"))
		if !slices.Equal(got[two], []string{test.said}) {
			t.Errorf("%s: the other has %q", name, got[two])
		}
		if test.left == "" && len(got[one]) > 0 || test.left != "" && (len(got[one]) != 1 || !strings.Contains(got[one][0], test.left)) {
			t.Errorf("%s: who took it back has %q", name, got[one])
		}
	}
}

// TestAppointmentExpires: A memory of an appointment has its end time.
func TestAppointmentExpires(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, line := range map[string]string{"en": "I have a dentist appointment tomorrow at 3pm.", "zh": "我明天下午三点去看牙"} {
		id := r.Consider(t, sidecartest.Direct(name), sidecartest.Said(line), sidecartest.Answered("OK")).GetChanges()[0].GetMemoryId()
		m := sidecartest.Must(r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: sidecartest.Direct(name), MemoryId: id}))(
			t,
		).GetMemory()
		if end := m.GetValidEndTime(); end == nil || time.Until(end.AsTime()) > 49*time.Hour || time.Until(end.AsTime()) < 23*time.Hour {
			t.Errorf("%s: it is %v", name, m)
		}
	}
}

// TestCancelledPlanIsNotReportedAsPast: A plan cancelled before its date is not reported as past, even if both were reported long after
// it.
func TestCancelledPlanIsNotReportedAsPast(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	var ids []string
	for i, line := range []string{"I have a dentist appointment in five days at 2pm.", "Please forget my dentist appointment, it was cancelled."} {
		at := time.Now().AddDate(0, 0, i-30)
		answer := sidecartest.Answered("OK")
		answer.SendTime = timestamppb.New(at)
		ids = append(ids, r.Consider(t, sidecartest.Direct("u"), saidAt(at, line), answer).GetChanges()[0].GetMemoryId())
	}
	const withdrawn, expired = memsidecarv1.MemoryState_MEMORY_STATE_WITHDRAWN, memsidecarv1.MemoryState_MEMORY_STATE_EXPIRED
	for _, state := range []memsidecarv1.MemoryState{withdrawn, expired} {
		list := sidecartest.Must(r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{
			Scope: sidecartest.Direct("u"), States: []memsidecarv1.MemoryState{state},
		}))(t).GetMemories()
		if listed := len(list) == 1 && list[0].GetId() == ids[0]; listed != (state == withdrawn) {
			t.Errorf("%s are %v", state, list)
		}
	}
}
