package extract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/session/summary/extract"
)

// talk makes lines of texts. The prefix "A: " means the bot.
func talk(user, bot string, texts ...string) session.Summarizing {
	var s session.Summarizing
	for _, text := range texts {
		l := session.Line{Label: user, Role: memory.RoleUser, Content: text}
		if content, ok := strings.CutPrefix(text, "A: "); ok {
			l = session.Line{Label: bot, Role: memory.RoleAssistant, Content: content}
		}
		s.Lines = append(s.Lines, l)
	}
	return s
}

func summarize(t *testing.T, maxRunes int, s session.Summarizing) []string {
	t.Helper()
	text, err := extract.New(maxRunes).Summarize(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCountInString(text); n > maxRunes {
		t.Errorf("%d characters, more than %d: %s", n, maxRunes, text)
	}
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

var chinese = talk("用户", "助手",
	"你好", "A: 你好呀！有什么可以帮你的吗？",
	"我下个月要带妈妈去成都旅游，她走不了太多路。", "A: 好的。成都很适合慢慢逛。",
	"哈哈，谢谢", "A: 不客气！",
	"成都有哪些景点走路少？", "A: 可以去人民公园喝茶，或者坐船游锦江。青城山有索道，走路也不多。今天天气真不错呢。",
	"妈妈对花生过敏，成都小吃里花生多吗？", "A: 成都小吃常放花生碎，点菜时说明对花生过敏就行。",
	"好的", "A: 嗯嗯。",
	"那就去人民公园和锦江，成都的酒店订在春熙路。", "A: 春熙路的酒店很方便，去人民公园坐地铁两站。",
)

var english = talk(
	"User",
	"Assistant",
	"Hello!",
	"A: Hello! How can I help you today?",
	"I'm training for the Berlin marathon in September. My knee hurts after long runs.",
	"A: A hurting knee after long runs is often a sign of too much too soon.",
	"ok thanks",
	"A: You're welcome!",
	"How many kilometres a week should I run for the marathon?",
	"A: For a marathon in September, start at 30 kilometres a week and add ten percent each week. The weather is lovely. Rest the knee on Mondays.",
	"lol",
	"A: :-)",
	"Then my plan is 30 kilometres a week, and no long runs until the knee is better.",
	"A: A good plan for the marathon.",
)

// TestKeepsImportantLinesInOrder: Important lines are kept in order with their speakers. Greetings and asides are not, even if there is
// room.
func TestKeepsImportantLinesInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		said     session.Summarizing
		maxRunes int
		want     []string // beginnings
		not      []string
	}{
		"Chinese, little room": {chinese, 120, []string{"用户: 我下个月要带妈妈去成都旅游", "用户: 那就去人民公园和锦江"}, []string{"哈哈", "你好", "天气", "不客气", "嗯嗯"}},
		"Chinese, room":        {chinese, 1000, []string{"用户: 我下个月要带妈妈去成都旅游", "用户: 妈妈对花生过敏", "助手: 成都小吃常放花生碎", "用户: 那就去人民公园和锦江"}, []string{"哈哈", "嗯嗯", "用户: 好的"}},
		"English, little room": {
			english, 200,
			[]string{"User: I'm training for the Berlin marathon in September.", "User: Then my plan is 30 kilometres"},
			[]string{"Hello", "lol", "weather", "welcome"},
		},
		"English, room": {
			english, 1000,
			[]string{"User: I'm training for the Berlin", "User: My knee hurts after long runs.", "Assistant: For a marathon in September", "User: Then my plan"},
			[]string{"lol", "ok thanks", "Hello!"},
		},
	} {
		lines := summarize(t, test.maxRunes, test.said)
		at := -1
		for _, want := range test.want {
			i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) })
			if i <= at {
				t.Errorf("%s: %q is missing, or not in order, in\n%s", name, want, strings.Join(lines, "\n"))
			}
			at = i
		}
		for _, not := range test.not {
			if strings.Contains(strings.Join(lines, "\n"), not) {
				t.Errorf("%s: %q is in\n%s", name, not, strings.Join(lines, "\n"))
			}
		}
	}
}

// TestImportantLinesOutliveSmallTalk: In a long conversation early important lines outlive small talk. Each line occurs once, oldest
// first, and the result is deterministic.
func TestImportantLinesOutliveSmallTalk(t *testing.T) {
	run := func() string {
		previous := strings.Join(summarize(t, 300, chinese), "\n")
		for i := range 30 {
			s := talk("用户", "助手", fmt.Sprintf("第%d天了，今天吃了面条。", i), "A: 面条好吃吗？", "嗯嗯 哈哈哈", "A: 好的呀", "对了，成都的酒店能退吗？妈妈说春熙路太吵。")
			s.Previous = previous
			previous = strings.Join(summarize(t, 300, s), "\n")
		}
		return previous
	}
	got := run()
	lines := strings.Split(got, "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "用户: 我下个月要带妈妈去成都旅游") })
	late := slices.Index(lines, "用户: 妈妈说春熙路太吵。")
	if first < 0 || late <= first {
		t.Errorf("the summary is\n%s", got)
	}
	slices.Sort(lines)
	if len(slices.Compact(lines)) != len(strings.Split(got, "\n")) {
		t.Errorf("lines occur twice in\n%s", got)
	}
	if again := run(); again != got {
		t.Errorf("the second result is\n%s\nthe first\n%s", again, got)
	}
}

// TestOddTexts: Code is left out, long sentences are cut, list marks are removed, and empty texts give nothing.
func TestOddTexts(t *testing.T) {
	long := strings.Repeat("很长的句子没有标点", 100)
	lines := summarize(
		t,
		1000,
		talk(
			"u",
			"a",
			"fix this deployment script\n```go\nfunc deployment() {}\n```\n- first bullet point here\n# Second heading point",
			long,
			"Version 3.5 of node.js costs 2.50 dollars",
			"\xffbroken bytes \u200b here too",
		),
	)
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"u: fix this deployment script", "u: first bullet point here", "u: Second heading point",
		"u: Version 3.5 of node.js costs 2.50 dollars", "…",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "func") {
		t.Errorf("code is in\n%s", text)
	}
	if got := summarize(t, 1000, talk("u", "a", "the printer is broken", "the printer is broken", "the printer is broken")); len(got) != 1 {
		t.Errorf("a line said three times gives %q", got)
	}
	for _, nothing := range [][]string{{}, {""}, {"嗯", "A: 好"}, {"!!!", "👍"}} {
		if got := summarize(t, 1000, talk("u", "a", nothing...)); got != nil {
			t.Errorf("%q gives %q", nothing, got)
		}
	}
	if got := summarize(t, 30, talk("u", "a", long)); len(got) > 1 {
		t.Errorf("a small limit gives %q", got)
	}
}

// FuzzSummarize: The summary keeps to its limit, and its lines are quotes of the speakers.
func FuzzSummarize(f *testing.F) {
	f.Add("成都的酒店。\nx: y\u2028 z", "old: line\nrest", 50)
	f.Fuzz(func(t *testing.T, said, previous string, maxRunes int) {
		s := talk("用户", "A", said, "A: "+said)
		s.Previous = previous
		summarize(t, 1+max(0, maxRunes%2000), s)
	})
}
