package lexical

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
)

// scanner walks over one folded text.
type scanner struct {
	text  string
	marks bool // fill in Token.Function
	strip bool // leave out the subject that opens every stored statement
	emit  func(Token)

	segments []segment // of the span at hand; reused
}

// scan emits the tokens of a text.
func scan(text string, marks bool, emit func(Token)) {
	folded := fold(text)
	emitted := false
	s := scanner{text: folded, marks: marks, strip: true, emit: func(t Token) { emitted = true; emit(t) }}
	s.run()
	if !emitted {
		s.strip = false
		s.run()
	}
}

func (s *scanner) run() {
	s.dates()
	for start := 0; start < len(s.text); {
		end := start
		grams := false
		for end < len(s.text) {
			r, size := rune(s.text[end]), 1
			if r >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(s.text[end:])
			}
			switch is := isGram(r); {
			case end == start:
				grams = is
			case is != grams:
				size = 0
			}
			if size == 0 {
				break
			}
			end += size
		}
		if grams {
			s.chars(start, end)
		} else {
			s.words(start, end)
		}
		start = end
	}
}

// isGram reports whether a script is indexed by characters and pairs: scripts without spaces between words, and Hangul.
func isGram(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case 0x4E00 <= r && r <= 0x9FFF: // Han
		return true
	case r <= 0x0EFF, 0x1000 <= r && r <= 0x109F, 0x1780 <= r && r <= 0x17D3: // Thai, Lao; Myanmar; Khmer
		return unicode.IsLetter(r) || unicode.IsMark(r)
	case 0x3005 <= r && r <= 0x3007: // 々〆〇
		return true
	case 0x3041 <= r && r <= 0x30FF: // kana, with ー but without ・, ゠ and stray voicing marks
		return r != '・' && r != '゠' && (r < 0x3099 || r > 0x309C)
	case 0x3105 <= r && r <= 0x312F: // bopomofo
		return true
	case 0x3400 <= r && r <= 0x4DBF, 0xF900 <= r && r <= 0xFAFF, 0x20000 <= r && r <= 0x323AF: // more Han
		return true
	case 0xAC00 <= r && r <= 0xD7A3: // Hangul syllables
		return true
	}
	return false
}

// chars emits the characters and pairs of text[start:end], which are all of gram scripts.
func (s *scanner) chars(start, end int) {
	if s.strip && s.clauseBegins(start) {
		start += subjectLen(s.text[start:end])
	}
	afterDigit := start > 0 && isASCIIDigit(s.text[start-1])
	phraseEnd, previous, before := start, -1, content
	for i := start; i < end; {
		r, size := utf8.DecodeRuneInString(s.text[i:end])
		next := i + size
		for next < end { // a vowel sign belongs to its letter
			mark, n := utf8.DecodeRuneInString(s.text[next:end])
			if mark >= 0x2000 || !unicode.IsMark(mark) {
				break
			}
			next += n
		}
		role := content
		if s.marks {
			if i >= phraseEnd {
				phraseEnd = i + functionPhraseLen(s.text[i:end])
			}
			switch {
			case isParticle(r):
				role = particle
			case i < phraseEnd, isFunctionChar(r), i == start && afterDigit && isDateUnit(r):
				role = function
			}
		}
		c := s.text[i:next]
		s.emit(Token{Term: c, Surface: c, Kind: Char, Function: role != content})
		if previous >= 0 {
			pair := s.text[previous:next]
			s.emit(Token{Term: pair, Surface: pair, Kind: CharPair, Function: pairFunction(before, role)})
		}
		previous, before, i = i, role, next
	}
}

// charRole is what a character does in its sentence.
type charRole uint8

const (
	content  charRole = iota
	function          // grammar by itself, but perhaps part of a content word
	particle          // always grammar
)

// pairFunction reports whether a pair carries no content: 过敏 does, though 过 alone is grammar.
func pairFunction(a, b charRole) bool {
	return a != content && b != content || a == particle || b == particle
}

// clauseBegins reports whether no letter or digit stands directly before the offset.
func (s *scanner) clauseBegins(at int) bool {
	r, _ := utf8.DecodeLastRuneInString(s.text[:at])
	return !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

func isASCIIDigit(c byte) bool { return '0' <= c && c <= '9' }

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// dates emits every numeric date in one spelling, as day and as month: 2023年5月4日, 2023/5/4 and 2023-05-04 all give
// "2023-05-04" and "2023-05".
func (s *scanner) dates() {
	for i := 0; i < len(s.text); i++ {
		if !isASCIIDigit(s.text[i]) {
			continue
		}
		d, n := dates.Numeric(s.text[i:])
		if n == 0 {
			for i+1 < len(s.text) && isASCIIDigit(s.text[i+1]) {
				i++
			}
			continue
		}
		month := fmt.Sprintf("%d-%02d", d.Year, d.Month)
		if d.Day > 0 {
			day := fmt.Sprintf("%s-%02d", month, d.Day)
			s.emit(Token{Term: day, Surface: day, Kind: Compound})
		}
		s.emit(Token{Term: month, Surface: month, Kind: Compound})
		i += n - 1
	}
}

// isDate reports whether the text is a numeric date and nothing else.
func isDate(text string) bool {
	_, n := dates.Numeric(text)
	return n > 0 && n == len(text)
}
