package redact

import (
	"cmp"
	"embed"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
)

// The phrases of each language: a folder a language, a file a use, a phrase a line. All languages are looked for in every text,
// because people mix them.
//
//go:embed data/phrases
var phraseFiles embed.FS

// class is what a phrase names.
type class uint8

const (
	none class = iota
	passwordName
	codeName
	weakCodeName
	keyName
	tokenName
	privateName
	weakKeyName
	seedName
	accountName
	loginName
	barelyName
)

// nameFiles are the files whose phrases name secrets.
var nameFiles = map[string]class{
	"password": passwordName, "code": codeName, "weakcode": weakCodeName, "key": keyName, "token": tokenName, "private": privateName,
	"weakkey": weakKeyName, "seed": seedName, "account": accountName, "login": loginName, "barely": barelyName,
}

// kinds are what the secrets of a class are, by class.
var kinds = [...]Kind{
	passwordName: Password, codeName: Password, weakCodeName: Password, keyName: APIKey, tokenName: Token, privateName: PrivateKey,
	weakKeyName: APIKey, seedName: PrivateKey, accountName: Password, loginName: Password, barelyName: Password,
}

// phrases is a set of phrases, found by their first two bytes.
type phrases struct {
	known [1 << 16 / 64]uint64
	by    map[uint16][]phrase
}

type phrase struct {
	text  string
	class class
}

var (
	names     = namesOfSecrets()
	places    = phrasesOf("places")
	isLinks   = phrasesOf("is")
	links     = phrasesOf("links")
	fillers   = phrasesOf("fillers")
	resumes   = phrasesOf("resume")
	withs     = phrasesOf("with")
	stops     = phrasesOf("stops")
	compounds = phrasesOf("compounds")
	befores   = phrasesOf("before")
	remarks   = lang.Set(linesOf("remarks")...)
)

func namesOfSecrets() (set phrases) {
	for _, file := range slices.Sorted(maps.Keys(nameFiles)) {
		for _, text := range linesOf(file) {
			set.add(phrase{text, nameFiles[file]})
		}
	}
	return set
}

// linesOf lists the phrases of the files of a name in all languages, in lower case.
func linesOf(name string) []string {
	list := lang.Files(phraseFiles, "data/phrases/*/"+name+".txt")
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

func phrasesOf(name string) (set phrases) {
	for _, text := range linesOf(name) {
		set.add(phrase{text, passwordName})
	}
	return set
}

func (p *phrases) add(one phrase) {
	if p.by == nil {
		p.by = map[uint16][]phrase{}
	}
	index := indexOf(one.text)
	if slices.ContainsFunc(p.by[index], func(other phrase) bool { return other.text == one.text }) {
		return
	}
	p.known[index/64] |= 1 << (index % 64)
	p.by[index] = append(p.by[index], one)
	slices.SortStableFunc(p.by[index], func(a, b phrase) int { return cmp.Compare(len(b.text), len(a.text)) })
}

// indexOf is what phrases that begin as a text does are found by. A phrase of one byte has a blank behind it.
func indexOf(text string) uint16 {
	if len(text) == 1 {
		return uint16(text[0])<<8 | ' '
	}
	return uint16(text[0])<<8 | uint16(text[1])
}

// at returns the longest phrase that begins at a place of a text in lower case, and ends with a word.
func (p *phrases) at(lower string, start int) (phrase, bool) {
	if start >= len(lower) {
		return phrase{}, false
	}
	index := indexOf(lower[start:])
	if p.known[index/64]&(1<<(index%64)) == 0 {
		return phrase{}, false
	}
	for _, one := range p.by[index] {
		if strings.HasPrefix(lower[start:], one.text) && endsWord(lower, start+len(one.text)) {
			return one, true
		}
	}
	return phrase{}, false
}

// endsWord reports whether a phrase that ends at a place ends with a word of an alphabet, or is of characters that need no blanks.
func endsWord(text string, end int) bool {
	if last, _ := utf8.DecodeLastRuneInString(text[:end]); !wordRune(last) {
		return true
	}
	next, size := utf8.DecodeRuneInString(text[end:])
	if next == '-' {
		next, _ = utf8.DecodeRuneInString(text[end+size:])
		return !unicode.IsLower(next) || !wordRune(next)
	}
	return !wordRune(next)
}

// wordRune reports whether a rune is of the words of alphabets that put blanks between them.
func wordRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0xC0 && r < 0x250 && unicode.IsLetter(r)
}

// lowerCase is the text in lower case with every byte where it was. What is no UTF-8 stays.
func lowerCase(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf && unicode.IsUpper(r) }) {
		return text
	}
	lower := []byte(text)
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if small := unicode.ToLower(r); small != r && utf8.RuneLen(small) == size {
			utf8.EncodeRune(lower[at:], small)
		}
		at += size
	}
	return string(lower)
}
