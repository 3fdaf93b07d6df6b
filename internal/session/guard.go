package session

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// failurePhrases are typical words of bots about errors, in lower case.
var failurePhrases = []string{
	"出错了", "出了点错", "出了点问题", "出现错误", "出现异常", "发生错误", "发生异常", "遇到错误", "遇到了错误", "遇到问题", "遇到了问题",
	"请求失败", "调用失败", "查询失败", "获取失败", "加载失败", "处理失败", "执行失败", "连接失败", "生成失败", "搜索失败",
	"无法处理", "无法完成", "无法获取", "无法访问", "无法连接", "无法回答", "暂时无法", "暂时不能", "未能获取", "未能完成",
	"服务不可用", "暂不可用", "暂时不可用", "系统繁忙", "服务繁忙", "服务器繁忙", "系统错误", "服务器错误", "内部错误", "网络错误", "网络异常",
	"请求超时", "连接超时", "响应超时", "超时了", "稍后再试", "稍后重试", "稍候再试", "请重试", "再试一次",
	"something went wrong", "error occurred", "encountered an error", "ran into an error", "ran into a problem",
	"internal error", "server error", "network error",
	"try again later", "please try again", "try again in a", "request failed", "failed to ", "unable to ", "timed out", "timeout",
	"i couldn't", "i could not", "i wasn't able to", "i was not able to", "i'm not able to", "i am not able to",
	"couldn't complete", "could not complete",
	"service unavailable", "temporarily unavailable", "currently unavailable", "not available right now",
	"rate limit", "too many requests", "overloaded",
}

// guard finds replies that look like a failure: a model that reads them in the next window may give up again.
type guard struct {
	maxRunes int      // longest such reply; 0 finds none
	phrases  []string // folded
}

func newGuard(maxRunes int, phrases []string) guard {
	g := guard{maxRunes: maxRunes, phrases: slices.Clone(failurePhrases)}
	for _, p := range phrases {
		if p = folded(p); p != "" {
			g.phrases = append(g.phrases, p)
		}
	}
	return g
}

func folded(text string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(text), "’", "'"))
}

// Exclusion says why a message is excluded from windows and considerations.
type Exclusion uint8

// The reasons.
const (
	NotExcluded     Exclusion = iota
	WithheldFailure           // looks like a failure
	WithheldClaim             // claims a result without evidence
)

// turn is a person's messages and the answer.
type turn struct {
	start, end int
	tools      bool // a tool was called
}

// turnsOf splits messages into turns.
func turnsOf(messages []memory.Message) func(yield func(turn) bool) {
	return func(yield func(turn) bool) {
		for start := 0; start < len(messages); {
			t := turn{start: start, end: start + 1}
			for t.end < len(messages) && messages[t.end].Role != memory.RoleUser {
				t.end++
			}
			t.tools = slices.ContainsFunc(messages[start:t.end], func(m memory.Message) bool {
				return m.Role == memory.RoleTool || len(m.Tools) > 0
			})
			if !yield(t) {
				return
			}
			start = t.end
		}
	}
}

// withheld returns which of the messages are failures; nil if none is. A turn with a tool call did something, so it is never a failure.
func (g guard) withheld(messages []memory.Message) []Exclusion {
	if g.maxRunes <= 0 {
		return nil
	}
	var found []Exclusion
	for t := range turnsOf(messages) {
		for i := t.start; i < t.end && !t.tools; i++ {
			if messages[i].Role != memory.RoleAssistant || !g.failure(messages[i].Content) {
				continue
			}
			if found == nil {
				found = make([]Exclusion, len(messages))
			}
			found[i] = WithheldFailure
		}
	}
	return found
}

func (g guard) failure(content string) bool {
	content = folded(content)
	return content != "" && utf8.RuneCountInString(content) <= g.maxRunes &&
		slices.ContainsFunc(g.phrases, func(p string) bool { return strings.Contains(content, p) })
}
