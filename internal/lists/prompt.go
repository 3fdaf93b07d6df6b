package lists

import (
	"fmt"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/prompt"
)

// The rules that keep a model honest travel with the data: a model that has only read titles makes URLs up.
const (
	ruleZH = "当用户用序号（如“3”“第三个”“最后一个”）选择条目时，必须先调用 select（SelectItems）取得该条目的真实 key；严禁凭记忆或上下文猜测、编造 URL。"
	ruleEN = "When the user answers with a number (such as \"3\", \"the third one\" or \"last\"), call select (SelectItems) first and use the key that it returns; never guess or make up a URL."
)

// Prompts words what a model must know. The language is that asked for, else that of the titles; there is wording for Chinese,
// and English serves all others.
type Prompts struct{ chinese bool }

// PromptsFor chooses the language.
func PromptsFor(language string, titles func(yield func(string) bool)) Prompts {
	if language == "" {
		var all strings.Builder
		for title := range titles {
			all.WriteString(title)
			all.WriteByte('\n')
		}
		language = lexical.Language(all.String())
	}
	base, _, _ := strings.Cut(language, "-")
	return Prompts{chinese: strings.EqualFold(base, "zh")}
}

// Titles are those of a list.
func Titles(items []Numbered) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range items {
			if !yield(items[i].Title) {
				return
			}
		}
	}
}

// Rule is what holds for any list: fit for a tool's description, too.
func (p Prompts) Rule() string {
	if p.chinese {
		return ruleZH
	}
	return ruleEN
}

// List is about a list that is being shown.
func (p Prompts) List(list string, count int) string {
	switch name := prompt.Line(list); {
	case p.chinese:
		return fmt.Sprintf("正在展示的列表（%s）共 %d 项，序号为 1–%d。%s", name, count, count, ruleZH)
	case count == 1:
		return fmt.Sprintf("The list being shown (%s) has 1 item, number 1. %s", name, ruleEN)
	default:
		return fmt.Sprintf("The list being shown (%s) has %d items, numbers 1 to %d. %s", name, count, count, ruleEN)
	}
}

// maxChosen is how many selected items a prompt has; the model may ask for others.
const maxChosen = 20

// Chosen is about the items that were selected: one, several, or expressly none.
func (p Prompts) Chosen(items []Numbered, count int) string {
	switch {
	case len(items) == 1:
		return p.one(&items[0], count)
	case len(items) == 0 && p.chinese:
		return fmt.Sprintf("用户表示列表中的 %d 项都不要。不要替用户选择其中任何一项，严禁猜测、编造 URL。", count)
	case len(items) == 0:
		return fmt.Sprintf("The user wants none of the %d items of the list. Do not choose one of them for the user, "+
			"and never guess or make up a URL.", count)
	}
	var named []string
	for i := range items[:min(len(items), maxChosen)] {
		named = append(named, p.named(&items[i]))
	}
	all, rest := strings.Join(named, "; "), len(items)-len(named)
	switch {
	case !p.chinese && rest > 0:
		all += fmt.Sprintf("; and %d more", rest)
	case p.chinese:
		all = strings.Join(named, "；")
		if rest > 0 {
			all += fmt.Sprintf("；以及另外 %d 项", rest)
		}
	}
	if p.chinese {
		return fmt.Sprintf("用户选择了 %d 项（共 %d 项）：%s 。后续步骤只使用这些 key，严禁猜测、编造 URL；用户再回复别的序号时，重新调用 select（SelectItems）。",
			len(items), count, all)
	}
	return fmt.Sprintf("The user selected %d of %d items: %s . Use these keys and no others, and never guess or make up a URL; "+
		"for another number call select (SelectItems) again.", len(items), count, all)
}

// key is a key as it may stand in a prompt. One that would be another there is not shown.
func key(n *Numbered) string {
	if shown := prompt.Line(n.Key); shown == n.Key {
		return shown
	}
	return "key"
}

// named is an item among several.
func (p Prompts) named(n *Numbered) string {
	switch title := prompt.Line(n.Title); {
	case p.chinese && title == "":
		return fmt.Sprintf("第 %d 项，真实 key：%s", n.Number, key(n))
	case p.chinese:
		return fmt.Sprintf("第 %d 项 %s，真实 key：%s", n.Number, title, key(n))
	case title == "":
		return fmt.Sprintf("number %d, its real key: %s", n.Number, key(n))
	default:
		return fmt.Sprintf("number %d, %s, its real key: %s", n.Number, title, key(n))
	}
}

// one is about the only item that was selected.
func (p Prompts) one(n *Numbered, count int) string {
	title := prompt.Line(n.Title)
	of, its := fmt.Sprintf("number %d of %d", n.Number, count), ", its real key: "
	if p.chinese {
		of, its = fmt.Sprintf("第 %d 项（共 %d 项）", n.Number, count), "，真实 key："
	}
	switch {
	case title == "":
	case p.chinese:
		its = "：" + title + "；真实 key："
	default:
		its = ": " + title + "; its real key: "
	}
	if p.chinese {
		return "用户选择了" + of + its + key(n) + " 。后续步骤只使用这个 key，严禁猜测、编造 URL；用户再回复别的序号时，重新调用 select（SelectItems）。"
	}
	return "The user selected " + of + its + key(n) + " . Use this key and no other, and never guess or make up a URL; for another number " +
		"call select (SelectItems) again."
}
