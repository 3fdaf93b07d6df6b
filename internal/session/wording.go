package session

import (
	"maps"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// Wording is the fixed text around a conversation in the prompt block, and in its text form.
type Wording struct {
	Header       string `koanf:"header"`
	Note         string `koanf:"note"`
	SummaryTitle string `koanf:"summary_title"`
	User         string `koanf:"user"`
	Assistant    string `koanf:"assistant"`
	System       string `koanf:"system"`
	Tool         string `koanf:"tool"`
	Footer       string `koanf:"footer"`
	TextTitle    string `koanf:"text_title"`
}

// Wordings has a wording for each language, a BCP 47 base language. "en" serves the languages that have none.
type Wordings map[string]Wording

// DefaultWordings follows the wording of the product's first users: context only, not a source of facts.
func DefaultWordings() Wordings {
	return Wordings{
		"zh": {
			Header: "【对话历史 - 仅供上下文参考，不作为事实依据】",
			Note: "以下是与用户的近期对话，帮助你理解用户的兴趣和问题背景。\n" +
				"注意：任何历史事实、人物、事件的信息必须从证据库中检索验证，不能仅凭对话历史回答。",
			SummaryTitle: "此前对话的摘要：",
			User:         "用户", Assistant: "助手", System: "系统", Tool: "工具",
			Footer:    "【对话历史结束】",
			TextTitle: "=== 对话历史 ===",
		},
		"en": {
			Header: "【Conversation so far - for context only, not a source of facts】",
			Note: "This is the recent conversation with the user. It helps you to understand the user's interests and what a question " +
				"is about.\nNote: facts about history, people or events must be verified from evidence and not be taken from this " +
				"conversation alone.",
			SummaryTitle: "Summary of what came before:",
			User:         "User", Assistant: "Assistant", System: "System", Tool: "Tool",
			Footer:    "【End of the conversation so far】",
			TextTitle: "=== Conversation ===",
		},
	}
}

// Problem says what is wrong with the wordings, or "".
func (w Wordings) Problem() string {
	if _, ok := w["en"]; !ok {
		return "has no wording for en, which is used for all languages without a wording"
	}
	for _, language := range slices.Sorted(maps.Keys(w)) {
		wording := w[language]
		for _, part := range []struct{ text, problem string }{
			{wording.Header, "a header and a footer: they tell the model where the conversation begins and ends"},
			{wording.Footer, "a header and a footer: they tell the model where the conversation begins and ends"},
			{wording.SummaryTitle, "a summary_title: it tells the summary from what was said"},
			{wording.User, "names for user, assistant, system and tool: they tell who said what"},
			{wording.Assistant, "names for user, assistant, system and tool: they tell who said what"},
			{wording.System, "names for user, assistant, system and tool: they tell who said what"},
			{wording.Tool, "names for user, assistant, system and tool: they tell who said what"},
			{wording.TextTitle, "a text_title: it is the first line of the history as text"},
		} {
			if strings.TrimSpace(part.text) == "" {
				return "for " + language + " needs " + part.problem
			}
		}
	}
	return ""
}

// of returns the wording of a language.
func (w Wordings) of(language string) Wording {
	base, _, _ := strings.Cut(language, "-")
	if wording, ok := w[strings.ToLower(base)]; ok {
		return wording
	}
	return w["en"]
}

// maxGuessed is the number of newest bytes used to guess the language.
const maxGuessed = 32 << 10

// languageOf guesses the language of messages, as lexical.Language does.
func languageOf(messages []Message) string {
	var b strings.Builder
	for _, m := range slices.Backward(messages) {
		if b.Len() >= maxGuessed {
			break
		}
		b.WriteString(m.Content[:min(len(m.Content), maxGuessed)])
		b.WriteByte('\n')
	}
	return lexical.Language(b.String())
}
