package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// around and numbers are words that tell nothing without the secret they stand with.
var (
	around  = phrasesOf("around")
	numbers = phrasesOf("numbers")
)

// Bare reports whether a statement has no content except a marker, as in "my password is [redacted: password]". A statement that says
// whose secret it is, or what for, is not bare.
func Bare(text string) bool {
	if !strings.Contains(text, "[") {
		return false
	}
	rest := markers.ReplaceAllString(text, "\n")
	if rest == text {
		return false
	}
	for at, lower := 0, lowerCase(rest); at < len(lower); {
		r, size := utf8.DecodeRuneInString(lower[at:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’' {
			at += size
			continue
		}
		longest := 0
		for _, set := range []*phrases{&names, &isLinks, &links, &fillers, &resumes, &around, &numbers} {
			if one, ok := set.at(lower, at); ok {
				longest = max(longest, len(one.text))
			}
		}
		switch {
		case longest > 0:
			at += longest
		case r == '\'' || r == '’':
			at += size
		default:
			return false
		}
	}
	return true
}
