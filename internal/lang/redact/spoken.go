package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// What people say has no shape: a name such as "password" announces a secret, and a link such as "is" stands before it, with words
// between. What follows the name may as well be a remark, such as "is wrong". So right behind a link anything that cannot be a word is
// the secret; further away only what has digits and letters; and a plain word only where little else is possible.
const (
	spokenBytes = 160 // how far from its name a secret is looked for
	spokenWords = 8   // and how many words may stand between
	spokenRunes = 14  // and how many characters of Chinese and Japanese
)

// sayer looks for the secrets that the names in a text announce.
type sayer struct {
	text, lower string
	found       []span
}

// spoken returns the secrets that sentences announce.
func spoken(text, lower string) []span {
	s := &sayer{text: text, lower: lower}
	behind := 0
	for at := 0; at+1 < len(lower); at++ {
		if lower[at] == '[' { // a marker names a secret that is gone
			behind = max(behind, at+markerAt(text[at:]))
		}
		index := indexOf(lower[at:])
		if at < behind || names.known[index/64]&(1<<(index%64)) == 0 {
			continue
		}
		one, ok := names.at(lower, at)
		if !ok || !s.beginsWord(at, one) {
			continue
		}
		behind = at + len(one.text)
		s.name(at, behind, one.class)
	}
	return s.found
}

// beginsWord reports whether a name is not the end of another word. Long names may be: "Routerpasswort", "DB_PASSWORD".
func (s *sayer) beginsWord(at int, one phrase) bool {
	first, _ := utf8.DecodeRuneInString(one.text)
	before, _ := utf8.DecodeLastRuneInString(s.lower[:at])
	return at == 0 || !wordRune(first) || !wordRune(before) || one.class == passwordName && (before == '_' || len(one.text) >= 8)
}

// name looks for the secret of a name.
func (s *sayer) name(start, end int, c class) {
	if next := skipBlanks(s.lower, end); next > end {
		if _, ok := compounds.at(s.lower, next); ok {
			return
		}
	}
	if c == weakCodeName {
		if !s.place(start, end) {
			return
		}
		c = codeName
	}
	if s.forward(end, c, true) || s.forward(end, c, false) {
		return
	}
	if c != loginName && c != barelyName && c != seedName {
		s.backward(start, c)
	}
}

// place reports whether something that codes open is named in the same sentence.
func (s *sayer) place(start, end int) bool {
	from, to := max(0, start-48), min(len(s.lower), end+48)
	for from > 0 && !utf8.RuneStart(s.lower[from]) {
		from--
	}
	if i := strings.LastIndexAny(s.lower[from:start], ".!?\n。！？"); i >= 0 {
		from += i + 1
	}
	if i := strings.IndexAny(s.lower[end:to], "!?\n。！？"); i >= 0 {
		to = end + i
	}
	for at := from; at < to; at++ {
		if at == 0 || !isLetterByte(s.lower[at-1]) || s.lower[at] >= utf8.RuneSelf {
			if _, ok := places.at(s.lower, at); ok {
				return true
			}
		}
	}
	return false
}

func isLetterByte(b byte) bool { return b >= 'a' && b <= 'z' }

func skipBlanks(text string, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	return at
}

// link is what stands before a place: how sure it is that a secret follows.
type link uint8

const (
	noLink   link = iota
	weakLink      // "to", "es": what follows may be a word
	isLink        // "is": what follows is a remark or a secret
	assigned      // ":": what follows is a secret
)

// itemNumber is "1. " or "2) ".
var itemNumber = lazyregexp.New(`^[0-9]{1,2}[.)][ \t]+`)

// anotherName reports whether a name of the same class begins at a place: it looks for its secret itself.
func (s *sayer) anotherName(at int, c class) bool {
	one, ok := names.at(s.lower, at)
	if !ok || one.class != c || !s.beginsWord(at, one) {
		return false
	}
	_, compound := compounds.at(s.lower, skipBlanks(s.lower, at+len(one.text)))
	return !compound
}

// possessive reports whether "'s" is at a place.
func (s *sayer) possessive(at int) bool {
	_, _, ok := s.linkAt(at)
	return ok
}

func lastRune(text string) rune {
	r, _ := utf8.DecodeLastRuneInString(text)
	return r
}

// linkAt reads a link, and what may follow it.
func (s *sayer) linkAt(at int) (end int, kind link, ok bool) {
	if one, found := isLinks.at(s.lower, at); found {
		end, kind = at+len(one.text), isLink
	}
	if one, found := links.at(s.lower, at); found && at+len(one.text) > end {
		end, kind = at+len(one.text), weakLink
	}
	if kind == noLink {
		return at, noLink, false
	}
	for {
		next := skipBlanks(s.lower, end)
		one, found := fillers.at(s.lower, next)
		if !found {
			return end, kind, true
		}
		end = next + len(one.text)
	}
}

