package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
)

var at = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// piece returns a conversation. The user's turns begin with ">".
func piece(considered bool, language string, lines ...string) digest.Piece {
	p := digest.Piece{Scope: memory.Scope{Namespace: "n", UserID: "u"}, Location: time.UTC, Language: language}
	for i, line := range lines {
		m := digest.Message{Position: int64(i + 1), Considered: considered, Message: memory.Message{Role: memory.RoleAssistant, Content: line, Time: at}}
		if text, ok := strings.CutPrefix(line, ">"); ok {
			m.Role, m.Speaker, m.Content = memory.RoleUser, "u", text
		}
		p.Messages = append(p.Messages, m)
	}
	return p
}

func extract(t *testing.T, p digest.Piece) []string {
	t.Helper()
	found, err := newRules(t).Extract(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range found {
		s := string(f.Category) + ": " + f.Text
		if f.Key != "" {
			s = string(f.Category) + ": " + f.Key + "=" + f.Text
		}
		if f.Solution != "" {
			s += " => " + f.Solution
		}
		list = append(list, s)
	}
	return list
}

func TestExtract(t *testing.T) {
	for name, test := range map[string]struct {
		piece digest.Piece
		want  string
	}{
		"the assistant has the solution": {
			piece(true, "zh", ">你好", "你好！", ">启动的时候报错port already in use，怎么办？", "这是端口被占用了。可以先用lsof -i :7420找到进程，再结束它。", ">谢谢"),
			"issue: 启动的时候报错port already in use，怎么办？ => 可以先用lsof -i :7420找到进程，再结束它。",
		},
		"the user found it": {
			piece(true, "en", ">My build fails with a linker error.", "Try cleaning the cache.", ">Fixed it, it was the old SDK path in CGO_CFLAGS."),
			"issue: My build fails with a linker error. => Fixed it, it was the old SDK path in CGO_CFLAGS.",
		},
		"without a solution": {
			piece(true, "en", ">The printer is broken again.", "Oh no!"),
			"issue: The printer is broken again.",
		},
		"an unanswered question": {piece(true, "zh", ">怎么才能让周末变长一点呢？", "哈哈，我也想知道。"), ""},
		"small talk":             {piece(false, "en", ">Hi, how are you?", "Fine! And you?", ">Great, thanks."), ""},
		"understood": {
			piece(true, "zh", ">嗯，我终于明白了为什么索引会变慢：统计信息过期了。", "太好了。"),
			"insight: 我终于明白了为什么索引会变慢：统计信息过期了。",
		},
		"not considered by itself": {
			piece(false, "zh", ">我喜欢喝乌龙茶，不加糖。", "记住了。", ">我决定下个月换工作。"),
			"preference: 偏好=我喜欢喝乌龙茶，不加糖。\ndecision: 我决定下个月[2026-12]换工作。",
		},
		"considered: only what considering does not yield": {piece(true, "zh", ">我喜欢喝乌龙茶，不加糖。", "记住了。"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(extract(t, test.piece), "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestRequestToForgetIsLeftOut: A digest leaves out a request to forget.
func TestRequestToForgetIsLeftOut(t *testing.T) {
	if got := extract(t, piece(false, "en", ">Forget what I told you about my ex. I moved to Oslo.")); len(got) != 1 || !strings.Contains(got[0], "Oslo") {
		t.Errorf("found %q", got)
	}
}
