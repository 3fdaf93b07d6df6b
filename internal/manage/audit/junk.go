package audit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// junkReason returns why a memory is likely not worth remembering, or "". A memory is junk if each of its clauses is. It knows Chinese
// and English, and questions of other languages. What the user or the bot asked to remember is never junk.
//
// It deliberately shares no word list with the decision rules, so that it can find their mistakes.
func junkReason(m *memory.Memory) string {
	if m.Explicit {
		return ""
	}
	if containsAny(m.Text, blockMarks) {
		return "repeats the memory block of the bot's prompt"
	}
	body, quoted := bodyOf(m.Text)
	if quoted && repeated.MatchString(body) {
		return "repeats a memory, in the third person, as the user's words"
	}
	var reasons []string
	addressed := false // a name between commas addresses a person
	for _, c := range clauses(body) {
		reason := clauseReason(c)
		switch {
		case reason == "" && quoted && name.MatchString(c.text):
			addressed = true
			continue
		case reason == "":
			return ""
		}
		if reason != saysNothing && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	switch {
	case addressed && !slices.Contains(reasons, politeness):
		return ""
	case len(reasons) == 0:
		return saysNothing
	}
	return strings.Join(reasons, "; ")
}

const (
	saysNothing = "says nothing"
	politeness  = "is mere politeness"
)

// bodyOf returns a statement without the words around a quotation.
func bodyOf(text string) (body string, quoted bool) {
	if at := quotation.FindStringIndex(text); at != nil {
		return strings.Trim(text[at[1]:], " \"“”「」.。"), true
	}
	return text, false
}

// clause is a piece of a text with the mark that ends it.
type clause struct {
	text string
	mark rune
}

// clauses splits a text at its punctuation. A dot or a colon inside a number or a name does not split.
func clauses(text string) []clause {
	text = contrast.ReplaceAllString(text, ", ")
	var list []clause
	start := 0
	for i, r := range text {
		size := utf8.RuneLen(r)
		if !strings.ContainsRune(",.!?;，。！？；…~～\n", r) {
			continue
		}
		if next, _ := utf8.DecodeRuneInString(text[i+size:]); r < utf8.RuneSelf && (unicode.IsLetter(next) || unicode.IsDigit(next)) {
			continue
		}
		list = append(list, clause{strings.TrimSpace(text[start:i]), r})
		start = i + size
	}
	list = append(list, clause{strings.TrimSpace(text[start:]), 0})
	return slices.DeleteFunc(list, func(c clause) bool { return !strings.ContainsFunc(c.text, wordly) })
}

func wordly(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// clauseReason returns why a clause is not worth remembering, or "".
func clauseReason(c clause) string {
	text := strings.ToLower(strings.Trim(c.text, " \"'“”‘’「」()（）"))
	text = subject.ReplaceAllString(strings.ReplaceAll(text, "’", "'"), "")
	switch {
	case c.mark == '?' || c.mark == '？' || asking.MatchString(text):
		return "asks something"
	case courtesy.MatchString(text):
		return politeness
	case promise.MatchString(text):
		return "promises something in the conversation"
	case aboutTalk.MatchString(text):
		return "is about the conversation itself"
	case botSays.MatchString(text):
		return "is what the bot says or wishes"
	case pointing.MatchString(text):
		return "points at something that it does not name"
	case contentless(text):
		return saysNothing
	}
	return ""
}

// contentless reports whether a text has only interjections and function words. A single Chinese character does not count as a word.
func contentless(text string) bool {
	if answer.MatchString(text) {
		return true
	}
	for _, t := range lexical.Tokens(interjection.ReplaceAllString(text, " ")) {
		if !t.Function && t.Kind != lexical.Char {
			return false
		}
	}
	return true
}

func containsAny(text string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(text, mark) })
}
