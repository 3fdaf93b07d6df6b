package topics

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// once returns at most limit phrases that name what the messages are about, even if each occurs only once, the most specific first:
// compounds of nouns before single ones, and rare words before common ones. Without repetition to measure, only words that are nouns by
// their form or by the dictionary count.
func once(messages []Message, limit int) []string {
	s := newScanner()
	best := map[string]float64{}
	written := map[string]string{}
	tell := func(phrase string, score float64) {
		key := strings.ToLower(phrase)
		if _, ok := best[key]; !ok {
			written[key] = phrase
		}
		best[key] += score
	}
	for _, m := range messages {
		t := s.text([]Message{m})
		for i := 0; i < len(t.units); {
			n, score := s.phrase(&t, i)
			if n == 0 {
				i++
				continue
			}
			if score > 0 {
				tell(s.at(&t, i, n), score)
			}
			i += n
		}
	}
	keys := make([]string, 0, len(best))
	for key := range best {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(best[b], best[a]), strings.Compare(a, b)) })
	var list []string
	for _, key := range keys[:min(limit, len(keys))] {
		list = append(list, written[key])
	}
	return list
}

// phrase finds the phrase that begins at a place, and how well it names something; 0 units are none, and a score of 0 means that
// it names nothing.
func (s *scanner) phrase(t *text, i int) (n int, score float64) {
	if t.units[i] == noUnit {
		return 0, 0
	}
	if s.symbols[t.units[i]].char {
		return s.nouns(t, i)
	}
	return s.named(t, i)
}

// nouns are the words of characters from a place on that are nouns, one behind the other.
func (s *scanner) nouns(t *text, i int) (n int, score float64) {
	for i+n < len(t.units) && s.isChar(t, i+n) && t.places[i+n]&begins != 0 {
		size := 1
		for i+n+size < len(t.units) && s.isChar(t, i+n+size) && t.places[i+n+size]&begins == 0 {
			size++
		}
		word := lexical.Simplified(s.at(t, i+n, size))
		weight, is, ok := lookUp(word)
		if !ok || is != noun || size < 2 && n == 0 || n+size > maxUnits { // a single character may only follow: 咖啡机
			break
		}
		if n += size; size < 2 {
			break
		}
		score += max(1, float64(totalWeight-weight)/4)
	}
	return n, score
}

// wordScore is the least score of a phrase of words in a report.
const wordScore = 4

// determiners stand before a noun.
var determiners = lang.Set(`a an the my our your his her their its this that these those some any no another each every of in on for with
	about from at into onto via
per new old next last first big small`)

// named is a run of at most two words that a determiner or a preposition comes before, or that is written as a name.
func (s *scanner) named(t *text, i int) (n int, score float64) {
	for i+n < len(t.units) && t.units[i+n] != noUnit && !s.isChar(t, i+n) && t.places[i+n]&function == 0 && n < maxWords-1 {
		y := s.symbols[t.units[i+n]]
		if y.number && n == 0 || y.short {
			break
		}
		n++
	}
	if n == 0 {
		return 0, 0
	}
	first := s.surfaces[t.surfaces[i]]
	before := ""
	if i > 0 && t.units[i-1] != noUnit {
		before = strings.ToLower(s.surfaces[t.surfaces[i-1]])
	}
	switch {
	case determiners[before]:
	case isName(first) && before != "":
	case strings.IndexFunc(first, unicode.IsUpper) > 0, strings.ContainsAny(first, ".-_0123456789"): // README, node.js
	default:
		return n, 0
	}
	return n, wordScore + float64(n) + float64(min(utf8.RuneCountInString(first), 8))/8
}

func isName(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r)
}

func (s *scanner) isChar(t *text, i int) bool {
	return t.units[i] != noUnit && s.symbols[t.units[i]].char
}

// at is what stands at a place, with spaces where they were.
func (s *scanner) at(t *text, i, n int) string {
	var b strings.Builder
	for j := i; j < i+n; j++ {
		if j > i && t.places[j]&spaced != 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.surfaces[t.surfaces[j]])
	}
	return b.String()
}
