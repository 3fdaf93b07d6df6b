package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// talk builds a transcript of the user "u"; "A: " begins a message of the assistant, "B: " one of another user, "S: " a
// system message, "T: " a tool's.
func talk(lines ...string) decide.Transcript {
	d := memory.Dialogue{Scope: memory.Scope{UserID: "u"}}
	for i, l := range lines {
		m := memory.Message{Role: memory.RoleUser, Speaker: "u", Content: l, Time: noon.Add(time.Duration(i) * time.Minute)}
		if rest, ok := strings.CutPrefix(l, "A: "); ok {
			m.Role, m.Speaker, m.Content = memory.RoleAssistant, "", rest
		} else if rest, ok := strings.CutPrefix(l, "B: "); ok {
			m.Speaker, m.Content = "b", rest
		} else if rest, ok := strings.CutPrefix(l, "S: "); ok {
			m.Role, m.Speaker, m.Content = memory.RoleSystem, "", rest
		} else if rest, ok := strings.CutPrefix(l, "T: "); ok {
			m.Role, m.Speaker, m.Content = memory.RoleTool, "", rest
		}
		d.Messages = append(d.Messages, m)
	}
	return decide.Transcript{Dialogue: d, Speaker: "u", Location: time.UTC}
}

func newRules(t testing.TB, cfg Config) *Rules {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func consider(t testing.TB, r *Rules, tr decide.Transcript) (decide.Verdict, []memory.Statement) {
	t.Helper()
	v, err := r.Decide(context.Background(), tr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Summarize(context.Background(), tr, v)
	if err != nil {
		t.Fatal(err)
	}
	if v.Reason == "" {
		t.Error("the verdict gives no reason")
	}
	if v.Remember != (len(s) > 0) {
		t.Errorf("verdict %v, but %d statements", v.Remember, len(s))
	}
	v.Reading = nil // another one each time
	return v, s
}

func texts(s []memory.Statement) []string {
	var out []string
	for _, x := range s {
		out = append(out, x.Text)
	}
	return out
}

func TestRemembers(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range slices.Concat(chineseKept, englishKept) {
		v, s := consider(t, r, talk(c.words))
		if got := texts(s); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q\n%s", c.words, got, c.want, v.Reason)
		}
		for _, x := range s {
			for part := range strings.SplitSeq(x.Quote, "\n") {
				if !strings.Contains(strings.ReplaceAll(c.words, " ", ""), strings.ReplaceAll(part, " ", "")) {
					t.Errorf("%q: quotes %q, which was not said", c.words, part)
				}
			}
		}
	}
}

func TestRemembersOnRequest(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range slices.Concat(chineseExplicit, englishExplicit) {
		v, s := consider(t, r, talk(c.words))
		if got := texts(s); !slices.Equal(got, c.want) || !v.Explicit || !s[0].Explicit || s[0].Importance < 0.9 {
			t.Errorf("%q\n got %q explicit %v\nwant %q\n%s", c.words, got, v.Explicit, c.want, v.Reason)
		}
	}
}

func TestSkips(t *testing.T) {
	r := newRules(t, Config{})
	for _, words := range slices.Concat(chineseSkipped, englishSkipped) {
		if v, s := consider(t, r, talk(words)); v.Remember {
			t.Errorf("%q is remembered as %q: %s", words, texts(s), v.Reason)
		}
	}
}

func TestDialogues(t *testing.T) {
	r := newRules(t, Config{})
	for name, c := range map[string]struct {
		lines []string
		want  []string
		refs  []string // of the first statement
	}{
		"confirmed appointment": {[]string{"A: 那就周五三点见牙医，可以吗？", "好，就周五三点"}, []string{"用户2026年3月6日（周五）三点见牙医"}, []string{"#0", "#1"}},
		"confirmed fact":        {[]string{"A: 你是不是对花生过敏？", "是的"}, []string{"用户对花生过敏"}, []string{"#0", "#1"}},
		"confirmed liking":      {[]string{"A: 你喜欢吃辣吗？", "喜欢"}, []string{"用户喜欢吃辣"}, []string{"#0", "#1"}},
		"confirmed plan":        {[]string{"A: 所以你打算明年去日本留学，对吧？", "对，没错"}, []string{"用户打算2027年去日本留学"}, []string{"#0", "#1"}},
		"confirmed in English": {
			[]string{"A: So you prefer window seats, correct?", "Correct, thanks"},
			[]string{"The user prefers window seats."},
			[]string{"#0", "#1"},
		},
		"confirmed inverted question": {[]string{"A: Do you live in Berlin?", "Yes I do"}, []string{"The user lives in Berlin."}, []string{"#0", "#1"}},
		"confirmed appointment, en": {
			[]string{"A: So the dentist is on Friday at 3, right?", "Yes"},
			[]string{"The dentist is on 2026-03-06 (Friday) at 3."},
			[]string{"#0", "#1"},
		},
		"confirmed proposal": {
			[]string{"A: How about Friday at 3 for the dentist?", "Works for me"},
			[]string{`The user confirmed on 2026-03-04: "How about Friday at 3 for the dentist?"`},
			[]string{"#0", "#1"},
		},
		"denied":                        {[]string{"A: You have two kids, right?", "No"}, nil, nil},
		"denied in Chinese":             {[]string{"A: 你住在北京，对吗？", "不是"}, nil, nil},
		"suggestion accepted":           {[]string{"A: 你可以试试瑜伽", "好的，谢谢"}, nil, nil},
		"suggestion asked and accepted": {[]string{"A: 你可以多喝水，好吗？", "嗯"}, nil, nil},
		"offer accepted":                {[]string{"A: 需要我给你讲个笑话吗？", "好"}, nil, nil},
		"offer accepted, en":            {[]string{"A: Would you like a joke?", "yes"}, nil, nil},
		"statement thanked for":         {[]string{"A: I like tea. I live in Berlin.", "ok"}, nil, nil},
		"answered question":             {[]string{"A: 你叫什么名字？", "小明"}, []string{"助手问“你叫什么名字？”，用户回答“小明”"}, []string{"#0", "#1"}},
		"answered question, en": {
			[]string{"A: Where do you live?", "In Austin"},
			[]string{`Asked "Where do you live?", the user answered: "In Austin".`},
			[]string{"#0", "#1"},
		},
		"answered other question":       {[]string{"A: How can I help you today?", "the weather"}, nil, nil},
		"remember the previous message": {[]string{"我对花生过敏", "A: 好的", "记住这个"}, []string{"用户对花生过敏"}, []string{"#0", "#2"}},
		"past thanks":                   {[]string{"I park on B2", "thanks", "Remember that."}, []string{"The user parks on B2."}, []string{"#0", "#2"}},
		"nothing to remember":           {[]string{"记住这个"}, nil, nil},
		"others' words":                 {[]string{"B: 我喜欢吃辣", "S: I like tea", "T: I live in Rome", "A: 我喜欢猫", "哈哈"}, nil, nil},
		"own among others' words":       {[]string{"B: 我喜欢吃辣", "我不吃辣"}, []string{"用户不吃辣"}, []string{"#1"}},
		"said twice":                    {[]string{"我喜欢猫", "A: 真好", "我喜欢猫"}, []string{"用户喜欢猫"}, []string{"#0"}},
		"two languages":                 {[]string{"我喜欢猫", "I live in Rome"}, []string{"用户喜欢猫", "The user lives in Rome."}, []string{"#0"}},
		"Japanese on request":           {[]string{"私は卵アレルギーです。覚えておいてください。"}, []string{"ユーザーは「私は卵アレルギーです。覚えておいてください。」と言った。"}, []string{"#0"}},
		"Japanese otherwise":            {[]string{"私は猫が好きです"}, nil, nil},
		"Spanish on request": {
			[]string{"Recuerda que soy alérgico a los cacahuetes"},
			[]string{`The user said: "Recuerda que soy alérgico a los cacahuetes"`},
			[]string{"#0"},
		},
		"Spanish otherwise":          {[]string{"Me llamo Juan y vivo en Madrid"}, nil, nil},
		"a pasted text to translate": {[]string{"请翻译下面这段话：\n我住在北京。我喜欢猫。"}, nil, nil},
		"fact after code":            {[]string{"```go\nI like this\n```\nI like Go"}, []string{"The user likes Go."}, []string{"#0"}},
	} {
		t.Run(name, func(t *testing.T) {
			v, s := consider(t, r, talk(c.lines...))
			if got := texts(s); !slices.Equal(got, c.want) {
				t.Fatalf("got %q, want %q (%s)", got, c.want, v.Reason)
			}
			if len(s) > 0 && !slices.Equal(s[0].MessageIDs, c.refs) {
				t.Errorf("cites %v, want %v", s[0].MessageIDs, c.refs)
			}
		})
	}
}

func TestFields(t *testing.T) {
	r := newRules(t, Config{})
	tr := talk("哈哈", "我喜欢吃辣，你呢？")
	tr.Dialogue.Messages[1].ID = "m-7"
	v, s := consider(t, r, tr)
	want := memory.Statement{
		Text: "用户喜欢吃辣", Language: "zh", Kind: memory.KindPreference, Importance: 0.4, MessageIDs: []string{"m-7"},
		Quote: "我喜欢吃辣", Reason: `preference: "喜欢"(+1), about the user (+1)`, ObservedAt: noon.Add(time.Minute),
	}
	if len(s) != 1 || fmt.Sprint(s[0]) != fmt.Sprint(want) {
		t.Errorf("got %+v\nwant %+v", s, want)
	}
	if v.Reason != want.Reason {
		t.Errorf("verdict's reason is %q", v.Reason)
	}
}

func TestKinds(t *testing.T) {
	r := newRules(t, Config{})
	for words, want := range map[string]memory.Kind{
		"我喜欢吃辣": memory.KindPreference, "我妈下周三下午两点做体检": memory.KindAppointment, "我养了一只猫": memory.KindRelationship,
		"我打算学吉他": memory.KindPlan, "我决定辞职": memory.KindDecision, "昨天我去看了《沙丘》": memory.KindExperience, "我正在写论文": memory.KindTask,
		"以后叫我老王": memory.KindRequest, "我住在上海": memory.KindFact, "这个bug修好了": memory.KindProblem,
		"I like tea": memory.KindPreference, "I'm meeting Ann for lunch on Tuesday": memory.KindAppointment,
		"My sister is a nurse":    memory.KindRelationship,
		"I plan to learn sailing": memory.KindPlan, "I decided to stay": memory.KindDecision, "I visited Rome": memory.KindExperience,
		"I'm writing my thesis": memory.KindTask, "Call me Al": memory.KindRequest, "I live in Rome": memory.KindFact,
		"I'm struggling with debt": memory.KindProblem,
	} {
		_, s := consider(t, r, talk(words))
		if len(s) != 1 || s[0].Kind != want {
			t.Errorf("%q: want one %s, got %+v", words, want, s)
		}
	}
}

func TestReasonsForSkipping(t *testing.T) {
	r := newRules(t, Config{})
	for words, want := range map[string]string{
		"你好！你喜欢什么？":           "only small talk and questions",
		"B: 我喜欢吃辣":            "no message of this user",
		"别记住我的地址是人民路1号":       "the user asked not to remember this",
		"谢谢，我会注意的！我有个小问题想请教你": "only small talk, promises to follow advice and announcements",
		"今天我去了公园散步": `nothing the user said reaches the threshold 2: best was 0 for "今天我去了公园散步" (experience: "去了"(+1), ` +
			`everyday: "公园"(-2), about the user (+1))`,
		"remember this":         "the user asked to remember something, but had said nothing that could be meant",
		"I take the bus":        `nothing the user said reaches the threshold 2: best was 1 for "I take the bus" (about the user (+1))`,
		"```\nI like cats\n```": "the user said nothing in words",
	} {
		if v, _ := consider(t, r, talk(words)); v.Reason != want {
			t.Errorf("%q: %q, want %q", words, v.Reason, want)
		}
	}
}

func TestConfig(t *testing.T) {
	custom := newRules(t, Config{Threshold: 3, MaxStatements: 1, Signals: []Signal{
		{Name: SignalPreference, Weight: 5},
		{Name: SignalPlace, Off: true},
		{Name: "project", Weight: 4, Kind: memory.KindTask, Phrases: map[string][]string{"en": {"project zeus"}, "zh": {"宙斯项目"}}},
		{Name: SignalExplicit, Phrases: map[string][]string{"en": {"mark my words"}}},
	}})
	for words, want := range map[string]string{
		"I like tea":               "The user likes tea.",
		"I live in a village":      "",
		"宙斯项目延期了":                  "宙斯项目延期了",
		"Project Zeus is late":     "Project Zeus is late.",
		"I like tea. I like milk.": "The user likes tea.",
		"mark my words: I run":     "The user runs.",
	} {
		_, s := consider(t, custom, talk(words))
		if got := strings.Join(texts(s), "|"); got != want {
			t.Errorf("%q: got %q, want %q", words, got, want)
		}
	}
	err := Config{Threshold: -1, MaxStatements: 5000, MaxStatementRunes: 3, Signals: []Signal{
		{Name: ""}, {Name: "x"}, {Name: "preference", Weight: 1000, Kind: "mood"}, {Name: "preference", Phrases: map[string][]string{"en": {"!!"}}},
	}}.Validate()
	if err == nil {
		t.Fatal("a wrong configuration is accepted")
	}
	for _, field := range []string{
		"threshold", "max_statements", "max_statement_runes", "signals[0].name", "signals[1].weight", "signals[1].phrases",
		"signals[2].weight", "signals[2].kind", "signals[3].name", "signals[3].phrases.en[0]",
	} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	a, b := newRules(t, Config{}), newRules(t, DefaultConfig())
	for _, c := range slices.Concat(chineseKept, englishKept) {
		_, x := consider(t, a, talk(c.words))
		_, y := consider(t, b, talk(c.words))
		if fmt.Sprint(x) != fmt.Sprint(y) {
			t.Errorf("%q: the zero configuration and the written-out defaults differ: %v, %v", c.words, x, y)
		}
	}
}

func TestMaxStatements(t *testing.T) {
	r := newRules(t, Config{MaxStatements: 3})
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "I visited town %d. ", i)
	}
	b.WriteString("Remember that I park on B2.")
	_, s := consider(t, r, talk(b.String()))
	if got := texts(s); len(got) != 3 || got[0] != "The user visited town 0." || got[2] != "The user parks on B2." {
		t.Errorf("got %q", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	r := newRules(t, Config{})
	want := fmt.Sprint(consider(t, r, talk("我喜欢猫，我住在上海。", "A: ok", "I work at Siemens")))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := fmt.Sprint(consider(t, r, talk("我喜欢猫，我住在上海。", "A: ok", "I work at Siemens"))); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := newRules(t, Config{}).Decide(ctx, talk("我喜欢猫")); err == nil {
		t.Error("a cancelled context is no error")
	}
}

func FuzzRules(f *testing.F) {
	for _, c := range slices.Concat(chineseKept[:20], englishKept[:20], chineseExplicit, englishExplicit) {
		f.Add(c.words, "好的")
	}
	f.Add("A: 那就周五三点见牙医，可以吗？", "好，就周五三点")
	f.Add("A: Do you live in Berlin?", "yes")
	f.Add("\xff\xfe我", "i'")
	f.Add("我\x01“", "remember \x01")
	r := newRules(f, Config{})
	f.Fuzz(func(t *testing.T, first, second string) {
		tr := talk(first, second)
		v, s := consider(t, r, tr)
		if !utf8.ValidString(v.Reason) {
			t.Error("the reason is not valid UTF-8")
		}
		for _, x := range s {
			if problem := memory.TextProblem(x.Text); problem != "" {
				t.Errorf("text %q %s", x.Text, problem)
			}
			if !utf8.ValidString(x.Quote) || !utf8.ValidString(x.Reason) || !x.Kind.Valid() || x.Importance < 0 || x.Importance > 1 ||
				len(x.MessageIDs) == 0 || x.ObservedAt.IsZero() || x.Language == "" {
				t.Errorf("wrong statement %+v", x)
			}
			for _, id := range x.MessageIDs {
				if id != "#0" && id != "#1" {
					t.Errorf("cites %q", id)
				}
			}
		}
	})
}

func BenchmarkDialogue(b *testing.B) {
	r := newRules(b, Config{})
	tr := talk("你好，我叫小明，今年20岁，在北京工作。", "A: 你好！", "I like spicy food, what should I cook?", "A: Try mapo tofu.", "谢谢，我会试试")
	b.ReportAllocs()
	for b.Loop() {
		consider(b, r, tr)
	}
}

func BenchmarkLargeMessage(b *testing.B) {
	r := newRules(b, Config{})
	tr := talk(strings.Repeat("我住在上海，喜欢猫。I work at Siemens and like tea. ", 256<<10/70))
	b.SetBytes(int64(len(tr.Dialogue.Messages[0].Content)))
	for b.Loop() {
		if _, err := r.Decide(context.Background(), tr); err != nil {
			b.Fatal(err)
		}
	}
}
