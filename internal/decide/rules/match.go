package rules

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// word is a word written with letters other than Han, Kana and Hangul, prepared for matching. A contraction gives two
// words with the same position: "I'm" is "i" and "am".
type word struct {
	norm       string
	start, end int // byte positions in the text
}

// masked replaces each byte of a quotation or title, which is not the speaker's own statement.
const masked = '\x01'

// normalize lower-cases ASCII and simplifies traditional characters. Positions stay valid: the result has as many bytes as
// s, character by character.
func normalize(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r >= 'A' && r <= 'Z':
			b.WriteByte(byte(r) + 'a' - 'A')
		case r >= 0x4e00 && r <= 0x9fff:
			if simple, ok := simplify(r); ok {
				r = simple
			}
			b.WriteRune(r)
		case r == utf8.RuneError && n == 1: // not valid UTF-8: a space of the same length
			b.WriteByte(' ')
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// cjk reports whether the character belongs to a script that is written without spaces, for which words are found as
// substrings (Hangul is spaced, but glues endings to its words).
func cjk(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func wordRune(r rune) bool {
	return r < 0x80 && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9') || r >= 0x80 && !cjk(r) && (unicode.IsLetter(r) || unicode.IsMark(r)) ||
		r >= 'A' && r <= 'Z'
}

// wordsOf lists the words of a normalized text.
func wordsOf(norm string) []word {
	var out []word
	for i := 0; i < len(norm); {
		r, n := utf8.DecodeRuneInString(norm[i:])
		if !wordRune(r) {
			i += n
			continue
		}
		start, apostrophe := i, false
		for i < len(norm) {
			r, n = utf8.DecodeRuneInString(norm[i:])
			if r == '\'' || r == '’' {
				next, _ := utf8.DecodeRuneInString(norm[i+n:])
				if !wordRune(next) {
					break
				}
				apostrophe = true
			} else if !wordRune(r) {
				break
			}
			i += n
		}
		w := norm[start:i]
		if apostrophe {
			w = strings.ReplaceAll(w, "’", "'")
		}
		for _, part := range lexical.Expand(w) {
			out = append(out, word{part, start, i})
		}
	}
	return out
}

// phraseForms lists what a configured phrase stands for, each as a text without wildcards; none if it has no letters or
// too many wildcards.
func phraseForms(phrase string) []string {
	norm := normalize(strings.TrimSpace(phrase))
	if strings.ContainsFunc(norm, cjk) {
		return []string{norm}
	}
	if strings.Count(norm, "~") > 2 {
		return nil
	}
	forms := []string{""}
	for f := range strings.FieldsSeq(norm) {
		alternatives := []string{f}
		if verb, ok := strings.CutSuffix(f, "~"); ok {
			alternatives = verbForms(verb)
		}
		var next []string
		for _, head := range forms {
			for _, alt := range alternatives {
				next = append(next, strings.TrimSpace(head+" "+alt))
			}
		}
		forms = next
	}
	var out []string
	for _, f := range forms {
		if len(wordsOf(f)) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// index finds many phrases at once.
type index struct {
	chars map[rune][]entry   // phrases with CJK characters, by first character, longest first
	words map[string][]entry // others, by first word, longest first
}

type entry struct {
	phrase string
	words  []word
	tag    int
}

// hit is a phrase found in a text.
type hit struct {
	tag        int
	phrase     string
	start, end int // byte positions in the text
}

func newIndex() *index { return &index{chars: map[rune][]entry{}, words: map[string][]entry{}} }

// indexOf is an index of one list whose tag is 0.
func indexOf(phrases ...string) *index {
	x := newIndex()
	for _, p := range phrases {
		x.add(p, 0)
	}
	return x.sorted()
}

func (x *index) add(phrase string, tag int) {
	for _, form := range phraseForms(phrase) {
		if strings.ContainsFunc(form, cjk) {
			first, _ := utf8.DecodeRuneInString(form)
			x.chars[first] = append(x.chars[first], entry{phrase: form, tag: tag})
			continue
		}
		ws := wordsOf(form)
		x.words[ws[0].norm] = append(x.words[ws[0].norm], entry{phrase: form, words: ws, tag: tag})
	}
}

func (x *index) sorted() *index {
	for _, list := range x.chars {
		slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(len(b.phrase), len(a.phrase)) })
	}
	for _, list := range x.words {
		slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(len(b.words), len(a.words)) })
	}
	return x
}

// find lists the hits in a text in order of position, longer before shorter.
func (x *index) find(t piece) []hit {
	var out []hit
	if len(x.chars) > 0 {
		for i, r := range t.norm {
			if r < 0x80 && !wordRune(r) {
				continue
			}
			for _, e := range x.chars[r] {
				if strings.HasPrefix(t.norm[i:], e.phrase) {
					out = append(out, hit{e.tag, e.phrase, i, i + len(e.phrase)})
				}
			}
		}
	}
	for i := range t.words {
		x.wordsAt(t, i, func(e entry, end int) {
			out = append(out, hit{e.tag, e.phrase, t.words[i].start, end})
		})
	}
	slices.SortStableFunc(out, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	return out
}

// wordsAt calls yield for every phrase that begins at the i-th word, longest first.
func (x *index) wordsAt(t piece, i int, yield func(e entry, end int)) {
	for _, e := range x.words[t.words[i].norm] {
		if i+len(e.words) > len(t.words) {
			continue
		}
		same := true
		for j, w := range e.words[1:] {
			a, b := t.words[i+j], t.words[i+j+1]
			// The words of a phrase are neighbours, without a comma between them.
			if b.norm != w.norm || b.start > a.end && strings.ContainsAny(t.norm[a.end:b.start], ",，.;:!?。：") {
				same = false
				break
			}
		}
		if same {
			yield(e, t.words[i+len(e.words)-1].end)
		}
	}
}

// prefix is the length of the longest phrase at the beginning of a text, or 0.
func (x *index) prefix(t piece) int {
	best := 0
	if r, n := utf8.DecodeRuneInString(t.norm); n > 0 {
		for _, e := range x.chars[r] {
			if strings.HasPrefix(t.norm, e.phrase) {
				best = max(best, len(e.phrase))
			}
		}
	}
	if len(t.words) > 0 && t.words[0].start == 0 {
		x.wordsAt(t, 0, func(e entry, end int) {
			// "do" is not a prefix of "don't", which is two words at one position.
			if n := len(e.words); n == len(t.words) || t.words[n].start >= end {
				best = max(best, end)
			}
		})
	}
	return best
}

// any reports whether a phrase occurs in the text, and the first that does.
func (x *index) any(t piece) (string, bool) {
	if hits := x.find(t); len(hits) > 0 {
		return hits[0].phrase, true
	}
	return "", false
}

// whole reports whether the text, but for punctuation and particles, is one phrase of the index.
func (x *index) whole(t piece) bool {
	n := x.prefix(t)
	return n > 0 && strings.TrimFunc(t.norm[n:], notWord) == ""
}

func notWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != masked || strings.ContainsRune("啊呀吧哦哈呢啦嘛哟噢了的", r)
}
