package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The full-width forms of ASCII are ASCII moved up by fullWidthOffset.
const (
	fullWidthFirst  = '！'
	fullWidthLast   = '～'
	fullWidthOffset = fullWidthFirst - '!'
)

// fold unifies spellings that readers consider equal: compatibility forms (NFKC: width, ligatures, composed accents), lower case, Latin
// letters without accents, one apostrophe. A text that needs no folding is returned unchanged.
func fold(text string) string {
	first := firstToFold(text)
	if first == len(text) {
		return text
	}
	// NFKC on everything would cost more than all the rest, only because 「，」 is a compatibility form of ",".
	if strings.ContainsFunc(text[first:], needsNormalization) {
		text, first = norm.NFKC.String(text), 0
	}
	var b strings.Builder
	b.Grow(len(text))
	b.WriteString(text[:first])
	for i, r := range text[first:] {
		if r < utf8.RuneSelf {
			b.WriteByte(lowerASCII(text[first+i]))
			continue
		}
		foldRune(&b, r, text[first+i:])
	}
	return b.String()
}

// firstToFold is the offset of the first rune that folding may change.
func firstToFold(text string) int {
	for i, r := range text {
		if r < utf8.RuneSelf {
			if 'A' <= r && r <= 'Z' {
				return i
			}
		} else if !isCommonCJK(r) {
			// The rune before may combine with it: normalization has to see both.
			_, size := utf8.DecodeLastRuneInString(text[:i])
			return i - size
		}
	}
	return len(text)
}

// isCommonCJK reports whether folding never changes a rune, alone or followed by another such rune.
func isCommonCJK(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3001 <= r && r <= 0x3029 || 0x3041 <= r && r <= 0x3096 || 0x30A1 <= r && r <= 0x30FE
}

// needsNormalization is false for runes that foldRune treats as NFKC would. A test compares both over all of Unicode.
func needsNormalization(r rune) bool {
	switch {
	case r < utf8.RuneSelf, isCommonCJK(r), fullWidthFirst <= r && r <= fullWidthLast:
		return false
	case 0x00C0 <= r && r <= 0x0131: // Latin letters, composed
		return false
	case 0x0410 <= r && r <= 0x044F, r == 'ё', r == 'Ё': // Russian
		return false
	case 0x2018 <= r && r <= 0x201D, r == '—', r == '–': // quotation marks and dashes
		return false
	case 0xAC00 <= r && r <= 0xD7A3: // Hangul syllables
		return false
	case 0x1F300 <= r && r <= 0x1FAFF: // emoji
		return false
	}
	return true
}

func foldRune(b *strings.Builder, r rune, at string) {
	switch r {
	case '‘', '’', 'ʼ', '＇':
		b.WriteByte('\'')
		return
	case 'Æ', 'æ':
		b.WriteString("ae")
		return
	case 'Œ', 'œ':
		b.WriteString("oe")
		return
	case 'ß', 'ẞ':
		b.WriteString("ss")
		return
	case 'Ø', 'ø':
		r = 'o'
	case 'Ł', 'ł':
		r = 'l'
	case 'Đ', 'đ', 'Ð', 'ð':
		r = 'd'
	case 'Þ', 'þ':
		b.WriteString("th")
		return
	case 'Ħ', 'ħ':
		r = 'h'
	case 'ı', 'İ':
		r = 'i'
	case 'Ё', 'ё': // printed as е almost everywhere
		r = 'е'
	case 'ς':
		r = 'σ'
	case '\u00AD', '\uFEFF': // soft hyphen, byte order mark: invisible inside a word
		return
	}
	switch {
	case fullWidthFirst <= r && r <= fullWidthLast:
		b.WriteByte(lowerASCII(byte(r - fullWidthOffset)))
		return
	case 0x00C0 <= r && r <= 0x024F, 0x1E00 <= r && r <= 0x1EFF:
		// NFD puts the base letter first; a Latin letter without decomposition stays.
		if d := norm.NFD.PropertiesString(at).Decomposition(); len(d) > 0 && d[0] < utf8.RuneSelf {
			b.WriteByte(lowerASCII(d[0]))
			return
		}
	case 0x0300 <= r && r <= 0x036F, unicode.Is(unicode.Variation_Selector, r):
		return // an accent that has no composed form, or a choice of glyph
	}
	b.WriteRune(unicode.ToLower(r))
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
