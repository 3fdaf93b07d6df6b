package lists

import (
	"slices"
	"strings"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
)

// titleForm is how a person may write a title, and which item of the list has it.
type titleForm struct {
	letters []rune // and digits, folded
	number  Ordinal
}

// subtitles are what stands between a title and what may be left out of it.
const subtitles = ":(-/|·~《》"

// titleForms lists the forms of the titles that mean one item alone: whole, and without a subtitle. A title of one character is not found
// among other words.
func titleForms(titles []string) []titleForm {
	owners := map[string]Ordinal{}
	add := func(text string, n Ordinal) {
		form := string(letters(text))
		if owner, ok := owners[form]; ok && owner != n {
			n = 0 // of two items
		}
		owners[form] = n
	}
	for i, title := range titles {
		title = fold(title)
		add(title, Ordinal(i+1))
		if at := strings.IndexAny(title, subtitles); at > 0 {
			add(title[:at], Ordinal(i+1))
		}
	}
	var forms []titleForm
	for form, n := range owners {
		if runes := []rune(form); n > 0 && len(runes) > 1 && strings.ContainsFunc(form, unicode.IsLetter) {
			forms = append(forms, titleForm{runes, n})
		}
	}
	slices.SortFunc(forms, func(a, b titleForm) int {
		if len(a.letters) != len(b.letters) {
			return len(b.letters) - len(a.letters)
		}
		return int(a.number - b.number)
	})
	return forms
}

func letters(text string) []rune {
	var kept []rune
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// named lists the titles that stand at a position.
func (p *parser) named(at int) (found []choice) {
	for _, form := range p.titles {
		end, i := at, 0
		for ; end < len(p.text) && i < len(form.letters); end++ {
			r := p.text[end]
			switch {
			case r == form.letters[i]:
				i++
			case end == at, unicode.IsLetter(r), unicode.IsDigit(r):
				i = len(form.letters) + 1
			}
		}
		if i == len(form.letters) && bounded(p.text, at, end) {
			found = append(found, choice{end: end, span: Span{form.number, form.number}, marked: true})
		}
	}
	return found
}

// exactTitle returns the item whose title the whole text is.
func exactTitle(text string, titles []string) (n Ordinal, ok bool) {
	said := letters(fold(text))
	for i, title := range titles {
		if len(said) == 0 || !slices.Equal(said, letters(fold(title))) {
			continue
		}
		if n > 0 {
			return 0, false // of two items
		}
		n = Ordinal(i + 1)
	}
	return n, n > 0
}

// nearTitle returns the item whose title the whole text is but for a slip. The digits must be the same: they tell sequels apart.
func nearTitle(text string, titles []string) (Ordinal, bool) {
	const shortest = 4
	said := letters(text)
	best, found, ambiguous := 0.0, Ordinal(0), false
	for i, title := range titles {
		other := letters(fold(title))
		if len(said) < shortest || len(other) < shortest || numerals(said) != numerals(other) {
			continue
		}
		switch s := compare.Similarity(string(said), string(other)); {
		case s < compare.Threshold || s < best:
		case s == best:
			ambiguous = true
		default:
			best, found, ambiguous = s, Ordinal(i+1), false
		}
	}
	return found, found > 0 && !ambiguous
}

// numerals are the digits of a text, Chinese ones included.
func numerals(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		_, chinese := chineseDigits[r]
		if chinese || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
