// Package prompt makes stored text harmless inside a block that is pasted into a model's prompt.
package prompt

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Line makes one line of stored text: without the characters that hide or reverse text, and without anything that reads as
// one of the block's own delimiters.
func Line(text string, delimiters ...string) string { return joined(harmless(text), delimiters) }

// joined makes one line of harmless text, without the delimiters.
func joined(text string, delimiters []string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, delimiter := range delimiters {
		text = without(text, delimiter)
	}
	return text
}

// without replaces a delimiter, and what equals it after NFKC, in a text.
func without(text, delimiter string) string {
	delimiter = strings.TrimSpace(delimiter)
	if delimiter == "" {
		return text
	}
	text = strings.ReplaceAll(text, delimiter, "…")
	delimiter = fold(delimiter).text
	if ascii(text) || delimiter == "" || !strings.Contains(joiners.Replace(norm.NFKC.String(text)), delimiter) {
		return text
	}
	f := fold(text)
	var b strings.Builder
	copied := 0
	for at := 0; ; {
		i := strings.Index(f.text[at:], delimiter)
		if i < 0 {
			break
		}
		start, end := f.at(at+i, at+i+len(delimiter))
		at += i + len(delimiter)
		if start >= copied { // else the character that the last one ended with stands for several
			b.WriteString(text[copied:start] + "…")
			copied = end
		}
	}
	return b.String() + text[copied:]
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
		if alone := strings.Join(strings.Fields(line), " "); joined(line, delimiters) != alone {
			line = joined(line, delimiters)
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

// Markdown is Line for a text in Markdown after "- " or inside a line: it renders as it is written. It begins no heading, list,
// quotation, block of code or HTML (comments included), and fetches no image.
func Markdown(text string) string {
	text = tags.ReplaceAllString(Line(text), `\$1$2`)
	text = declarations.ReplaceAllString(text, `$1\$2`)
	text = strings.NewReplacer("![", `!\[`, "-->", `--\>`, "```", "\\`\\`\\`").Replace(text)
	return numbered.ReplaceAllString(opening.ReplaceAllString(text, `\$0`), `$1\$2`)
}

var (
	// Full-width brackets are < after NFKC.
	tags         = lazyregexp.New(`([<＜﹤])([A-Za-z/])`)
	declarations = lazyregexp.New(`([<＜﹤])([!?！？])`) // escaped so that nothing that looks for comments alone finds one
	// What begins something at the beginning of a line.
	opening  = lazyregexp.New(`^(?:[-+*#>~=|]|\[[^\]]*\]:)`)
	numbered = lazyregexp.New(`^([0-9]{1,9})([.)] )`)
)

// harmless removes invisible characters and breaks the tokens of chat templates.
func harmless(text string) string { return inert(visible(text)) }

// visible drops invisible characters or replaces them by spaces.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), invisible(r):
			return -1
		}
		return r
	}, text)
}

// invisible reports whether a character shows nothing or changes the direction of others. Such characters hide text from people but not
// from models. Characters that join emoji, or choose between emoji and text, do not count.
func invisible(r rune) bool {
	switch string(r) {
	case zeroWidthJoiner, textStyle, emojiStyle:
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