// resumed reports whether the next sentence or clause continues with the secret.
func (s *sayer) resumed(at int) (int, bool) {
	at = skipBlanks(s.lower, at)
	if one, ok := resumes.at(s.lower, at); ok {
		return at + len(one.text), true
	}
	return at, false
}

// near reports whether a value is the secret of a name without a link between. between is how many words and characters are.
func (s *sayer) near(v value, said string, c class, between int) bool {
	if ordinary.MatchString(said) || s.timed(v.start) {
		return false
	}
	chinese := lastRune(strings.TrimRight(s.text[:v.start], " ")) > 0x2E80
	switch c {
	case passwordName, seedName:
		return nearPassword(said, between, chinese)
	case codeName:
		return isCode(said) && between <= 5 && (between <= 2 || hasDigit(said))
	case keyName, tokenName, privateName:
		return len(said) >= 16 && opaque(said)
	case weakKeyName:
		return len(said) >= 20 && opaque(said) && mixed(said) && !strings.Contains(said, "://")
	case accountName:
		return mixed(said) && len(said) >= 5
	case loginName:
		return s.with(v.start) && len(said) >= 5 && (mixed(said) || isSigned(said))
	case barelyName:
		return between == 0 && len(said) >= 4 && (mixed(said) || isSigned(said))
	default:
		return false
	}
}

// nearPassword is near for passwords. Behind Chinese and Japanese, which have no such letters, less is needed.
func nearPassword(said string, between int, chinese bool) bool {
	switch {
	case allDigits(said):
		return len(said) >= 4 && len(said) <= 16 && (between == 0 || chinese && between <= 4)
	case between == 0 && isSigned(said), chinese && isSigned(said) && len(said) >= 6:
		return true
	}
	return mixed(said) && (len(said) >= 4 || chinese && between == 0) && (between <= 4 || chinese)
}

// announced is near for what is right behind a link.
func (s *sayer) announced(v value, said string, c class, last link, plain bool) bool {
	switch c {
	case passwordName, seedName:
		if v.quoted {
			return utf8.RuneCountInString(said) >= shortestQuoted && (len(said) <= longestPassword || c == seedName) && !remarks[strings.ToLower(said)]
		}
		if len(said) < shortestPassword {
			return false
		}
		if !isWord(said) {
			return last != weakLink || mixed(said) || isSigned(said) || allDigits(said) && len(said) >= 4
		}
		return last >= isLink && plain && s.plainWord(v, said, last)
	case codeName:
		return isCode(said)
	case accountName:
		return mixed(said) && len(said) >= 5
	case barelyName:
		return last == assigned && len(said) >= 4 && !isWord(said) && !ordinary.MatchString(said)
	case weakKeyName:
		return len(said) >= 16 && opaque(said) && !strings.Contains(said, "://")
	case keyName, tokenName, privateName:
		return len(said) >= 8 && opaque(said) && !strings.Contains(said, "://") && (len(said) >= 12 || !ordinary.MatchString(said))
	default:
		return false
	}
}

// plainWord reports whether a word, such as "swordfish" or "wrong", is a password.
func (s *sayer) plainWord(v value, said string, last link) bool {
	if len(said) < shortestWord || remarks[strings.ToLower(said)] {
		return false
	}
	ends := strings.TrimLeft(s.text[v.end:], " \t")
	next, _ := utf8.DecodeRuneInString(ends)
	final := ends == "" || !unicode.IsLetter(next) || next > unicode.MaxASCII || strings.HasPrefix(ends, "and ") || strings.HasPrefix(ends, "but ")
	return last == assigned || lastRune(strings.TrimRight(s.text[:v.start], " ")) > 0x2E80 || final && !strings.ContainsAny(said, "-'’")
}

// isSigned reports whether a text has a sign inside that no word has, or changes its case as no word does.
func isSigned(said string) bool {
	if len(said) < 5 {
		return false
	}
	if strings.ContainsAny(said[1:len(said)-1], "!#$%^*+=?~@\\|&_\"`") {
		return true
	}
	return !strings.ContainsAny(said, "-’./,:()") && !isWord(said) && !isCamel(said)
}

// isCamel reports whether a text is words that begin with capitals, as names of products are.
func isCamel(said string) bool {
	for i := 1; i < len(said); i++ {
		if upperByte(said[i]) && (upperByte(said[i-1]) || i+1 == len(said) || upperByte(said[i+1])) {
			return false
		}
	}
	return true
}

