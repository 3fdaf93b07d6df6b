package classify

import "github.com/memsidecar/memsidecar/internal/lang/lexical"

// fold returns the character by which traditional and simplified script are the same.
func fold(r rune) rune {
	if simple, ok := lexical.SimplifiedRune(r); ok {
		return simple
	}
	return r
}
