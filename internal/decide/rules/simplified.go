package rules

import "github.com/memsidecar/memsidecar/internal/lang/lexical"

// simplify gives the simplified form of a traditional character, for comparing with the word lists; the dialects' 俺 and 咱
// are taken for 我.
func simplify(r rune) (rune, bool) {
	if r == '俺' || r == '咱' {
		return '我', true
	}
	return lexical.SimplifiedRune(r)
}