func upperByte(b byte) bool { return b >= 'A' && b <= 'Z' }

// isCode reports whether a text is what locks and forms ask for: some digits, or groups of digits and letters.
func isCode(said string) bool {
	if len(said) < 3 || len(said) > 40 || !hasDigit(said) || strings.ContainsAny(said, "@") {
		return false
	}
	if allDigits(said) {
		return len(said) <= 12
	}
	digits := 0
	for i := range len(said) {
		switch c := said[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '-', c == '#', c == '*', c >= 'a' && c <= 'z', upperByte(c):
		default:
			return false
		}
	}
	return len(said) >= 4 && (digits >= 6 || !ordinary.MatchString(said))
}

// timeWords are the words before times, places and numbers of things.
var timeWords = lang.Set(`on at in since by until page step version chapter room number no um am seit vor ab dès depuis desde hasta ` +
	`windows iphone android error of about around over under than`)

// timed reports whether a word before a place says that a time, a place or a number of something follows.
func (s *sayer) timed(at int) bool {
	before := strings.TrimRight(s.lower[max(0, at-12):at], " ")
	if i := strings.LastIndexAny(before, " ,.:"); i >= 0 {
		before = before[i+1:]
	}
	return len(before) < at && timeWords[before]
}

// with reports whether "with" stands right before a place.
func (s *sayer) with(at int) bool {
	before := strings.TrimRight(s.lower[max(0, at-8):at], " \"'“`")
	i := strings.LastIndexByte(before, ' ')
	_, ok := withs.at(before, i+1)
	return ok
}

// add keeps a secret, and those of a list that it begins.
func (s *sayer) add(v value, c class) {
	v = v.whole(s.text)
	first, kind := v.of(s.text), kinds[c]
	if c == seedName {
		kind = Password
	}
	s.found = append(s.found, span{start: v.start, end: v.end, kind: kind})
	if c == passwordName || c == accountName || c == seedName {
		return
	}
	for range 32 {
		next := v.next
		for next < len(s.text) {
			r, size := utf8.DecodeRuneInString(s.text[next:])
			if !strings.ContainsRune(" \t\r\n,;，、；/|-*•\"'`.", r) {
				break
			}
			next += size
		}
		for _, and := range []string{"and ", "und ", "et ", "y ", "和", "と"} {
			if strings.HasPrefix(s.lower[next:], and) {
				next = skipBlanks(s.text, next+len(and))
			}
		}
		next += len(itemNumber.FindString(s.text[next:min(len(s.text), next+8)]))
		following, ok := read(s.text, next)
		if said := following.of(s.text); !ok || len(said) != len(first) || len(said) < 6 || !hasDigit(said) || !s.announced(following, said, c, isLink, false) {
			return
		}
		v = following
		s.found = append(s.found, span{start: v.start, end: v.end, kind: kinds[c]})
	}
}

// backward looks for the secret that comes before its name, as in "hunter2x is my password" and "用hunter2x当密码".
func (s *sayer) backward(start int, c class) {
	at := start
	for words, runes := 0, 0; words <= 4 && runes <= 8 && at > 0 && start-at < 80; {
		r, size := utf8.DecodeLastRuneInString(s.text[:at])
		switch {
		case strings.ContainsRune(".!?\n,;:。！？，；：、", r) && (!strings.ContainsRune(".!?", r) || !s.linkedBack(at)):
			return
		case r == ' ' || r == '"' || r == '\'' || r == '`' || r > '~' && !wordRune(r):
			if r > 0x2E80 {
				runes++
			}
			at -= size
		default:
			end := at
			for at > 0 && s.text[at-1] > ' ' && s.text[at-1] <= '~' || at > 0 && wordRune(lastRune(s.text[:at])) {
				_, size := utf8.DecodeLastRuneInString(s.text[:at])
				at -= size
				if end-at > longestPassword {
					return
				}
			}
			v := value{at, end, end, false}
			said := v.of(s.text)
			if s.linkedBack(end) && !placeholder(said) && !ordinary.MatchString(said) && !measure.MatchString(said) && s.near(v, said, c, 0) {
				s.found = append(s.found, span{start: at, end: end, kind: kinds[c]})
				return
			}
			words++
		}
	}
}

// linkedBack reports whether "as", "is" and the like follow a place.
func (s *sayer) linkedBack(end int) bool {
	for end < len(s.text) && strings.IndexByte(" \"'`", s.text[end]) >= 0 {
		end++
	}
	for _, mark := range []string{"”", "」", "』"} {
		end += len(s.text[end:]) - len(strings.TrimPrefix(s.text[end:], mark))
	}
	_, ok := befores.at(s.lower, skipBlanks(s.lower, end))
	return ok
}
