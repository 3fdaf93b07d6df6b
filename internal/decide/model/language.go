package model

import (
	"strings"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
)

const (
	chinese = "zh"
	english = "en"
)

// Weights of languages are in words.
const (
	maxVote = 30 // what one message counts at most: a pasted article is one utterance
)

func languageName(language string) string {
	if name := lexical.Name(language); name != "" {
		return name
	}
	return "the language that the user writes"
}

// dominantLanguage is the language of most of what the speaker said. If those words show none ("666"), it is that of most of what users
// and the assistant said, and else lexical.Undetermined. A message counts by its first line that shows a language: later lines are often
// code or quoted text.
func dominantLanguage(t decide.Transcript) string {
	own := func(m memory.Message) bool { return spokenBy(m, t.Speaker) }
	anybody := func(m memory.Message) bool { return m.Role == memory.RoleUser || m.Role == memory.RoleAssistant }
	for _, counts := range []func(memory.Message) bool{own, anybody} {
		votes := map[string]int{}
		best := lexical.Undetermined
		for _, m := range t.Dialogue.Messages {
			if !counts(m) {
				continue
			}
			for l := range prose(m.Content) {
				language, weight := lexical.Language(l), words(l)
				if language == lexical.Undetermined || weight == 0 {
					continue
				}
				votes[language] += min(weight, maxVote)
				if best == lexical.Undetermined || votes[language] >= votes[best] { // the newer one of two equals
					best = language
				}
				break
			}
		}
		if best != lexical.Undetermined {
			return best
		}
	}
	return lexical.Undetermined
}

// prose yields the lines of a message that are not fenced code. A long line counts by its beginning.
func prose(content string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		fenced := false
		for l := range strings.Lines(content) {
			l = strings.TrimSpace(l)
			if strings.HasPrefix(l, "```") {
				fenced = !fenced
				continue
			}
			if !fenced && l != "" && !yield(cutText(l, 300)) {
				return
			}
		}
	}
}

// words counts a text's words; two characters of a script without spaces are one.
func words(text string) int {
	count, characters, inside := 0, 0, false
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			characters++
			inside = false
		case unicode.IsLetter(r) || inside && (unicode.IsMark(r) || r == '\'' || r == '’'):
			if !inside {
				count++
			}
			inside = true
		default:
			inside = false
		}
	}
	return count + (characters+1)/2
}
