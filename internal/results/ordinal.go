package results

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Ordinal is a place in a list: counted from the beginning, 1 is the first, or from its end, -1 is the last.
type Ordinal int

// In is the number, from 1, in a list of so many items; it may be outside.
func (o Ordinal) In(count int) int {
	if o < 0 {
		return count + 1 + int(o)
	}
	return int(o)
}

// keycaps makes a digit of an emoji such as 3️⃣.
var keycaps = strings.NewReplacer("\ufe0f", "", "\u20e3", "")

// maxOrdinal is more than any list has; what is larger stays outside of it.
const maxOrdinal = 1_000_000

// ParseOrdinal reads a number as people answer a numbered list with: in digits of any width, in Chinese or English words, from
// the beginning or the end, with a few polite words around it. A wish that merely has a number in it is none: "三部电影" is
// a quantity, "The Third Man" a title, "3 or 4" two numbers. It reports false for what it does not take for one.
func ParseOrdinal(text string) (Ordinal, bool) {
	text = strings.ToLower(norm.NFKC.String(keycaps.Replace(text))) // full-width digits, ③
	text = strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'“”‘’「」『』()[]【】。.!?~,,、;:…", r)
	})
	if text == "" || text[0] == '-' || utf8.RuneCountInString(text) > MaxTextRunes {
		return 0, false
	}
	if n, ok := digits(strings.TrimPrefix(text, "#")); ok {
		return n, true
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) || r == '〇' }) {
		return chineseOrdinal(text)
	}
	return englishOrdinal(text)
}

// digits reads ASCII digits alone.
func digits(text string) (Ordinal, bool) {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > maxOrdinal {
		n = maxOrdinal
	}
	return Ordinal(n), true
}
