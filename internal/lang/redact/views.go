package redact

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// view is a text after decoding. For every byte it knows the position in the original.
type view struct {
	text string
	from []int32 // where each byte begins in the original, and where the text ends; nil: the view is the original
}

// original maps a span back. What stands for its last character is a part of it.
func (v view) original(s span) span {
	if v.from != nil {
		s.start, s.end = int(v.from[s.start]), int(v.from[s.end])
	}
	return s
}

// mostViews is how deep encodings inside of encodings are decoded.
const mostViews = 5

// views lists the readings of a text: the text itself, then decoded once for each encoding found in it.
func views(text string) []view {
	list := []view{{text: text}}
	if folded, ok := fold(list[0]); ok {
		list[0] = folded // nothing is lost by reading wide characters as the ones they stand for
	}
	for i := 0; i < len(list) && len(list) < mostViews; i++ {
		for _, decode := range []func(view) (view, bool){unescape, percent} {
			if decoded, ok := decode(list[i]); ok {
				list = append(list, decoded)
			}
		}
	}
	return list
}

// builder makes a view of a view.
type builder struct {
	of   view
	text strings.Builder
	from []int32
}

func (b *builder) write(at int, decoded string) {
	place := int32(at) //nolint:gosec // texts are smaller than 2 GiB
	if b.of.from != nil {
		place = b.of.from[at]
	}
	b.text.WriteString(decoded)
	for range len(decoded) {
		b.from = append(b.from, place)
	}
}

func (b *builder) view() view {
	end := int32(len(b.of.text)) //nolint:gosec // as above
	if b.of.from != nil {
		end = b.of.from[len(b.of.text)]
	}
	return view{b.text.String(), append(b.from, end)}
}

// foldable reports whether a character stands for a plainer one that secrets are written with: wide letters, digits and signs but
// for the punctuation of Chinese, digits in circles and mathematical ones; or whether it is invisible.
func foldable(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x2069, r == 0xFEFF:
		return true
	case r >= 0xFF01 && r <= 0xFF5E:
		return !strings.ContainsRune("！（），：；？", r)
	}
	return r >= 0x1D400 && r <= 0x1D7FF || r >= 0x2460 && r <= 0x2468 || r >= 0x2070 && r <= 0x2079 || r >= 0x2080 && r <= 0x2089 ||
		r >= 0x660 && r <= 0x6F9 && unicode.IsDigit(r)
}

// fold reads characters as the ones that they stand for (NFKC), and leaves invisible ones out.
func fold(v view) (view, bool) {
	if strings.IndexFunc(v.text, foldable) < 0 {
		return view{}, false
	}
	b := builder{of: v}
	for at, r := range v.text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(v.text[at:])
		}
		switch {
		case !foldable(r):
			b.write(at, v.text[at:at+size])
		case r >= 0x660 && r <= 0x6F9:
			b.write(at, string('0'+(r-0x660)%16%10))
		case unicode.Is(unicode.Cf, r):
		default:
			b.write(at, norm.NFKC.String(string(r)))
		}
	}
	return b.view(), true
}

// unescape reads what JSON writes with backslashes.
func unescape(v view) (view, bool) {
	if !strings.Contains(v.text, `\"`) && !strings.Contains(v.text, `\u00`) && !strings.Contains(v.text, `\n`) && !strings.Contains(v.text, `\\`) {
		return view{}, false
	}
	b := builder{of: v}
	for at := 0; at < len(v.text); {
		if v.text[at] != '\\' || at+1 == len(v.text) {
			_, size := utf8.DecodeRuneInString(v.text[at:])
			b.write(at, v.text[at:at+size])
			at += size
			continue
		}
		size, decoded := 2, v.text[at:at+1]
		switch c := v.text[at+1]; c {
		case '"', '\\', '/':
			decoded = string(c)
		case 'n', 'r':
			decoded = "\n"
		case 't':
			decoded = "\t"
		case 'u':
			code, err := strconv.ParseUint(v.text[min(len(v.text), at+2):min(len(v.text), at+6)], 16, 16)
			if at+6 > len(v.text) || err != nil || code >= 0xD800 && code < 0xE000 {
				size = 1
				break
			}
			size, decoded = 6, string(rune(code))
		default:
			size = 1
		}
		b.write(at, decoded)
		at += size
	}
	return b.view(), true
}

// percent reads what URLs write with percent signs.
func percent(v view) (view, bool) {
	first := strings.IndexByte(v.text, '%')
	if first < 0 {
		return view{}, false
	}
	b, found := builder{of: v}, false
	for at := 0; at < len(v.text); {
		if v.text[at] == '%' && at+3 <= len(v.text) {
			if code, err := strconv.ParseUint(v.text[at+1:at+3], 16, 8); err == nil && code >= ' ' && code < 0x7F {
				b.write(at, string(rune(code)))
				at += 3
				found = true
				continue
			}
		}
		_, size := utf8.DecodeRuneInString(v.text[at:])
		b.write(at, v.text[at:at+size])
		at += size
	}
	return b.view(), found
}
