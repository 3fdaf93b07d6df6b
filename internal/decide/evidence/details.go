package evidence

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

var (
	ofYears = lazyregexp.New(`^\s?个?[ -]?(年|岁|周岁|years?|yrs?|yo\b)`)
	joints  = lazyregexp.New(`、|,|，|和|跟|还有|以及|\band\b|\bplus\b|\bas well as\b|&`)
)

// details lists the details of a statement that need evidence.
func details(statement string) []detail {
	var list []detail
	rest := []byte(statement)
	for _, at := range quotedText.FindAllSubmatchIndex(rest, -1) {
		for i := 2; i < len(at); i += 2 {
			if at[i] < 0 {
				continue
			}
			text := statement[at[i]:at[i+1]]
			list = append(list, detail{kind: title, text: text, folded: fold(text)})
		}
		blankOut(rest, at[0], at[1])
	}
	text := string(rest)
	isChinese := lexical.Language(statement) == "zh"

	// What is compared folded. Folding may change a text's length, so that names are found before.
	folded := []byte(fold(text))
	for _, at := range codeText.FindAllIndex(folded, -1) {
		c := string(folded[at[0]:at[1]])
		if unit.MatchString(c) {
			continue
		}
		list = append(list, detail{kind: code, text: c, folded: c})
		blankOut(folded, at[0], at[1])
	}
	coded := func(w string) bool {
		return slices.ContainsFunc(list, func(d detail) bool { return d.kind == code && strings.Contains(d.folded, strings.ToLower(w)) })
	}
	for _, d := range namesIn(text) {
		if !coded(d.text) && !slices.ContainsFunc(list, func(o detail) bool { return o.kind == name && o.folded == d.folded }) {
			d.inHan = isChinese
			list = append(list, d)
		}
	}
	mentions, left := dates.Written(string(folded))
	for _, m := range mentions {
		list = append(list, detail{kind: date, text: strings.TrimSpace(string(folded[m.Start:m.End])), day: m.Date})
	}
	masked := []byte(left)
	for _, c := range dates.Clocks(left) {
		if words := left[c.Start:c.End]; words == "一点" { // a little
			blankOut(masked, c.Start, c.End)
			continue
		}
		list = append(list, detail{kind: clock, text: strings.TrimSpace(left[c.Start:c.End]), clock: c})
		blankOut(masked, c.Start, c.End)
	}
	return append(list, quantities(string(masked))...)
}

// unit is a number with a unit, or an ordinal, and no code.
var unit = lazyregexp.New(`^\d+[a-z]{1,3}$`)

// quantities are the numbers of a folded text that say how many or how much.
func quantities(text string) []detail {
	var list []detail
	at := map[int]int{} // start to index in list: the readings of one number are one detail
	for _, n := range numbers.Quantities(text) {
		if i, ok := at[n.Start]; ok {
			list[i].values = append(list[i].values, n.Value)
			continue
		}
		if n.Written && (n.Value == "1" || n.Value == "0") {
			continue
		}
		words := text[n.Start:n.End]
		at[n.Start] = len(list)
		list = append(list, detail{kind: number, text: words, folded: words, values: []string{n.Value}, years: ofYears.MatchString(text[n.End:])})
	}
	return list
}

func blankOut(text []byte, start, end int) {
	for i := start; i < end; i++ {
		text[i] = ' '
	}
}
