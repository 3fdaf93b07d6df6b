package topics

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// unit is one piece of a text: a word, or a character of a script without spaces. It is an index into symbols.list. No phrase spans
// noUnit, which stands for punctuation and for stop words.
type unit = uint32

const noUnit unit = 0

// symbol is what equal units share.
type symbol struct {
	char   bool // a character, not a word
	number bool // only digits
	short  bool // a word of one letter
	strong bool // in strongFunction
	light  bool // in lightVerbs
	open   bool // in neverLast
	joins  bool // in joining, or an English function word that does not hold a name together
	local  bool // in localizers
}

// place holds the properties of a unit at its position.
type place uint8

const (
	function place = 1 << iota // carries grammar here
	spaced                     // behind a space

	// Of characters, as the words of the text are cut:
	begins   // a word begins here
	ends     // a word ends here
	grammary // in a word that carries grammar
	modifies // in a word that something follows, such as an adjective
	alone    // a character that is in no word
)

// text is a number of messages in units, with noUnit after each.
type text struct {
	units    []unit
	places   []place
	surfaces []uint32 // indexes into scanner.surfaces
	nouns    []uint8  // lengths of the nouns that begin here if the words are cut in another way, a bit each
	docs     []doc
}

// doc is a message's part of a text.
type doc struct {
	start, end int
	speaker    int32
}

// scanner turns messages into units. Equal words get equal units, also in two texts.
type scanner struct {
	symbols    []symbol
	units      map[string]unit
	surfaces   []string
	surfaceIDs map[string]uint32
	words      map[string]word
	particles  map[string]bool
	speakers   map[string]int32
	chars      []lexical.Token // of the run at hand; reused
}

// word holds the properties of a word as it was written.
type word struct {
	unit     unit
	surface  uint32
	function bool
}

func newScanner() *scanner {
	return &scanner{
		symbols: make([]symbol, 1), surfaces: make([]string, 1),
		units: map[string]unit{}, surfaceIDs: map[string]uint32{}, words: map[string]word{},
		particles: map[string]bool{}, speakers: map[string]int32{},
	}
}

func (s *scanner) speaker(name string) int32 {
	id, ok := s.speakers[name]
	if !ok {
		id = int32(len(s.speakers)) //nolint:gosec // at most MaxMessages
		s.speakers[name] = id
	}
	return id
}

func (s *scanner) unit(term string, y symbol) unit {
	u, ok := s.units[term]
	if !ok {
		u = unit(len(s.symbols)) //nolint:gosec // at most MaxRunes
		s.symbols = append(s.symbols, y)
		s.units[term] = u
	}
	return u
}

func (s *scanner) surface(written string) uint32 {
	id, ok := s.surfaceIDs[written]
	if !ok {
		id = uint32(len(s.surfaces)) //nolint:gosec // at most MaxRunes
		s.surfaces = append(s.surfaces, written)
		s.surfaceIDs[written] = id
	}
	return id
}

// message adds a message to the text.
func (s *scanner) message(t *text, m Message) {
	start := len(t.units)
	spaces := false
	for i := 0; i < len(m.Text); {
		rest := m.Text[i:]
		r, size := utf8.DecodeRuneInString(rest)
		n := markup(rest, i == 0 || !endsInWord(m.Text[:i]))
		switch {
		case n > 0:
			t.cut()
			i += n
		case isChar(r):
			n = span(rest, isChar)
			s.run(t, rest[:n], i > 0 && isDigit(m.Text[i-1]), spaces)
			i += n
		case isWordRune(r):
			n = wordLen(rest)
			s.word(t, rest[:n], spaces)
			i += n
		case r == ' ' || r == '\t' || r == '\u3000' || r == '\u00A0':
			spaces = true
			i += size
			continue
		default:
			t.cut()
			i += size
		}
		spaces = false
	}
	t.cut()
	t.docs = append(t.docs, doc{start: start, end: len(t.units), speaker: s.speaker(m.Speaker)})
}

func (t *text) add(u unit, p place, surface uint32) {
	t.units, t.places, t.surfaces, t.nouns = append(t.units, u), append(t.places, p), append(t.surfaces, surface), append(t.nouns, 0)
}

// cut keeps phrases from reaching across this place.
func (t *text) cut() { t.add(noUnit, 0, 0) }

