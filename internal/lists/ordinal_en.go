package lists

import (
	"slices"
	"strings"
)

// English number words, and words for the first and the last.
var (
	cardinalWords = []string{
		"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen",
		"sixteen", "seventeen", "eighteen", "nineteen",
	}
	ordinalWords = []string{
		"", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth",
		"fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
	}
	tens       = []string{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}
	tenths     = []string{"", "", "twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"}
	lastWords  = []string{"last", "final", "bottom", "very last"}
	firstWords = []string{"top", "very first"}
	frontWords = []string{"first", "top", "very first"}
	secondLast = []string{"last but one", "next to last", "penultimate"}
	fromTheEnd = []string{
		"from the end", "from the bottom", "from the last", "from end", "from last", "from bottom", "to last", "to the last", "last",
	}
)

// english returns the English selections that start at a position.
func (p *parser) english(at int) []choice {
	the := p.word(at, "the", "that", "this")
	return slices.Concat(p.cardinals(at, the), p.ordinals(the), p.ends(the))
}

// each returns choices of one span, one for each end.
func each(span Span, ends []int) (found []choice) {
	for _, end := range ends {
		one := span.First == span.Last
		found = append(found, choice{end: end, span: span, number: one && span.First >= 0, marked: one})
	}
	return found
}

// cardinals parses number three, item 3, #3, and numbers alone. "the one" selects no particular item.
func (p *parser) cardinals(at, the int) (found []choice) {
	if start := p.numbered(the); start > the {
		for _, r := range p.spelled(p.spaces(start), cardinal) {
			found = append(found, each(Span{r.n, r.n}, []int{r.end})...)
		}
	}
	if the == at {
		for _, r := range p.spelled(at, cardinal) {
			found = append(found, choice{end: r.end, span: Span{r.n, r.n}, number: true, digits: r.digits})
		}
	}
	return found
}

// ordinals parses third, the third movie, third one from the end.
func (p *parser) ordinals(at int) (found []choice) {
	for _, r := range p.spelled(at, ordinal) {
		ends := p.item(r.end)
		found = append(found, each(Span{r.n, r.n}, ends)...)
		for _, end := range ends {
			for _, from := range p.phrase(end, fromTheEnd) {
				if r.n > 0 {
					found = append(found, each(Span{-r.n, -r.n}, p.item(from))...)
				}
			}
		}
	}
	return found
}

// ends parses the last one, last but one, the first two movies, bottom three.
func (p *parser) ends(at int) (found []choice) {
	for _, end := range p.phrase(at, secondLast) {
		found = append(found, each(Span{-2, -2}, p.item(end))...)
	}
	for _, end := range p.phrase(at, lastWords) {
		found = append(found, each(Span{-1, -1}, p.item(end))...)
		for _, r := range p.several(end) {
			found = append(found, each(Span{-r.n, -1}, p.item(r.end))...)
		}
	}
	for _, end := range p.phrase(at, firstWords) {
		found = append(found, each(Span{1, 1}, p.item(end))...)
	}
	for _, end := range p.phrase(at, frontWords) {
		for _, r := range p.several(end) {
			found = append(found, each(Span{1, r.n}, p.item(r.end))...)
		}
	}
	return found
}

// several parses a count, which is not the one of "the last one".
func (p *parser) several(at int) []reading {
	return slices.DeleteFunc(p.spelled(p.spaces(at), cardinal), func(r reading) bool { return r.n < 1 || p.isOne(at, r) })
}

// isOne reports whether a number is the word one, as in "the last one".
func (p *parser) isOne(at int, r reading) bool { return r.n == 1 && p.word(at, "one") > at }

// numbered returns the end of the words that announce a number.
func (p *parser) numbered(at int) int {
	start := p.spaces(at)
	if end := p.literal(start, "#", "no.", "nr."); end > start {
		return end
	}
	if end := p.word(at, "number", "num", "nr", "numbers", "item", "items"); end > at {
		return max(end, p.numbered(end))
	}
	if end := p.word(at, "no"); end > at && end < len(p.text) && p.text[end] >= '0' && p.text[end] <= '9' { // "no one" is not number one
		return end
	}
	for _, end := range thingWords.at(p.text, start) {
		if p.text[start] >= 'a' && p.text[start] <= 'z' && p.literal(start, "one") != end {
			return max(p.spaces(end), p.numbered(end))
		}
	}
	return at
}

