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
		"struck off a list": {
			[]string{"Add oat milk, eggs and bread to my shopping list", "Take the eggs off my shopping list"},
			"shopping list eggs", "oat milk|bread", "eggs",
		},
		"struck off, and nothing left": {
			[]string{"Add a blue candle to my shopping list", "Remove the blue candle from my shopping list"},
			"shopping list candle", "remove the blue candle", "add",
		},
		"not needed any more": {
			[]string{"I need to buy a rice cooker.", "I don't need a rice cooker any more."},
			"rice cooker",
			"doesn't need a rice cooker", "needs to buy",
		},
		"从清单删掉": {[]string{"把牛奶、鸡蛋和面包加到购物清单", "把鸡蛋从购物清单里删掉"}, "购物清单 鸡蛋", "牛奶|面包", "鸡蛋"},
		"moved": {
			[]string{"I have a dentist appointment in nine days at 3pm.", "My dentist appointment has been moved to the day after tomorrow."},
			"dentist appointment", "moved to", "3pm",
		},
		"moved by the bot": {
			[]string{"I have a meeting with Tom in six days at 3pm.", "Move the meeting with Tom to tomorrow at 4pm"},
			"meeting with Tom", "4pm", "3pm",
		},
		"改期":         {[]string{"我六天后下午三点有面试", "面试推迟到后天了"}, "面试", "推迟到", "三点"},
		"called off": {[]string{"I have a job interview in five days at 2pm.", "The interview is cancelled."}, "interview", "cancelled", "2pm"},
		"called off by the bot": {
			[]string{"I have a dentist appointment in five days at 2pm.", "Cancel my dentist appointment, please."},
			"dentist appointment", "cancel", "2pm",
		},
		"取消":        {[]string{"我六天后下午三点有面试", "面试取消了"}, "面试", "取消", "三点"},
		"让助手取消":     {[]string{"我五天后约了牙医", "取消我的牙医预约"}, "牙医", "取消", "约了"},
		"no longer": {[]string{"I drink coffee every morning.", "I no longer drink coffee."}, "coffee", "no longer drinks coffee", "morning"},
		"不再":        {[]string{"我喝咖啡", "我不喝咖啡了"}, "咖啡", "不喝咖啡", "用户喝"},
		"outgrown":  {[]string{"I love ska music.", "I used to like ska, but I just don't enjoy it anymore."}, "ska", "used to like", "loves"},
		"以前喜欢":      {[]string{"我很喜欢爬山", "我以前很喜欢爬山，现在不喜欢了"}, "爬山", "以前", "用户很喜欢"},
		"back and forth": {
			[]string{"I like cilantro.", "I don't like cilantro anymore.", "I like cilantro again."},
			"cilantro",
			"likes cilantro", "n't",
		},
		"changed by the bot":        {[]string{"My wedding budget is $40,000.", "Change my wedding budget to $50,000"}, "wedding budget", "50,000", "40,000"},
		"让助手改":                      {[]string{"我的预算是4万元", "把我的预算改成5万"}, "预算", "5万", "4万"},
		"done":                      {[]string{"I need to renew my passport soon.", "I finally finished renewing my passport."}, "passport", "finished", "needs"},
		"favourites of two scripts": {[]string{"My favorite fruit is papaya", "My favorite fruit is 榴莲"}, "favorite fruit", "榴莲", "papaya"},
		"两种文字":                      {[]string{"我最喜欢的水果是papaya", "我最喜欢的水果是榴莲"}, "最喜欢的水果", "榴莲", "papaya"},
		"of two lists, another's entry": {
			[]string{"Add eggs to my shopping list", "Add eggs to my picnic list", "Remove the eggs from my picnic list"},
			"eggs list", "shopping list|remove", "add eggs to their picnic",
		},
		"another's taste stays": {
			[]string{"My wife loves sushi.", "I don't like sushi anymore."},
			"sushi",
			"wife loves sushi|like sushi", "nothing of the kind",
		},
		"another appointment stays": {
			[]string{"I have a dentist appointment in five days at 2pm.", "My haircut was cancelled."},
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
	for name, test := range map[string]struct{ told, request, query, text string }{
		"en": {"My ex is called Tom.", "Forget what I told you about my ex", "ex Tom", "The user's ex is called Tom."},
		"zh": {"我前男友叫李雷", "把关于我前男友的记忆删掉", "前男友 李雷", "用户的前男友叫李雷"},
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
		if got := r.Texts(t, scope, test.query); !slices.Equal(got, []string{test.text}) {
			t.Errorf("%s: brought back, found %q", name, got)
		}
	}
	// "That" refers to a message of an earlier dialogue.
	scope := sidecartest.Direct("that")
	r.Consider(t, scope, sidecartest.Said("I live in Rome."), sidecartest.Answered("OK"))
	r.Consider(t, scope, sidecartest.Said("I live in Rome."), sidecartest.Answered("OK"), sidecartest.Said("forget that"))
	if got := r.Texts(t, scope, "Rome"); len(got) > 0 {
		t.Errorf("found %q", got)
	}
	// Reverting restores a list that lost an entry.
	scope = sidecartest.Direct("undone")
	r.Consider(t, scope, sidecartest.Said("Add eggs and bread to my shopping list"), sidecartest.Answered("OK"))
	shortened := r.Consider(t, scope, sidecartest.Said("Take the eggs off my shopping list"), sidecartest.Answered("OK")).GetChanges()[0]
	if shortened.GetAction() != updated || shortened.GetReason() == "" || strings.Contains(shortened.GetText(), "eggs") {
		t.Errorf("striking off did %v", shortened)
	}
	sidecartest.Must(r.RevertMemory(t.Context(), &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: shortened.GetMemoryId()}))(t)
	if got := r.Texts(t, scope, "shopping list"); len(got) != 1 || !strings.Contains(got[0], "eggs and bread") {
		t.Errorf("undone, found %q", got)
	}
}

