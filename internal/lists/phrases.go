package lists

import (
	"embed"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
)

//go:embed phrases/*.txt
var phraseFiles embed.FS

// phrases is a list of phrases: as a person writes them, folded.
type phrases struct {
	known   map[string]bool
	longest int // in characters
}

// The word lists of the grammar. What each is for is said in its file.
var (
	beforeWords  = readPhrases("before", "verbs")
	afterWords   = readPhrases("after", "aspects")
	aspectWords  = readPhrases("aspects")
	verbWords    = readPhrases("verbs")
	thingWords   = readPhrases("things")
	measureWords = readPhrases("measures")
	allWords     = readPhrases("all")
	noneWords    = readPhrases("none")
	connectors   = readPhrases("connectors")
)

func readPhrases(files ...string) phrases {
	p := phrases{known: map[string]bool{}}
	for _, file := range files {
		for _, line := range lang.Files(phraseFiles, "phrases/"+file+".txt") {
			p.known[line] = true
			p.longest = max(p.longest, utf8.RuneCountInString(line))
		}
	}
	return p
}

// at lists where the phrases that begin at a position end, the longest first.
func (p phrases) at(text []rune, start int) (ends []int) {
	for n := min(p.longest, len(text)-start); n > 0; n-- {
		if end := start + n; bounded(text, start, end) && p.known[string(text[start:end])] {
			ends = append(ends, end)
		}
	}
	return ends
}

// bounded reports whether a part of a text is neither cut out of a Latin word nor out of a number.
func bounded(text []rune, start, end int) bool {
	return start == 0 || end == start || !sameWord(text[start-1], text[start]) && (end == len(text) || !sameWord(text[end-1], text[end]))
}

func sameWord(a, b rune) bool {
	return wordRune(a) && wordRune(b) && unicode.IsDigit(a) == unicode.IsDigit(b)
}

// wordRune reports whether a character belongs to words with spaces between them.
func wordRune(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}
