package model

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// maxQuoteRunes is the longest quotation kept with a memory, in characters.
const maxQuoteRunes = 300

// quote is the source of a statement in the speaker's words: the model's quotation if a cited message has it, apart from spaces, and
// else the newest cited message of the speaker. Other people are never quoted, so that their words are gone once they ask to be
// forgotten.
func quote(t decide.Transcript, cited []int, given string) string {
	own := ""
	for _, i := range cited {
		if m := t.Dialogue.Messages[i]; spokenBy(m, t.Speaker) {
			own = m.Content
		}
	}
	if given = memory.CleanText(given); given != "" {
		for _, i := range cited {
			m := t.Dialogue.Messages[i]
			if m.Role == memory.RoleUser && m.Speaker != t.Speaker {
				continue
			}
			if words, ok := verbatim(m.Content, given); ok {
				return cutText(words, maxQuoteRunes)
			}
		}
	}
	return cutText(strings.TrimSpace(own), maxQuoteRunes)
}

// verbatim finds words in a text, whatever spaces and line ends are between them, and returns them as they stand there.
func verbatim(text, words string) (string, bool) {
	if strings.Contains(text, words) {
		return words, true
	}
	// Both without spaces; at[i] is where byte i of the text without spaces stands in the text.
	var bare strings.Builder
	var at []int
	for i, r := range text {
		if unicode.IsSpace(r) {
			continue
		}
		bare.WriteRune(r)
		for range utf8.RuneLen(r) {
			at = append(at, i)
		}
	}
	wanted := strings.Join(strings.Fields(words), "")
	start := strings.Index(bare.String(), wanted)
	if start < 0 || wanted == "" {
		return "", false
	}
	last := at[start+len(wanted)-1]
	_, size := utf8.DecodeRuneInString(text[last:])
	return text[at[start] : last+size], true
}

// cutText is the beginning of a text, at most limit characters: up to the end of a sentence if that leaves more than
// half, else up to a character as people see them.
func cutText(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes, end, sentence, sentenceRunes := 0, 0, 0, 0
	for rest, state := text, -1; rest != ""; {
		var cluster string
		var boundaries int
		cluster, rest, boundaries, state = uniseg.StepString(rest, state)
		if runes += utf8.RuneCountInString(cluster); runes > limit {
			break
		}
		end += len(cluster)
		if boundaries&uniseg.MaskSentence != 0 {
			sentence, sentenceRunes = end, runes
		}
	}
	switch {
	case sentenceRunes > limit/2:
		end = sentence
	case end == 0: // one enormous character
		return string([]rune(text)[:limit])
	}
	return strings.TrimSpace(text[:end])
}
