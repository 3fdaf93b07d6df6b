package embed

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Chunks cuts a text into parts of at most size characters that are embedded one by one: at the ends of sentences where
// it can, else between words, and never inside a character that people see as one. A part is longer only when a single
// such character is. A text of at most size characters is one part; the parts together are the text.
func Chunks(text string, size int) []string {
	if utf8.RuneCountInString(text) <= size {
		return []string{text}
	}
	var chunks []string
	var chunk strings.Builder
	length := 0
	flush := func() {
		if length > 0 {
			chunks = append(chunks, chunk.String())
			chunk.Reset()
			length = 0
		}
	}
	add := func(piece string) {
		n := utf8.RuneCountInString(piece)
		if length+n > size {
			flush()
		}
		chunk.WriteString(piece)
		length += n
	}
	for _, sentence := range split(text, uniseg.MaskSentence) {
		if utf8.RuneCountInString(sentence) <= size {
			add(sentence)
			continue
		}
		for _, word := range split(sentence, uniseg.MaskWord) {
			if utf8.RuneCountInString(word) <= size {
				add(word)
				continue
			}
			for cluster := range characters(word) {
				add(cluster)
			}
		}
	}
	flush()
	return chunks
}

// split cuts a text at the boundaries of uniseg's mask. A boundary inside what people see as one character is none: those
// of words have some, as between U+0600 and a space.
func split(text string, mask int) []string {
	var parts []string
	for rest, state, length := text, -1, 0; rest != ""; {
		var character string
		var boundaries int
		character, rest, boundaries, state = uniseg.StepString(rest, state)
		if length += len(character); boundaries&mask != 0 || rest == "" {
			parts, text, length = append(parts, text[:length]), text[length:], 0
		}
	}
	return parts
}

// characters yields what people see as characters.
func characters(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for clusters := uniseg.NewGraphemes(text); clusters.Next(); {
			if !yield(clusters.Str()) {
				return
			}
		}
	}
}
