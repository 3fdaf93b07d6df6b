// Package prompt makes stored text harmless inside a block that is pasted into a model's prompt.
package prompt

import (
	"strings"
	"unicode"
)

// Line makes one line of stored text: without the characters that hide or reverse text, and without anything that reads as
// one of the block's own delimiters.
func Line(text string, delimiters ...string) string {
	text = strings.Join(strings.Fields(harmless(text)), " ")
	for _, delimiter := range delimiters {
		if delimiter = strings.TrimSpace(delimiter); delimiter != "" {
			text = strings.ReplaceAll(text, delimiter, "…")
		}
	}
	return text
}

// Lines is Line for text of several lines, whose breaks and indentation stay. Empty lines go: they are nil when nothing is
// left.
func Lines(text string, delimiters ...string) []string {
	var lines []string
	for line := range strings.FieldsFuncSeq(text, lineEnd) {
		// Columns may be cut by tabs, which as one blank each would not be columns any more.
		line = strings.TrimRight(harmless(strings.ReplaceAll(line, "\t", "    ")), " ")
		if line == "" {
			continue
		}
		if alone := strings.Join(strings.Fields(line), " "); Line(line, delimiters...) != alone {
			line = Line(line, delimiters...)
		}
		lines = append(lines, line)
	}
	return lines
}

// lineEnd reports whether a character ends a line, in one convention or another.
func lineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// harmless replaces each character by itself, a blank, or nothing.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
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
