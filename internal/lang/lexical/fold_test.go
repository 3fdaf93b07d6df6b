package lexical

import (
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// TestFoldWithoutNormalizationEqualsFoldWithIt: The shortcut that skips NFKC changes no result.
func TestFoldWithoutNormalizationEqualsFoldWithIt(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if 0xD800 <= r && r <= 0xDFFF || needsNormalization(r) {
			continue
		}
		for _, text := range []string{string(r), "か" + string(r) + "a", "A" + string(r)} {
			if got, want := fold(text), fold(norm.NFKC.String(text)); got != want {
				t.Fatalf("fold(%q) = %q, and %q after NFKC", text, got, want)
			}
		}
	}
}

func TestFoldIsIdempotent(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if 0xD800 <= r && r <= 0xDFFF {
			continue
		}
		once := fold(string(r))
		if twice := fold(once); twice != once {
			t.Errorf("fold(%q, U+%04X) = %q, and folded again %q", string(r), r, once, twice)
		}
	}
}

func TestFoldSpellings(t *testing.T) {
	for a, b := range map[string]string{
		"ＡＢＣ１２３":          "abc123",
		"ｶﾞﾝﾀﾞﾑ":          "ガンダム",
		"カ\u3099":         "ガ",
		"Cafe\u0301":      "café",
		"CAFÉ":            "cafe",
		"naïve Łódź Ærø":  "naive lodz aero",
		"Straße":          "STRASSE",
		"Nguyễn":          "nguyen",
		"İstanbul":        "istanbul",
		"don’t":           "don't",
		"ﬁne":             "fine",
		"co\u00ADoperate": "cooperate",
		"Ёлка":            "елка",
		"ΟΔΟΣ":            "οδος",
		"①":               "1",
	} {
		if fold(a) != fold(b) {
			t.Errorf("%q folds to %q, but %q to %q", a, fold(a), b, fold(b))
		}
	}
	for _, text := range []string{"体育", "體育", "й"} {
		if fold(text) != text {
			t.Errorf("%q folds to %q, which is another word", text, fold(text))
		}
	}
}

func TestFoldLeavesFoldedTextAlone(t *testing.T) {
	const text = "用户喜欢用vue写项目。" // folding without allocation makes loading fast
	if n := testing.AllocsPerRun(10, func() { fold(text) }); n != 0 {
		t.Errorf("folding %q allocates %v times", text, n)
	}
}
