package prompt

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// folded is a text as a reader that normalises it sees it: after NFKC, and without the characters that only join or style
// others. It knows where each of its bytes comes from.
type folded struct {
	text string
	// starts and ends are, for each byte of text, the part of the original that it comes from. They are nil when text is the
	// original.
	starts, ends []int
}

// fold folds a text.
func fold(text string) folded {
	if ascii(text) {
		return folded{text: text}
	}
	var f folded
	var b strings.Builder
	add := func(part string, start, end int) {
		if part == zeroWidthJoiner || part == textStyle || part == emojiStyle {
			return
		}
		b.WriteString(part)
		for range len(part) {
			f.starts, f.ends = append(f.starts, start), append(f.ends, end)
		}
	}
	var it norm.Iter
	it.InitString(norm.NFKC, text)
	for !it.Done() {
		start := it.Pos()
		part := string(it.Next())
		end := it.Pos()
		if part != text[start:end] {
			// A joiner belongs to what it stands behind, so it may be a part of something longer.
			add(joiners.Replace(part), start, end)
			continue
		}
		for i, r := range part {
			add(string(r), start+i, start+i+utf8.RuneLen(r))
		}
	}
	f.text = b.String()
	return f
}

const zeroWidthJoiner, textStyle, emojiStyle = "\u200d", "\ufe0e", "\ufe0f"

var joiners = strings.NewReplacer(zeroWidthJoiner, "", textStyle, "", emojiStyle, "")

// at is the part of the original that bytes start to end of the folded text come from.
func (f *folded) at(start, end int) (int, int) {
	if f.starts == nil {
		return start, end
	}
	return f.starts[start], f.ends[end-1]
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