// run adds characters that stand together.
func (s *scanner) run(t *text, run string, afterDigit, spaces bool) {
	if last := len(t.units) - 1; spaces && last >= 0 && s.symbols[t.units[last]].char {
		t.cut()
	}
	// What stands before tells lexical that no sentence begins here, whose subject it would drop, and what is a unit of time.
	before := "x"
	if afterDigit {
		before = "1"
	}
	s.chars = s.chars[:0]
	for _, token := range lexical.Tokens(before + run) {
		if token.Kind == lexical.Char {
			s.chars = append(s.chars, token)
		}
	}
	words, nouns := s.cutWords(s.chars)
	for i := 0; i < len(s.chars); {
		if n := s.stopLen(i); n > 0 && words[i]&begins != 0 && words[i+n-1]&ends != 0 {
			t.cut()
			i += n
			continue
		}
		c, p, another := s.chars[i], words[i], nouns[i]
		i++
		if c.Function && s.isParticle(c.Term) {
			t.cut()
			continue
		}
		if c.Function {
			p |= function
			if p&begins != 0 && p&ends != 0 {
				p |= grammary
			}
		}
		if spaces {
			p |= spaced
			spaces = false
		}
		t.add(s.unit(c.Term, symbol{
			char: true, strong: strings.Contains(strongFunction, c.Term) || isHiragana(c.Term), light: strings.Contains(lightVerbs, c.Term),
			open: strings.Contains(neverLast, c.Term), joins: strings.Contains(joining, c.Term), local: strings.Contains(localizers, c.Term),
		}), p, s.surface(c.Surface))
		t.nouns[len(t.nouns)-1] = another
	}
}

// cutWords says of each character where it stands in its word, and which nouns would begin there if the text were cut in
// another way.
func (*scanner) cutWords(chars []lexical.Token) (places []place, nouns []uint8) {
	runes := make([]rune, 0, len(chars))
	for _, c := range chars {
		r, _ := utf8.DecodeRuneInString(c.Term)
		if simple, ok := lexical.SimplifiedRune(r); ok {
			r = simple
		}
		runes = append(runes, r)
	}
	places, nouns = make([]place, 0, len(chars)), make([]uint8, len(chars))
	for _, p := range segment(runes) {
		var of place
		switch {
		case p.measures:
			of = grammary
		case p.runes == 1: // what a single character is depends on its company; lexical knows those of grammar
			of = alone
		case p.is == grammar:
			of = grammary
		case p.is == adjective:
			of = modifies
		}
		for i := range p.runes {
			at := of
			if i == 0 {
				at |= begins
			}
			if i == p.runes-1 {
				at |= ends
			}
			places = append(places, at)
		}
	}
	for i := range runes {
		// Only what reaches across a word's end, and not what is a part of a word, is another way.
		for n := 2; n <= maxWordRunes && i+n <= len(runes); n++ {
			inner := slices.ContainsFunc(places[i:i+n-1], func(p place) bool { return p&ends != 0 })
			across := (places[i]&begins == 0) != (places[i+n-1]&ends == 0) || places[i]&begins == 0 && inner
			if across && isNoun(string(runes[i:i+n])) {
				nouns[i] |= 1 << n
			}
		}
	}
	return places, nouns
}

// stopLen is how many characters from the i-th on form a stop word.
func (s *scanner) stopLen(i int) int {
	laughs := 0
	for i+laughs < len(s.chars) && strings.Contains(interjections, s.chars[i+laughs].Term) {
		laughs++
	}
	if laughs > 1 {
		return laughs
	}
	var buffer [4 * maxStopChars]byte
	phrase, longest := buffer[:0], 0
	for n := 1; n <= maxStopChars && i+n <= len(s.chars) && len(phrase)+len(s.chars[i+n-1].Term) <= cap(phrase); n++ {
		phrase = append(phrase, s.chars[i+n-1].Term...)
		if stopHan[string(phrase)] {
			longest = n
		}
	}
	return longest
}

// isParticle reports whether the character never is a part of a word that carries content, as lexical has it.
func (s *scanner) isParticle(c string) bool {
	is, ok := s.particles[c]
	if !ok {
		for _, token := range lexical.Tokens("茶" + c) {
			is = is || token.Kind == lexical.CharPair && token.Function
		}
		s.particles[c] = is
	}
	return is
}

