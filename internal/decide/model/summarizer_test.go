package model

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// st is a statement as a model writes it.
func st(text, messages, quote string) string {
	return fmt.Sprintf(`{"text": %s, "kind": "plan", "importance": 0.7, "messages": %s, "quote": %s}`, answer.Quoted(text), messages, answer.Quoted(quote))
}

func list(statements ...string) string {
	return `{"statements": [` + strings.Join(statements, ",") + `]}`
}

func summarize(t *testing.T, m *script, o Options, tr decide.Transcript, v decide.Verdict) []memory.Statement {
	t.Helper()
	got, err := newSummarizer(t, m, o).Summarize(t.Context(), tr, v)
	if err != nil {
		t.Fatalf("%v after %d calls", err, len(m.prompts))
	}
	return got
}

func texts(s []memory.Statement) []string {
	var out []string
	for _, x := range s {
		out = append(out, x.Text)
	}
	return out
}

func TestSummarize(t *testing.T) {
	tr := talk("我明天去看牙医", "A: 下午三点，对吗？", "对，就在人民路", "B: 我也去")
	tr.Dialogue.Messages[2].ID = "msg-7"
	got := summarize(t, answers(list(
		st("用户2026年3月5日下午三点在人民路看牙医 [m0, m2]。", `["m2", "m0", "M1", "m2"]`, "对，就在 人民路"),
		st("用户的牙医在人民路", `["m2"]`, "somewhere else"),
		st("用户明天看牙医", `["m0"]`, ""),
	)), Options{}, tr, yes)
	want := []memory.Statement{
		{
			Text: "用户明天看牙医", Language: "zh", Kind: memory.KindPlan, Importance: 0.7, MessageIDs: []string{"#0"},
			Quote: "我明天去看牙医", Reason: "the verdict's reason", ObservedAt: noon.UTC(),
		},
		{
			Text: "用户2026年3月5日下午三点在人民路看牙医。", Language: "zh", Kind: memory.KindPlan, Importance: 0.7,
			MessageIDs: []string{"#0", "#1", "msg-7"}, Quote: "对，就在人民路", Reason: "the verdict's reason", ObservedAt: noon.Add(2 * time.Minute).UTC(),
		},
		{
			Text: "用户的牙医在人民路", Language: "zh", Kind: memory.KindPlan, Importance: 0.7, MessageIDs: []string{"msg-7"},
			Quote: "对，就在人民路", Reason: "the verdict's reason", ObservedAt: noon.Add(2 * time.Minute).UTC(),
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got = summarize(t, answers(list()), Options{}, tr, yes); len(got) != 0 {
		t.Errorf("of nothing comes %+v", got)
	}
	m := answers()
	if got = summarize(t, m, Options{}, tr, decide.Verdict{}); len(got) != 0 || len(m.prompts) != 0 {
		t.Errorf("asked in spite of the verdict: %+v", got)
	}
}

// TestForms are answers that are not what was asked for, but clear.
func TestForms(t *testing.T) {
	const one = `{"text": "The user moved to Berlin.", "kind": "fact", "importance": 0.5, "messages": ["m0"], "quote": ""}`
	for name, answer := range map[string]string{
		"bare list":           "Here you are:\n[" + one + "]",
		"in an array":         "[" + list(one) + "]",
		"trailing commas":     `{"statements": [` + one + `,],}`,
		"duplicates":          list(one, one, strings.Replace(one, "The user moved to Berlin.", "the user  moved to berlin", 1)),
		"numbers as strings":  strings.NewReplacer("0.5", `" 0.5 "`, `["m0"]`, `"[m0]"`).Replace(list(one)),
		"strings as numbers":  strings.Replace(list(one), `["m0"]`, `[0]`, 1),
		"control characters":  strings.Replace(list(one), "user moved", `user\u0000\n moved\u0007`, 1),
		"without a quote":     strings.Replace(list(one), `, "quote": ""`, "", 1),
		"unknown fields":      strings.Replace(list(one), `"kind"`, `"sentiment": {"x": []}, "kind"`, 1),
		"unknown kind":        strings.Replace(list(one), `"fact"`, `"relocation"`, 1),
		"no kind":             strings.Replace(list(one), `"kind": "fact", `, "", 1),
		"own reason":          strings.Replace(list(one), `"quote"`, `"reason": "it lasts", "quote"`, 1),
		"kind in other words": strings.Replace(list(one), `"fact"`, `" Facts"`, 1),
	} {
		got := summarize(t, answers(answer), Options{}, talk("I moved to Berlin"), yes)
		if len(got) != 1 || got[0].Text != "The user moved to Berlin." || got[0].Kind != memory.KindFact || got[0].Importance != 0.5 ||
			got[0].MessageIDs[0] != "#0" {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		want := "the verdict's reason"
		if name == "own reason" {
			want = "it lasts"
		}
		if got[0].Reason != want {
			t.Errorf("%s: the reason is %q", name, got[0].Reason)
		}
	}
	for written, want := range map[string]memory.Kind{"偏好": memory.KindPreference, "Appointments": memory.KindAppointment, "todo": memory.KindTask} {
		if got := kindOf(written); got != want {
			t.Errorf("%s is taken for %s", written, got)
		}
	}
	for written, want := range map[string]float64{"7": 1, "-3": 0, "1e-3": 0.001} {
		if got, err := importance([]byte(written)); err != nil || got != want {
			t.Errorf("importance %s is read as %v, %v", written, got, err)
		}
	}
}

// TestBrokenSummaries: one wrong statement makes the answer wrong; it is asked for once more. Then it fails, unless some of
// its statements are right: these are kept, and the others named.
func TestBrokenSummaries(t *testing.T) {
	good := st("用户住在上海", `["m0"]`, "我住在上海")
	for _, c := range []struct{ broken, problem string }{
		{"nothing", "no valid JSON"},
		{`{"statements": [` + good + `, {"text": "用户`, `no object with "statements"`},
		{`{"statements": {}}`, `"statements" is not an array`},
		{`{"statements": null}`, `"statements" is not an array`},
		{`[]`, `no object with "statements"`},
		{good, `no object with "statements"`},
		{list("null"), "statements[0]: it is no object"},
		{list(good, `{"text": 5}`), "statements[1]: it is no object"},
		{list(good, st("  ", `["m0"]`, "")), `statements[1]: "text" is required`},
		{list(good, st("用户住在北京", `["m2"]`, "")), `statements[1]: "messages" names none of the user's`},
		{list(st(strings.Repeat("用户", memory.MaxTextRunes), `["m0"]`, "")), "longer than 4000"},
		{list(st("用户", `[]`, "")), "cite the messages"},
		{list(st("用户", `null`, "")), "cite the messages"},
		{list(st("用户", `["m9"]`, "")), "names m9, which the transcript does not have"},
		{list(st("用户", `["m3"]`, "")), "names m3, which the transcript does not have"}, // empty
		{list(st("用户", `["the first"]`, "")), "not a list of messages"},
		{list(st("用户", `["m0-m2"]`, "")), "not a list of messages"},
		{list(st("用户", `[-1]`, "")), "not a list of messages"},
		{list(st("用户", `["m1", "m2"]`, "")), "names none of the user's"},
		{list(`{"text": "用户", "kind": "fact", "messages": ["m0"]}`), `"importance" is not a number`},
		{list(`{"text": "用户", "kind": "fact", "importance": null, "messages": ["m0"]}`), `"importance" is not a number`},
		{list(`{"text": "用户", "kind": "fact", "importance": "NaN", "messages": ["m0"]}`), `"importance" is not a number`},
		{list(`{"text": "用户", "kind": "fact", "importance": "inf", "messages": ["m0"]}`), `"importance" is not a number`},
		{list(`{"text": "用户", "kind": "fact", "importance": 1e999, "messages": ["m0"]}`), `"importance" is not a number`},
		{list(st("The user lives in Shanghai.", `["m0"]`, "")), "in English, but the conversation is in Chinese (中文): write it in Chinese (中文)"},
		{list(many(maxStatements + 1)...), "101 statements"},
	} {
		tr := talk("我住在上海", "A: 好", "B: 我住在北京", "")
		m := answers(c.broken, list(good))
		if got := summarize(t, m, Options{}, tr, yes); len(got) != 1 || got[0].Text != "用户住在上海" || len(m.prompts) != 2 {
			t.Errorf("%.80s: not asked again: %+v", c.broken, got)
			continue
		}
		if again := strings.TrimPrefix(m.prompts[1], m.prompts[0]); !strings.Contains(again, c.problem) {
			t.Errorf("%.80s: the second prompt does not say %q: %s", c.broken, c.problem, again)
		}
		m = answers(c.broken, c.broken, list(good))
		tr.Notes = &decide.Remarks{}
		got, err := newSummarizer(t, m, Options{Explicit: asked("#0", "我住在上海")}).Summarize(t.Context(), tr, yes)
		if strings.HasPrefix(c.problem, "statements[1]") { // the first one is right
			if notes := strings.Join(tr.Notes.All(), "|"); err != nil || len(got) != 1 || got[0].Text != "用户住在上海" || len(m.prompts) != 2 ||
				!strings.Contains(notes, "1 statement of the model was left out") || !strings.Contains(notes, c.problem) {
				t.Errorf("%.80s: the second failure gives %+v, %v with the notes %q", c.broken, got, err, notes)
			}
			continue
		}
		if !errors.Is(err, answer.ErrUnusable) || !strings.Contains(err.Error(), c.problem) || got != nil || len(m.prompts) != 2 {
			t.Errorf("%.80s: the second failure gives %+v, %v after %d calls", c.broken, got, err, len(m.prompts))
		}
	}
}

func many(n int) []string {
	var out []string
	for i := range n {
		out = append(out, st(fmt.Sprintf("用户有%d只猫", i), `["m0"]`, ""))
	}
	return out
}

func TestLanguageOfStatements(t *testing.T) {
	for _, c := range []struct {
		text, messages string
		lines          []string
		ok             bool
	}{
		{"The user lives in Shanghai.", `["m0"]`, []string{"我住在上海"}, false},
		{"用户住在上海", `["m0"]`, []string{"I live in Shanghai"}, false},
		{"The user lives in Seoul.", `["m0"]`, []string{"저는 서울에 살아요"}, false},
		{"The user is allergic to peanuts.", `["m0", "m1"]`, []string{"A: 你对花生过敏，对吗？", "ok", "我住在上海"}, false},
		{"用户的邮箱是 a.very.long.address@example.com", `["m0"]`, []string{"我的邮箱是 a.very.long.address@example.com"}, true},
		{"The user's name is 王小明.", `["m0"]`, []string{"My name is 王小明 and I am new here"}, true},
		{"The user loves hiking.", `["m1"]`, []string{"我住在上海，周末喜欢和朋友吃饭", "I really love hiking"}, true}, // the words' own language
		{"用户喜欢徒步", `["m1"]`, []string{"我住在上海，周末喜欢和朋友吃饭", "I really love hiking"}, true},                 // the dialogue's
		{"用户的程序报错", `["m0"]`, []string{"TypeError: undefined is not a function\n这个程序一直报错怎么办"}, true},
		{"L'utilisateur aime le fromage.", `["m0"]`, []string{"I like cheese"}, true}, // not told for certain
	} {
		tr := talk(c.lines...)
		_, err := newSummarizer(t, answers(list(st(c.text, c.messages, "")), list(st(c.text, c.messages, ""))), Options{}).Summarize(t.Context(), tr, yes)
		if (err == nil) != c.ok {
			t.Errorf("%q of %q: %v", c.text, c.lines, err)
		}
	}
}

func TestQuotes(t *testing.T) {
	long := strings.Repeat("我喜欢吃苹果和香蕉。", 50)
	tr := talk("我住在  上海\n浦东，喜欢 Jazz", "A: 你是素食者，对吗？", "B: 我住在北京", "对", long, strings.Repeat("啊", 290)+"👨‍👩‍👧"+strings.Repeat("哦", 20))
	for _, c := range []struct {
		cited        []int
		given, quote string
	}{
		{[]int{0}, "喜欢 Jazz", "喜欢 Jazz"},
		{[]int{0}, "我住在上海浦东", "我住在  上海\n浦东"},
		{[]int{0}, "喜欢 jazz", "我住在  上海\n浦东，喜欢 Jazz"}, // not verbatim
		{[]int{0}, "", "我住在  上海\n浦东，喜欢 Jazz"},
		{[]int{1, 3}, "你是素食者，对吗？", "你是素食者，对吗？"},
		{[]int{1, 3}, "我是素食者", "对"},
		{[]int{0, 3}, "", "对"},
		{[]int{2, 3}, "我住在北京", "对"}, // never another person's words
		{[]int{0, 3}, "我住在北京", "对"},
		{[]int{4}, "", strings.Repeat("我喜欢吃苹果和香蕉。", 30)},
		{[]int{4}, long, strings.Repeat("我喜欢吃苹果和香蕉。", 30)},
		{[]int{5}, "", strings.Repeat("啊", 290) + "👨‍👩‍👧" + strings.Repeat("哦", 5)},
	} {
		if got := quote(tr, c.cited, c.given); got != c.quote {
			t.Errorf("%v, %.30q: %q, want %q", c.cited, c.given, got, c.quote)
		}
	}
	for limit, want := range map[int]string{4: "a", 6: "a👨‍👩‍👧", 9: "a👨‍👩‍👧 bc"} {
		if got := cutText("a👨‍👩‍👧 bcdefghijklm", limit); got != want {
			t.Errorf("cut to %d: %q, want %q", limit, got, want)
		}
	}
	if got := cutText("我住在上海浦东。我喜欢吃苹果", 12); got != "我住在上海浦东。" {
		t.Errorf("cut to %q, not after the sentence", got)
	}
	if got := cutText("a"+strings.Repeat("\u0301", 100), 10); len([]rune(got)) != 10 {
		t.Errorf("one enormous character is cut to %q", got)
	}
}

// TestExplicitRequestsAreKept: each request has a statement that is marked, if need be in its own words.
func TestExplicitRequestsAreKept(t *testing.T) {
	explicit := decide.Verdict{Remember: true, Explicit: true, Reason: "asked"}
	const both = "记住我对花生过敏。我住在上海市浦东新区"
	for name, c := range map[string]struct {
		lines    []string
		requests requests
		verdict  decide.Verdict
		answer   string
		want     []string // "!" marks explicit ones
	}{
		"answered": {
			[]string{both},
			asked("#0", "我对花生过敏"), explicit,
			list(st("用户对花生过敏", `["m0"]`, "我对花生过敏"), st("用户住在上海市浦东新区", `["m0"]`, "我住在上海市浦东新区")),
			[]string{"!用户对花生过敏", "用户住在上海市浦东新区"},
		},
		"no statement": {[]string{both}, asked("#0", "我对花生过敏"), explicit, list(), []string{"!用户说：“我对花生过敏”"}},
		"another of the same message": {
			[]string{both},
			asked("#0", "我对花生过敏"), explicit, list(st("用户住在上海市浦东新区", `["m0"]`, "我住在上海市浦东新区")),
			[]string{"用户住在上海市浦东新区", "!用户说：“我对花生过敏”"},
		},
		"the same, unquoted": {
			[]string{both},
			asked("#0", "我对花生过敏"), explicit, list(st("用户住在上海市浦东新区", `["m0"]`, "")),
			[]string{"用户住在上海市浦东新区", "!用户说：“我对花生过敏”"},
		},
		"answered, unquoted": {[]string{both}, asked("#0", "我对花生过敏"), explicit, list(st("用户对花生过敏", `["m0"]`, "")), []string{"!用户对花生过敏"}},
		"answered without common word": {
			[]string{"帮我记一下明天有会"},
			asked("#0", "明天有会"), explicit, list(st("用户3月5日开例会", `["m0"]`, "明天有会")),
			[]string{"!用户3月5日开例会"},
		},
		"all of the message": {
			[]string{"记住明天开会"},
			asked("#0", "明天开会"), explicit, list(st("用户3月5日有例行安排", `["m0"]`, "")),
			[]string{"!用户3月5日有例行安排"},
		},
		"other message": {
			[]string{"记住我喜欢猫", "我住在上海"},
			asked("#0", "我喜欢猫"), explicit, list(st("用户住在上海", `["m1"]`, "")),
			[]string{"!用户说：“我喜欢猫”", "用户住在上海"},
		},
		"English": {
			[]string{"Remember that I'm vegan"},
			asked("#0", "I'm vegan"), explicit, list(),
			[]string{`!The user said: "I'm vegan"`},
		},
		"Japanese": {[]string{"私は卵アレルギーです。覚えて"}, asked("#0", "私は卵アレルギーです。"), explicit, list(), []string{"!ユーザーは「私は卵アレルギーです。」と言った。"}},
		"two in one message": {
			[]string{"记住：1. 我不吃辣 2. 我住在北京，还有很多别的事情要说"},
			append(asked("#0", "我不吃辣"), asked("#0", "我住在北京")...),
			explicit, list(st("用户不吃辣", `["m0"]`, "我不吃辣")),
			[]string{"!用户不吃辣", "!用户说：“我住在北京”"},
		},
		"verdict of another decider": {[]string{"记住我喜欢猫"}, requests{}, explicit, list(st("用户喜欢猫", `["m0"]`, "")), []string{"!用户喜欢猫"}},
		"that, and nothing":          {[]string{"记住我喜欢猫"}, nil, explicit, list(), []string{"!用户说：“记住我喜欢猫”"}},
		"remember that":              {[]string{"我喜欢猫", "记住这个"}, nil, explicit, list(st("用户喜欢猫", `["m0"]`, "")), []string{"!用户喜欢猫"}},
		"unknown message":            {[]string{"我喜欢猫", "记住"}, asked("#9", ""), explicit, list(), []string{"!用户说：“记住”"}},
		"verdict does not say":       {[]string{"记住我喜欢猫"}, asked("#0", "我喜欢猫"), yes, list(), []string{"!用户说：“我喜欢猫”"}},
		"no request":                 {[]string{"我喜欢猫"}, requests{}, yes, list(st("用户喜欢猫", `["m0"]`, "")), []string{"用户喜欢猫"}},
	} {
		o := Options{}
		if c.requests != nil {
			o.Explicit = c.requests
		}
		m := answers(c.answer)
		var got []string
		for _, s := range summarize(t, m, o, talk(c.lines...), c.verdict) {
			if len(c.requests) > 0 && c.requests[0].Quote != "" && s.Explicit && !strings.Contains(s.Reason, "the user asked for it to be remembered") {
				t.Errorf("%s: the reason is %q", name, s.Reason)
			}
			mark := ""
			if s.Explicit {
				mark = "!"
			}
			if s.Explicit != (s.Importance == 1) || s.Reason == "" || s.Quote == "" || s.ObservedAt.IsZero() || len(s.MessageIDs) == 0 || !s.Kind.Valid() {
				t.Errorf("%s: %+v", name, s)
			}
			got = append(got, mark+s.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if told := strings.Contains(m.prompts[0], "asked to have something in m"); told != (len(c.requests) > 0) {
			t.Errorf("%s: the prompt tells of the request: %v", name, told)
		}
	}
}

func TestLongRequestIsKept(t *testing.T) {
	words := strings.Repeat("我喜欢吃苹果，", 2000)
	s := summarize(t, answers(list()), Options{Explicit: asked("#0", words)}, talk("记住"+words), yes)
	if len(s) != 1 || memory.TextProblem(s[0].Text) != "" || !strings.HasSuffix(s[0].Text, "”") || len([]rune(s[0].Quote)) > maxQuoteRunes {
		t.Errorf("%q", texts(s))
	}
	// The request is older than what fits into the prompt.
	lines := []string{"记住我喜欢猫"}
	for range 200 {
		lines = append(lines, "A: 好的，我明白了，我们继续聊别的话题吧")
	}
	lines = append(lines, "我住在上海")
	m := answers(list(st("用户住在上海", `["m201"]`, "")))
	s = summarize(t, m, Options{Explicit: asked("#0", "我喜欢猫"), MaxChars: 1000}, talk(lines...),
		decide.Verdict{Remember: true, Explicit: true, Reason: "asked"})
	if got := texts(s); !slices.Equal(got, []string{"用户说：“我喜欢猫”", "用户住在上海"}) || !strings.Contains(s[1].Reason, "were not read") ||
		strings.Contains(m.prompts[0], "asked to have") {
		t.Errorf("%q, %q", got, s[1].Reason)
	}
}
