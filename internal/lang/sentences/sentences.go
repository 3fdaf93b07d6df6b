// Package sentences divides a message into sentences, in any language.
package sentences

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentence is a part of a text. Start and End are its bytes: text[Start:End], without white space around it.
type Sentence struct{ Start, End int }

// Of returns the sentences of a text, in order. A line ends a sentence, and so does a full stop, a question mark or an exclamation mark,
// and a space between two Chinese or Japanese characters, as people write it instead of a full stop. A block between code fences is one
// sentence. A part without letters and digits belongs to the sentence before it.
func Of(text string) []Sentence {
	s := splitter{text: text}
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], fence) {
			s.end(i)
			stop := len(text)
			if n := strings.Index(text[i+len(fence):], fence); n >= 0 {
				stop = i + 2*len(fence) + n
			}
			s.end(stop)
			i = stop
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		after := i + n
		switch {
		case r == '\n' || r == '\r' || r == '\u2028':
			s.end(i)
		case strings.ContainsRune("。！？!?…；", r):
			after = s.run(after)
			s.end(after)
		case r == '.' || r == ';':
			if run := s.run(after); s.stops(i, run) {
				after = run
				s.end(after)
			}
		case unicode.IsSpace(r) && i > 0 && after < len(text):
			before, _ := utf8.DecodeLastRuneInString(text[:i])
			next, _ := utf8.DecodeRuneInString(text[after:])
			if ideograph(before) && ideograph(next) {
				s.end(i)
			}
		}
		i = after
	}
	s.end(len(text))
	return s.list
}

const fence = "```"

type splitter struct {
	text string
	from int
	list []Sentence
}

// run returns the end of the marks that follow: closing brackets and quotation marks, and more of the same.
func (s *splitter) run(at int) int {
	for at < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[at:])
		if !strings.ContainsRune(".。！？!?…~～”’」』）)\"'", r) || strings.ContainsRune("\"'", r) && strings.Count(s.text[s.from:at], string(r))%2 == 0 {
			break
		}
		at += n
	}
	return at
}

// stops reports whether the full stop at i ends a sentence: it is followed by a space or the end, and is not one of an abbreviation, an
// initial or a number in a list.
func (s *splitter) stops(i, after int) bool {
	if after < len(s.text) {
		if r, _ := utf8.DecodeRuneInString(s.text[after:]); !unicode.IsSpace(r) && !ideograph(r) {
			return false
		}
	}
	if after-i > 1 || s.text[i] == ';' {
		return true
	}
	word := s.text[s.from:i]
	if at := strings.LastIndexFunc(word, unicode.IsSpace); at >= 0 {
		word = word[at+1:]
	}
	word = strings.ToLower(strings.TrimLeft(word, "(\"'“‘["))
	switch {
	case abbreviations[word], utf8.RuneCountInString(word) == 1 && word != "i", strings.Contains(word, ".") && len(word) <= 4:
		return after >= len(s.text)
	case strings.Trim(word, "0123456789") == "" && word != "": // "3. fry" and German "am 3. Mai", but not "in 2019. Then"
		return len(word) > 2 || after >= len(s.text)
	}
	return true
}

var abbreviations = set(
	"dr mr mrs ms st jr sr prof vs etc ca approx no nr str ave e.g i.e z.b d.h u.a bzw evtl ggf usw inkl tel mme mlle m sra sta ud uds avda p.ej",
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		m[word] = true
	}
	return m
}

func ideograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || strings.ContainsRune("，、：", r)
}

// end ends the current sentence at a byte.
func (s *splitter) end(at int) {
	if comma := s.questionAfter(at); comma > 0 {
		s.end(comma)
	}
	part := s.text[s.from:at]
	start := s.from + len(part) - len(strings.TrimLeftFunc(part, unicode.IsSpace))
	stop := s.from + len(strings.TrimRightFunc(part, unicode.IsSpace))
	s.from = at
	if start >= stop {
		return
	}
	if len(s.list) > 0 && !strings.ContainsFunc(s.text[start:stop], wordy) {
		s.list[len(s.list)-1].End = stop
		return
	}
	s.list = append(s.list, Sentence{start, stop})
}

// questionAfter returns the end of the last comma of a Chinese or Japanese sentence that ends at a byte with a question mark, or 0: a question
// that follows after a comma is a sentence of its own there.
func (s *splitter) questionAfter(at int) int {
	part := strings.TrimRightFunc(s.text[s.from:at], func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("~～!！”」』）", r) })
	if !strings.HasSuffix(part, "？") && !strings.HasSuffix(part, "?") {
		return 0
	}
	if comma := strings.LastIndex(part, "，"); comma > 0 && strings.ContainsFunc(part[:comma], wordy) && strings.ContainsFunc(part[comma:], wordy) {
		return s.from + comma + len("，")
	}
	return 0
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