func (s *scanner) word(t *text, written string, spaces bool) {
	w, ok := s.words[written]
	if !ok {
		w = s.newWord(written)
		s.words[written] = w
	}
	p := place(0)
	if w.function {
		p |= function
	}
	if spaces {
		p |= spaced
	}
	t.add(w.unit, p, w.surface)
}

func (s *scanner) newWord(written string) word {
	var whole lexical.Token
	for _, token := range lexical.Tokens(written) {
		if len(token.Surface) > len(whole.Surface) {
			whole = token
		}
	}
	if whole.Term == "" {
		return word{}
	}
	number := !strings.ContainsFunc(whole.Surface, unicode.IsLetter)
	written, _ = strings.CutSuffix(written, "'s")
	written, _ = strings.CutSuffix(written, "’s")
	isFunction := whole.Function || stopWords[whole.Surface] || stopWords[whole.Term] || laughter.MatchString(whole.Surface)
	term := whole.Term
	if isFunction {
		term = whole.Surface // "others" is none, though it has the stem of a word that may be one
	}
	return word{
		unit: s.unit(term, symbol{
			number: number, short: utf8.RuneCountInString(whole.Surface) == 1, joins: isFunction && whole.Surface != "of" && whole.Surface != "the",
		}),
		surface: s.surface(written), function: isFunction,
	}
}

// markup is the length of text at the beginning that a chat platform or a program wrote: a tag, a picture's placeholder, a mention, a
// web address. It is or 0.
func markup(text string, begins bool) int {
	switch {
	case text[0] == '<':
		if len(text) > 1 && (text[1] == '/' || isASCIILetter(text[1])) {
			return closed(text, '>', 500)
		}
	case text[0] == '[':
		limit := 32 // [图片], [动画表情]
		if strings.HasPrefix(text, "[CQ:") || strings.HasPrefix(text, "[mirai:") {
			limit = 2000
		}
		return closed(text, ']', limit)
	case text[0] == '@' && begins:
		return 1 + min(span(text[1:], func(r rune) bool { return isWordRune(r) || isChar(r) || r == '_' || r == '-' || r == '.' }), 64)
	case begins && (hasPrefixFold(text, "http://") || hasPrefixFold(text, "https://") || hasPrefixFold(text, "www.")):
		return span(text, func(r rune) bool { return r > ' ' && r < utf8.RuneSelf })
	}
	return 0
}

// closed is the length up to and with the closing byte, or 0 when it does not come soon.
func closed(text string, by byte, limit int) int {
	end := strings.IndexByte(text[:min(len(text), limit)], by)
	return end + 1
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// wordLen is the length of the word that the text begins with: letters and digits, with what joins them ("node.js",
// "wi-fi", "don't") and what makes another language of a letter ("c++", "c#").
func wordLen(text string) int {
	n := span(text, isWordRune)
	for n < len(text) {
		joiner, size := utf8.DecodeRuneInString(text[n:])
		if !strings.ContainsRune("'’.-_&", joiner) {
			break
		}
		more := span(text[n+size:], isWordRune)
		if more == 0 {
			break
		}
		n += size + more
	}
	switch {
	case strings.HasPrefix(text[n:], "++"):
		n += 2
	case strings.HasPrefix(text[n:], "#") && n == 1 && isASCIILetter(text[0]):
		n++
	}
	return n
}

// span is the length of the runes at the beginning of the text for which is holds.
func span(text string, is func(rune) bool) int {
	if n := strings.IndexFunc(text, func(r rune) bool { return !is(r) }); n >= 0 {
		return n
	}
	return len(text)
}

func endsInWord(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return isWordRune(r)
}

// isChar reports whether lexical indexes a script by characters.
func isChar(r rune) bool {
	return r >= 0x0E00 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar) || r == 'ー')
}

func isWordRune(r rune) bool {
	if 0 <= r && r < utf8.RuneSelf {
		return isASCIILetter(byte(r)) || isDigit(byte(r))
	}
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !isChar(r)
}

func isASCIILetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHiragana(c string) bool {
	r, _ := utf8.DecodeRuneInString(c)
	return unicode.Is(unicode.Hiragana, r)
}