// TestOneOfTwoStatementsIsRetracted: Of two statements in one sentence, one can be retracted or changed alone.
func TestOneOfTwoStatementsIsRetracted(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct{ told, forget, moved, query, home, health string }{
		"en": {
			"I live in Porto and I'm allergic to shrimps.", "Forget what I told you about the shrimps",
			"I moved to Faro.", "Porto Faro shrimps", "The user moved to Faro.",
			"The user is allergic to shrimps.",
		},
		"zh": {"我住在西安，对芒果过敏。", "忘掉我说的关于芒果的事", "我搬到兰州了。", "西安 兰州 芒果", "用户搬到兰州了", "用户对芒果过敏"},
	} {
		forgetting, moving := sidecartest.Direct(name+" forgets"), sidecartest.Direct(name+" moves")
		r.Consider(t, forgetting, sidecartest.Said(test.told), sidecartest.Answered("OK"))
		r.Consider(t, forgetting, sidecartest.Said(test.forget), sidecartest.Answered("OK"))
		if got := r.Texts(t, forgetting, test.query); len(got) != 1 || got[0] == test.health {
			t.Errorf("%s: with one forgotten, found %q", name, got)
		}
		r.Consider(t, moving, sidecartest.Said(test.told), sidecartest.Answered("OK"))
		r.Consider(t, moving, sidecartest.Said(test.moved), sidecartest.Answered("OK"))
		got := r.Texts(t, moving, test.query)
		slices.Sort(got)
		want := []string{test.home, test.health}
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: after moving, found %q", name, got)
		}
	}
}

// TestGroupMembersRetractOnlyTheirOwn: In a group each member retracts only their own statements.
func TestGroupMembersRetractOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct{ said, takenBack, kept, left string }{
		"en": {"I love sushi.", "I don't like sushi anymore.", "The user loves sushi.", "like sushi anymore"},
		"zh": {"我很喜欢爬山", "我不喜欢爬山了", "用户很喜欢爬山", "不喜欢"},
		"fg": {"I live in Rome.", "Forget that I live in Rome", "The user lives in Rome.", ""},
	} {
		g := room{r, name}
		one, two := "one-"+name, "two-"+name
		g.consider(t, by(one, test.said), by(two, test.said))
		got := g.consider(t, by(one, test.takenBack), by(two, "ok"))
		if !slices.Equal(got[two], []string{test.kept}) {
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
	for i, line := range []string{"I have a dentist appointment in five days at 2pm.", "My dentist appointment was cancelled."} {
		m := sidecartest.Said(line)
		m.SendTime = timestamppb.New(time.Now().AddDate(0, 0, i-30))
		ids = append(ids, r.Consider(t, sidecartest.Direct("u"), m, sidecartest.Answered("OK")).GetChanges()[0].GetMemoryId())
	}
	first := sidecartest.Must(r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: ids[0]}))(
		t,
	).GetMemory()
	if first.GetState() != memsidecarv1.MemoryState_MEMORY_STATE_SUPERSEDED {
		t.Errorf("the appointment is %v", first)
	}
}
