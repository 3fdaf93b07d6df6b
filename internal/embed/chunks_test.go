package embed_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/memsidecar/memsidecar/internal/embed"
)

func TestChunks(t *testing.T) {
	for _, test := range []struct {
		text string
		size int
		want []string
	}{
		{"", 5, []string{""}},
		{"short", 5, []string{"short"}},
		{"One two. Three four.", 12, []string{"One two. ", "Three four."}},
		{"今天下雨。我在家。明天也下雨。", 9, []string{"今天下雨。我在家。", "明天也下雨。"}},
		{"one two three four", 9, []string{"one two ", "three ", "four"}},
		{"今天的天气很好", 3, []string{"今天的", "天气很", "好"}},
		{"abcdefgh", 3, []string{"abc", "def", "gh"}},
		{"👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 7, []string{"👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"}},
		{"👨‍👩‍👧‍👦a", 2, []string{"👨‍👩‍👧‍👦", "a"}}, // longer than the size, because it is one visible character
		{"e\u0301e\u0301e\u0301", 4, []string{"e\u0301e\u0301", "e\u0301"}},
		{"🇩🇪🇫🇷🇨🇳", 3, []string{"🇩🇪", "🇫🇷", "🇨🇳"}},
		{"한국어", 2, []string{"한국", "어"}},
	} {
		if got := embed.Chunks(test.text, test.size); !slices.Equal(got, test.want) {
			t.Errorf("%q by %d: %q, want %q", test.text, test.size, got, test.want)
		}
	}
}

// FuzzChunks: The chunks joined are the text. None is empty, too long, or cut inside a character.
func FuzzChunks(f *testing.F) {
	for _, text := range []string{
		"", "a", "One. Two! Three?", "今天下雨。我在家。", "👨‍👩‍👧‍👦🇩🇪e\u0301\r\n\r\n한국어 क्षि", "\xff\xfe broken \xf0\x9f", strings.Repeat("word ", 200),
		strings.Repeat(" ", 50) + "x", "\u0600a\u0600今", "a\u200d\u200db",
	} {
		f.Add(text, 7)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		if len(text) > 2000 || size < 1 || size > 1000 {
			t.Skip()
		}
		chunks := embed.Chunks(text, size)
		if strings.Join(chunks, "") != text {
			t.Fatalf("%q by %d: %q", text, size, chunks)
		}
		boundaries := map[int]bool{0: true, len(text): true}
		for at, g := 0, uniseg.NewGraphemes(text); g.Next(); {
			at += len(g.Str())
			boundaries[at] = true
		}
		at := 0
		for _, c := range chunks {
			at += len(c)
			if c == "" && text != "" {
				t.Errorf("%q by %d: an empty chunk", text, size)
			}
			if !boundaries[at] {
				t.Errorf("%q by %d: cut inside a character at %d: %q", text, size, at, chunks)
			}
			if utf8.RuneCountInString(c) > size && uniseg.GraphemeClusterCount(c) > 1 {
				t.Errorf("%q by %d: %q is too long", text, size, c)
			}
		}
	})
}
