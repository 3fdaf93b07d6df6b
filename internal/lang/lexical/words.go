package lexical

import (
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/rivo/uniseg"
)

// maxCompoundBytes bounds the terms made from a chain of words; what is longer is a data URL or no text at all.
const maxCompoundBytes = 256

// segment is a piece of a span as UAX #29 cuts it: a word, or what is between words.
type segment struct {
	start, end int // in the scanner's text
	word       bool
}

// words emits the words of text[start:end], which holds no gram script.
func (s *scanner) words(start, end int) {
	if !strings.ContainsFunc(s.text[start:end], isWordRune) {
		return
	}
	s.segments = s.cut(s.segments[:0], start, end)
	chained := 0 // the first segment that no chain has taken
	for i := 0; i < len(s.segments); i++ {
		if !s.segments[i].word {
			continue
		}
		if s.strip {
			if last, is := s.subjectAt(i); is {
				i = last
				continue
			}
		}
		if i >= chained {
			chained = s.chain(i)
		}
		s.word(s.at(i))
	}
}

func (s *scanner) cut(segments []segment, start, end int) []segment {
	for state := -1; start < end; {
		var word string
		word, _, state = uniseg.FirstWordInString(s.text[start:end], state)
		segments = append(segments, segment{start, start + len(word), strings.ContainsFunc(word, isWordRune)})
		start += len(word)
	}
	return segments
}

func isWordRune(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// at is the i-th segment's text, empty beyond the last.
func (s *scanner) at(i int) string {
	if i < 0 || i >= len(s.segments) {
		return ""
	}
	return s.text[s.segments[i].start:s.segments[i].end]
}

// chain emits the words that hang together from segment i on without a space, as one term: an address, a date, "at&t",
// "c++". It returns the first segment behind them.
func (s *scanner) chain(i int) int {
	last := i
	for {
		next := s.afterJoiner(last + 1)
		if next < 0 {
			break
		}
		last = next
	}
	end := s.segments[last].end
	if sign := s.languageSign(last); sign > 0 {
		end += sign
	} else if last == i {
		return i + 1
	}
	if whole := s.text[s.segments[i].start:end]; len(whole) <= maxCompoundBytes && !isDate(whole) {
		s.emit(Token{Term: whole, Surface: whole, Kind: Compound})
	}
	return last + 1
}

// afterJoiner is the word behind the joiner at segment i, or -1.
func (s *scanner) afterJoiner(i int) int {
	joiner := s.at(i)
	if len(joiner) != 1 || strings.IndexByte("-.@:/+#&=?%~", joiner[0]) < 0 {
		return -1
	}
	i++
	if joiner == ":" && s.at(i) == "/" && s.at(i+1) == "/" {
		i += 2
	}
	if i < len(s.segments) && s.segments[i].word {
		return i
	}
	return -1
}

// languageSign is the length of the "++" or "#" that makes another programming language of the word at segment i.
func (s *scanner) languageSign(i int) int {
	rest := s.text[s.segments[i].end:]
	switch word := s.at(i); {
	case strings.HasPrefix(rest, "++"):
		return 2
	case strings.HasPrefix(rest, "#") && len(word) == 1 && isASCIILetter(word[0]):
		return 1
	}
	return 0
}

// word emits one word and what it is made of.
func (s *scanner) word(w string) {
	if isASCIIDigit(w[0]) && strings.Trim(w, "0123456789.,'") == "" {
		number := w
		if strings.ContainsAny(w, ",'") { // between thousands
			number = strings.NewReplacer(",", "", "'", "").Replace(w)
		}
		if len(number) == 2 { // 05-04 is 5月4日
			number = strings.TrimPrefix(number, "0")
		}
		s.emit(Token{Term: number, Surface: w, Kind: Number})
		return
	}
	w = strings.TrimSuffix(w, "'s")
	if i := strings.IndexFunc(w, func(r rune) bool { return !isWordRune(r) && !unicode.IsMark(r) }); i >= 0 && !isFunctionWord(w) {
		s.emit(Token{Term: w, Surface: w, Kind: Compound})
		for part := range strings.FieldsFuncSeq(w, func(r rune) bool { return !isWordRune(r) && !unicode.IsMark(r) }) {
			if len(part) > 1 { // the letters of "e.g" say nothing, nor what is before the apostrophe of "d'accord"
				s.simple(part)
			}
		}
		return
	}
	s.simple(w)
}

// simple emits a word of letters and digits; "iphone15" also as "iphone" and "15".
func (s *scanner) simple(w string) {
	letters, all := stemmable(w)
	term := w
	if all {
		term = stem(w)
	}
	kind := Word
	if head, tail := splitDigits(w, letters); head != "" {
		kind = Compound
		s.part(head)
		s.part(tail)
	}
	s.emit(Token{Term: term, Surface: w, Kind: kind, Function: s.marks && isFunctionWord(w)})
}

func (s *scanner) part(w string) {
	if isASCIIDigit(w[0]) {
		s.emit(Token{Term: w, Surface: w, Kind: Number})
		return
	}
	s.emit(Token{Term: stem(w), Surface: w, Kind: Word})
}

// stemmable counts the letters a to z that a word begins with, and reports whether it has nothing else.
func stemmable(w string) (letters int, all bool) {
	for letters < len(w) && isASCIILetter(w[letters]) {
		letters++
	}
	return letters, letters == len(w)
}

// splitDigits splits a word of two or more letters followed or preceded by digits. head is empty for any other.
func splitDigits(w string, letters int) (head, tail string) {
	digits := 0
	for letters+digits < len(w) && isASCIIDigit(w[letters+digits]) {
		digits++
	}
	if letters == 0 {
		if n, _ := stemmable(w[digits:]); n < 2 || digits == 0 || digits+n < len(w) {
			return "", ""
		}
		return w[:digits], w[digits:]
	}
	if letters < 2 || digits == 0 || letters+digits < len(w) {
		return "", ""
	}
	return w[:letters], w[letters:]
}

// stem is Snowball's English stemmer, "Porter2": https://snowballstem.org/algorithms/english/stemmer.html
func stem(w string) string {
	if len(w) < 3 { // the algorithm leaves those alone
		return w
	}
	env := snowballstem.NewEnv(w)
	english.Stem(env)
	return env.Current()
}