// item returns the ends of what may follow an ordinal: one, the movie, or nothing.
func (p *parser) item(at int) []int {
	start := p.spaces(at)
	ends := append(thingWords.at(p.text, start), at)
	for n := range thingWords.longest + 2 { // in the plural
		end := start + n
		if n > 1 && end <= len(p.text) && bounded(p.text, start, end) && p.text[end-1] == 's' {
			singular := string(p.text[start : end-1])
			if thingWords.known[singular] || strings.HasSuffix(singular, "ie") && thingWords.known[singular[:len(singular)-2]+"y"] {
				ends = append(ends, end)
			}
		}
	}
	return ends
}

// phrase returns the ends of the phrases, as whole words, that start here.
func (p *parser) phrase(at int, phrases []string) (ends []int) {
	for _, phrase := range phrases {
		end := at
		for word := range strings.FieldsSeq(phrase) {
			if next := p.hyphened(end, word); next > end {
				end = next
				continue
			}
			end = at
			break
		}
		if end > at {
			ends = append(ends, end)
		}
	}
	return ends
}

// hyphened returns the end of a word, with the spaces or the hyphen before it.
func (p *parser) hyphened(at int, word string) int {
	start := p.spaces(at)
	if start < len(p.text) && p.text[start] == '-' && start > 0 {
		start++
	}
	end := p.literal(start, word)
	if end == start || !bounded(p.text, start, end) {
		return at
	}
	return end
}

// spelled parses a number of one or two words at a position, the longer one first.
func (p *parser) spelled(at int, read func(words []string) (Ordinal, bool)) (found []reading) {
	first := p.latin(at)
	if first == at {
		return nil
	}
	if next := first; next < len(p.text) {
		if p.text[next] == '-' || p.text[next] == ' ' {
			next++
		}
		if second := p.latin(next); second > next && next > first {
			if n, ok := read([]string{string(p.text[at:first]), string(p.text[next:second])}); ok {
				found = append(found, reading{n: n, end: second})
			}
		}
	}
	word := string(p.text[at:first])
	if n, ok := read([]string{word}); ok {
		found = append(found, reading{n: n, end: first, digits: word[0] >= '0' && word[0] <= '9'})
	}
	return found
}

// latin returns the end of a word of Latin letters and digits.
func (p *parser) latin(at int) int {
	end := at
	if at > 0 && wordRune(p.text[at-1]) {
		return at
	}
	for end < len(p.text) && (p.text[end] >= '0' && p.text[end] <= '9' || p.text[end] >= 'a' && p.text[end] <= 'z') {
		end++
	}
	if end < len(p.text) && wordRune(p.text[end]) {
		return at
	}
	return end
}

// cardinal parses 3, three, twenty-one.
func cardinal(words []string) (Ordinal, bool) {
	switch len(words) {
	case 1:
		if n, ok := digits(words[0]); ok {
			return n, true
		}
		if i := slices.Index(cardinalWords, words[0]); i >= 0 {
			return Ordinal(i), true
		}
		i := slices.Index(tens, words[0])
		return Ordinal(10 * i), i > 1
	case 2:
		ten, one := slices.Index(tens, words[0]), slices.Index(cardinalWords, words[1])
		return Ordinal(10*ten + one), ten > 1 && one > 0 && one < 10
	}
	return 0, false
}

// ordinal parses 3rd, third, twenty-first.
func ordinal(words []string) (Ordinal, bool) {
	switch len(words) {
	case 1:
		for _, suffix := range []string{"st", "nd", "rd", "th"} {
			if number, ok := strings.CutSuffix(words[0], suffix); ok {
				if n, ok := digits(number); ok {
					return n, true
				}
			}
		}
		if i := slices.Index(ordinalWords[1:], words[0]); i >= 0 {
			return Ordinal(i + 1), true
		}
		i := slices.Index(tenths, words[0])
		return Ordinal(10 * i), i > 1
	case 2:
		ten, one := slices.Index(tens, words[0]), slices.Index(ordinalWords, words[1])
		return Ordinal(10*ten + one), ten > 1 && one > 0 && one < 10
	}
	return 0, false
}
