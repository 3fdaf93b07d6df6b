package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// belongings are the words that say what a password is for: a plain word may be one behind "the password for the router is".
var belongings = []string{"for", "of", "to", "on", "at"}

// step is what reading a part of a sentence came to.
type step uint8

const (
	onward step = iota
	hit         // a secret was found
	over        // there is none
)

// sentence is what follows a name, as far as it was read.
type sentence struct {
	*sayer
	class  class
	linked bool // only what is right behind a link counts

	name  int // where the name ends
	at    int
	words int
	runes int // of Chinese and Japanese
	last  link
	plain bool // whether a plain word may be the secret
}

// forward looks for the secret behind a name. linked: only right behind a link.
func (s *sayer) forward(at int, c class, linked bool) bool {
	if at+1 < len(s.text) && strings.IndexByte("&?#%@+", s.text[at]) >= 0 && s.text[at+1] > ' ' { // a part of a URL
		return false
	}
	f := &sentence{sayer: s, class: c, linked: linked, name: at, at: at, plain: true}
	for f.at < len(s.text) && f.at-f.name < spokenBytes && f.words <= spokenWords && f.runes <= spokenRunes {
		if strings.HasPrefix(s.text[f.at:], beginEN) || strings.HasPrefix(s.text[f.at:], beginZH) {
			return true // it was found before
		}
		if f.at > f.name && s.anotherName(f.at, c) {
			return false
		}
		if came := f.next(); came != onward {
			return came == hit
		}
	}
	return false
}

// next reads a sign, a quotation, a character of Chinese or a word.
func (f *sentence) next() step {
	r, size := utf8.DecodeRuneInString(f.text[f.at:])
	switch {
	case r == ' ' || r == '\t' || r == '\u00a0' || r == '\u3000':
		f.at += size
	case r == '\n' || r == '\r':
		if f.last != assigned {
			return over
		}
		f.at += size
	case strings.ContainsRune(":=：＝→⇒", r) || strings.HasPrefix(f.text[f.at:], "->"):
		f.last = assigned
		f.at += size
		for f.at < len(f.text) && strings.IndexByte("=>", f.text[f.at]) >= 0 {
			f.at++
		}
	case strings.ContainsRune(".!?。！？;；,，、…", r):
		return f.mark(r, size)
	case f.at == f.name && (r == '"' || r == '\'' || r == '`' || r == '\\') && !f.possessive(f.at):
		for f.at < len(f.text) && strings.IndexByte("\"'`\\", f.text[f.at]) >= 0 { // the end of a quotation around the name
			f.at++
		}
	case (closing[r] != "" || r == '\\') && !f.possessive(f.at):
		return f.quotation(size)
	case r > '~' && !wordRune(r), strings.ContainsRune("/-–—(（[", r) && f.last != assigned:
		f.character(r, size)
	default:
		return f.word(r, size)
	}
	return onward
}

// mark reads the end of a sentence or clause. The next one may continue with the secret.
func (f *sentence) mark(r rune, size int) step {
	next, ok := f.resumed(f.at + size)
	if !ok && (!strings.ContainsRune(",，、", r) || f.words+f.runes > 0) {
		return over
	}
	if f.at, f.last = next, noLink; ok {
		f.last = weakLink
	}
	return onward
}

func (f *sentence) quotation(size int) step {
	v, ok := readQuoted(f.text, f.at)
	if !ok {
		f.at += size
		return onward
	}
	if f.accepts(v) {
		f.add(v, f.class)
		return hit
	}
	f.at, f.last = v.next, noLink
	f.words++
	return onward
}

// character reads a character of a language without blanks, or a sign between words.
func (f *sentence) character(r rune, size int) {
	if behind, kind, ok := f.linkAt(f.at); ok {
		f.at, f.last = behind, kind
		return
	}
	if unicode.IsLetter(r) {
		if f.runes > 4 {
			f.last = noLink
		}
		f.runes++
		f.plain = false
	}
	if strings.ContainsRune(")）]】」", r) {
		f.last = noLink
	}
	f.at += size
}

func (f *sentence) word(r rune, size int) step {
	if behind, kind, ok := f.linkAt(f.at); ok && (f.at == f.name || !wordRune(lastRune(f.text[:f.at])) || r == '\'') {
		f.at, f.last = behind, max(kind, f.last)
		return onward
	}
	v, ok := read(f.text, f.at)
	if !ok {
		f.at += size
		return onward
	}
	if f.seedAt(f.at, f.class, f.last) {
		return hit
	}
	if f.accepts(v) {
		f.add(v, f.class)
		return hit
	}
	if _, ok := fillers.at(f.lower, f.at); ok && f.last != noLink {
		f.at = v.end
		return onward
	}
	if _, ok := stops.at(f.lower, f.at); ok {
		return over
	}
	if f.words == 0 {
		f.plain = slices.Contains(belongings, f.lower[v.start:v.end])
	}
	f.at, f.last = v.end, noLink
	f.words++
	return onward
}

// accepts reports whether a value is the secret of the name.
func (f *sentence) accepts(v value) bool {
	said := v.of(f.text)
	if placeholder(said) || measure.MatchString(f.text[v.start:min(len(f.text), v.end+12)]) {
		return false
	}
	if f.linked {
		return f.class != loginName && f.last != noLink && f.announced(v, said, f.class, f.last, f.plain)
	}
	return f.near(v, said, f.class, f.words+f.runes)
}
