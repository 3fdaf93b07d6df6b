package evidence

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

// hasNumber reports whether a message has a number, or one from which it follows.
func (g *ground) hasNumber(d detail) bool {
	if d.folded[0] >= utf8.RuneSelf && strings.Contains(g.text, d.folded) {
		return true // as it was said, whatever it means
	}
	return slices.ContainsFunc(d.values, func(value string) bool { return g.numbers[value] || g.implies(value, d.years) || g.abbreviates(value) })
}

// abbreviates reports whether a message has a large number in short, as in "2 grand" and "2.5w".
func (g *ground) abbreviates(value string) bool {
	if n, err := strconv.ParseFloat(value, 64); err != nil || n < 1000 {
		return false
	}
	digits := significant(value)
	for said := range g.numbers {
		if significant(said) == digits {
			return true
		}
	}
	return false
}

// significant returns the digits of a number without a decimal point and without zeros at either end.
func significant(value string) string { return strings.Trim(strings.ReplaceAll(value, ".", ""), "0") }

// converted are the numbers that others mean in a unit that statements like better: 斤 in kilograms, 块 and 毛 in one number.
func converted(text string) []string {
	var values []string
	for _, m := range jin.FindAllStringSubmatch(text, -1) {
		n := numbers.Int(m[1])
		if m[2] == "公斤" || m[2] == "kg" || m[2] == "千克" {
			values = append(values, strconv.Itoa(2*n))
		} else {
			values = append(values, numbers.Canonical(strconv.FormatFloat(float64(n)/2, 'f', 1, 64)))
		}
	}
	for _, m := range kuai.FindAllStringSubmatch(text, -1) {
		values = append(values, numbers.Canonical(strconv.Itoa(numbers.Int(m[1]))+"."+strconv.Itoa(numbers.Int(m[2]))+m[3]))
	}
	return values
}

var (
	jin  = lazyregexp.New(`(\d{1,4}|[一二两三四五六七八九十百]{1,6})\s?(公斤|千克|kg|斤)`)
	kuai = lazyregexp.New(`(\d{1,6}|[一二两三四五六七八九十百千]{1,8})(?:块|元)(\d|[一二两三四五六七八九])(?:毛|角)?(\d)?`)
)

// implies reports whether a number follows from a message: from "twins", from a year of birth, from things that are listed.
func (g *ground) implies(value string, years bool) bool {
	if re := pairs[value]; re != nil && re.MatchString(g.text) {
		return true
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return false
	}
	if n >= 2 && n <= 5 && len(joints.FindAllString(g.text, n)) >= n-1 {
		return true
	}
	if !years {
		return false
	}
	for back := g.at.Year() - n - 1; back <= g.at.Year()-n+1; back++ {
		if g.numbers[strconv.Itoa(back)] {
			return true
		}
	}
	return false
}

// pairs are words that say a number without naming it.
var pairs = map[string]*lazyregexp.Regexp{
	"2":  lazyregexp.New(`\b(twins?|couple|pair|both|twice|double)\b|[双俩对]`),
	"3":  lazyregexp.New(`\b(triplets?|thrice|triple)\b|[仨]`),
	"6":  lazyregexp.New(`\bhalf a year\b|半年`),
	"7":  lazyregexp.New(`\b(a|one|per|last|next|this|every) week\b|一周|每周|一星期`),
	"12": lazyregexp.New(`\b(dozen|noon|midnight)\b|一打|中午|正午|半夜|午夜`),
	"50": lazyregexp.New(`\bhalf\b|一半`),
	"30": lazyregexp.New(`\bhalf (an hour|past)\b|半(个)?(小时|钟)|点半`),
	"15": lazyregexp.New(`\bquarter\b|一刻`),
}
