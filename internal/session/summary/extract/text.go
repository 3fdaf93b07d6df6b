package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// vocabulary counts words.
type vocabulary struct {
	numbers map[string]int
	counts  []float64
	total   float64
}

// count adds a sentence's words and returns the different ones. Words are content words, numbers, and, in scripts without
// spaces, pairs of characters.
func (v *vocabulary) count(sentence string) []int {
	var different []int
	seen := map[int]bool{}
	for _, t := range lexical.Tokens(sentence) {
		if t.Function || t.Kind == lexical.Char || t.Kind == lexical.Compound {
			continue
		}
		n, known := v.numbers[t.Term]
		if !known {
			n = len(v.counts)
			v.numbers[strings.Clone(t.Term)] = n
			v.counts = append(v.counts, 0)
		}
		v.counts[n]++
		v.total++
		if !seen[n] {
			seen[n] = true
			different = append(different, n)
		}
	}
	return different
}

func (v *vocabulary) probabilities() []float64 {
	p := make([]float64, len(v.counts))
	for i, n := range v.counts {
		p[i] = n / v.total
	}
	return p
}

// sentences splits a message into sentences, without code blocks.
func sentences(content string) []string {
	var found []string
	fenced := false
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		for line != "" {
			end := sentenceEnd(line)
			if s := strings.Join(strings.Fields(strings.TrimLeft(line[:end], "#>*-•– \t")), " "); s != "" {
				found = append(found, s)
			}
			line = strings.TrimSpace(line[end:])
		}
	}
	return found
}

// sentenceEnd returns the end of the first sentence of a line. A Latin full stop ends one only before a blank.
func sentenceEnd(line string) int {
	for i, r := range line {
		end := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？', '；', '…':
		case '.', '!', '?', ';':
			if next, _ := utf8.DecodeRuneInString(line[end:]); end < len(line) && !unicode.IsSpace(next) {
				continue
			}
		default:
			continue
		}
		// Closing marks belong to the sentence: "Really?!", 「好。」
		for end < len(line) {
			next, size := utf8.DecodeRuneInString(line[end:])
			if !strings.ContainsRune("。！？…!?.\"'”’」』）)", next) {
				break
			}
			end += size
		}
		return end
	}
	return len(line)
}

// asks reports whether a sentence is a question.
func asks(sentence string) bool {
	sentence = strings.TrimRight(sentence, "\"'”’」』）)。！!~～ ")
	return strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "？") || strings.HasSuffix(sentence, "吗") || strings.HasSuffix(sentence, "呢")
}

// clipped returns the text, shortened and with "…" if it is longer than the limit.
func clipped(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:max(0, limit-1)])) + "…"
}
