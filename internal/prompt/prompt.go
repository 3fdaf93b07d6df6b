// Package prompt makes stored text harmless inside a block that is pasted into a model's prompt.
package prompt

import (
	"strings"
	"unicode"
)

// Line makes one line of stored text: without the characters that hide or reverse text, and without anything that reads as
// one of the block's own delimiters.
func Line(text string, delimiters ...string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '【':
			return '〔'
		case r == '】':
			return '〕'
		case unicode.IsControl(r), invisible(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	for _, delimiter := range delimiters {
		if delimiter = strings.TrimSpace(delimiter); delimiter != "" {
			text = strings.ReplaceAll(text, delimiter, "…")
		}
	}
	return text
}

// invisible reports whether a character shows nothing, or changes the direction of others. Such characters hide text from
// people and not from models. Those that hold emoji together, or choose between emoji and text, are no such.
func invisible(r rune) bool {
	const zeroWidthJoiner, textStyle, emojiStyle = '\u200d', '\ufe0e', '\ufe0f'
	switch r {
	case zeroWidthJoiner, textStyle, emojiStyle:
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
