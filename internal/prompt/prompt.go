// Package prompt makes stored text harmless inside a block that is pasted into a model's prompt.
package prompt

import (
	"regexp"
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

// Markdown is Line for a text that stands in Markdown behind "- " or inside a line: it is shown as it is written. It opens no
// heading, list, quotation, block of code or HTML, comments included, and fetches no image.
func Markdown(text string) string {
	text = tags.ReplaceAllString(Line(text), `\<$1`)
	text = declarations.ReplaceAllString(text, `<\$1`)
	text = strings.NewReplacer("![", `!\[`, "-->", `--\>`, "```", "\\`\\`\\`").Replace(text)
	return numbered.ReplaceAllString(opening.ReplaceAllString(text, `\$0`), `$1\$2`)
}

var (
	tags         = regexp.MustCompile(`<([A-Za-z/])`)
	declarations = regexp.MustCompile(`<([!?])`) // escaped so that nothing that looks for comments alone finds one
	// What begins something at the beginning of a line.
	opening  = regexp.MustCompile(`^(?:[-+*#>~=|]|\[[^\]]*\]:)`)
	numbered = regexp.MustCompile(`^([0-9]{1,9})([.)] )`)
)

// harmless replaces each character by itself, a blank, or nothing, and takes the tokens apart by which the templates of
// models tell who speaks.
func harmless(text string) string { return tokens.Replace(visible(text)) }

// tokens are those of ChatML, Llama, Mistral, Gemma and DeepSeek. Some servers take them for what they look like wherever
// they stand in a prompt.
var tokens = strings.NewReplacer(
	"<|", "‹|", "<｜", "‹｜", "[INST]", "〔INST〕", "[/INST]", "〔/INST〕", "<<SYS>>", "‹SYS›", "<</SYS>>", "‹/SYS›",
	"<start_of_turn>", "‹start_of_turn›", "<end_of_turn>", "‹end_of_turn›", "<s>", "‹s›", "</s>", "‹/s›",
)

// visible replaces each character by itself, a blank, or nothing.
func visible(text string) string {
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
