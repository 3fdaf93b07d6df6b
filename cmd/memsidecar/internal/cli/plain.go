package cli

import (
	"fmt"
	"strings"
	"unicode"
)

// Stored text may come from anyone. It must not move a terminal's cursor, change its colours or reorder text.

// line returns a text as one line that is safe to show.
func line(text string) string {
	return plain(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text))
}

// block returns a text of several lines that is safe to show.
func block(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = plain(strings.ReplaceAll(l, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// plain escapes dangerous characters as \u{…}.
func plain(text string) string {
	if strings.IndexFunc(text, dangerous) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if dangerous(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// dangerous reports control characters, invalid bytes, line ends, characters that change the direction of text
// (https://trojansource.codes), and tags, which hide text.
func dangerous(r rune) bool {
	return unicode.IsControl(r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029' || r == '\ufeff' ||
		unicode.Is(unicode.Bidi_Control, r) || r >= 0xe0000 && r <= 0xe007f
}
