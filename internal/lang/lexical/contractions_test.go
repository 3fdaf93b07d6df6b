package lexical_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

func TestExpandAllWritesContractionsOut(t *testing.T) {
	for text, want := range map[string]string{
		"Can't we? I don’t.":     "Can not we? I do not.",
		"They've won't, It's":    "They have will not, It is",
		"Ann's dog, o'clock, 不吃": "Ann's dog, o'clock, 不吃",
		"we cannot: Dont, they'": "we can not: Do not, they'",
		"":                       "",
	} {
		if got := lexical.ExpandAll(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
