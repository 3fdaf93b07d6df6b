package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

// Canonical is a text in which dates, times of day, numbers with their units and well-known names of places and languages are
// written in one way, in lower case: 三只猫 and 3只猫, 15:00 and 3pm, 周五, 星期五 and Friday, 北京 and Beijing. It serves comparing alone.
// What differs in meaning stays different: three o'clock may be either, and a year that is missing is not made up.
func Canonical(text string) string {
	text = lexical.Simplified(strings.ToLower(norm.NFKC.String(text)))
	var cuts []cut
	if dates.Any(text) {
		cuts = figured(text)
	}
	cuts = append(cuts, named(text, cuts)...)
	if len(cuts) == 0 {
		return closeUp(text)
	}
	slices.SortFunc(cuts, func(a, b cut) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, c := range cuts {
		if c.start < at {
			continue
		}
		b.WriteString(text[at:c.start])
		b.WriteString(" " + c.as + " ")
		at = c.end
	}
	b.WriteString(text[at:])
	return closeUp(b.String())
}

// closeUp leaves one space between words and none next to a Chinese character.
func closeUp(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	var last rune
	gap := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			gap = true
			continue
		}
		if gap && last != 0 && !unicode.Is(unicode.Han, last) && !unicode.Is(unicode.Han, r) {
			b.WriteByte(' ')
		}
		gap, last = false, r
		b.WriteRune(r)
	}
	return b.String()
}

// cut is a part of a text that is written in another way.
type cut struct {
	start, end int
	as         string
}

// figured finds dates, times and quantities.
func figured(text string) []cut {
	var cuts []cut
	left := []byte(text)
	take := func(start, end int, as string) {
		for start < end && left[start] == ' ' {
			start++
		}
		for end > start && left[end-1] == ' ' {
			end--
		}
		cuts = append(cuts, cut{start, end, as})
		for i := start; i < end; i++ {
			left[i] = ' '
		}
	}
	for _, at := range lengths(left) {
		m, rest := 2, 4
		if at[m] < 0 {
			m, rest = 8, 10
		}
		take(at[0], at[1], centimetres(text[at[m]:at[m+1]], text[at[rest]:at[rest+1]]))
	}
	written, _ := dates.Written(string(left))
	for _, d := range written {
		if as := date(d, text[d.Start:d.End]); as != "" {
			take(d.Start, d.End, as)
		}
	}
	for _, c := range dates.Clocks(string(left)) {
		if words := strings.TrimSpace(text[c.Start:c.End]); words != "一点" { // a little
			sure := c.Sure || zeroHour.MatchString(words)
			as := fmt.Sprintf("t%02d:%02d", c.Hour, c.Minute)
			if !sure {
				as = fmt.Sprintf("u%02d:%02d", c.Hour, c.Minute)
			}
			take(c.Start, c.End, as)
		}
	}
	return append(cuts, amounts(string(left))...)
}

// date is how a date is written: "y1990 m05 d05", so that one that is less exact is a part of it. A year alone may be any number.
func date(d dates.WrittenDate, words string) string {
	words = strings.TrimSpace(words)
	var parts []string
	if d.Year > 0 {
		if d.Month == 0 && d.Day == 0 && (!strings.HasSuffix(words, "年") || !strings.ContainsAny(words[:1], "12")) {
			return ""
		}
		parts = append(parts, "y"+strconv.Itoa(d.Year))
	}
	if d.Month > 0 {
		parts = append(parts, fmt.Sprintf("m%02d", d.Month))
	}
	if d.Day > 0 {
		parts = append(parts, fmt.Sprintf("d%02d", d.Day))
	}
	if d.Weekday > 0 {
		name := "w" + strconv.Itoa(d.Weekday)
		if strings.HasSuffix(words, "s") { // "on Fridays" is every week
			name += "s"
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, " ")
}

var (
	zeroHour = lazyregexp.New(`^0\d:`)
	// metres are 1米75 and 1.75m, as people give their height.
	metres = lazyregexp.New(`([12一二])(?:米|m)([0-9]{1,2}\b|[一二三四五六七八九]{1,2})()|\b([12])\.([0-9]{1,2}) ?(?:米|m\b)`)
	// plainDigits are digits that stay unchanged: "0123" of a phone number is not 123.
	plainDigits = lazyregexp.New(`^[0-9]+$`)
	// unsettled matches Chinese numerals that do not name one number: 三四只, 二三十.
	unsettled = lazyregexp.New(`[一二三四五六七八九两]{2}|几|[〇零]`)
)

// lengths are the places of metres in a text.
func lengths(text []byte) [][]int {
	for i := range len(text) - 1 {
		if (text[i] >= '0' && text[i] <= '9' || text[i] >= utf8.RuneSelf) && (text[i+1] == '.' || text[i+1] == 'm' || text[i+1] == "米"[0]) {
			return metres.FindAllSubmatchIndex(text, -1)
		}
	}
	return nil
}

// centimetres are 一米七五 and 1.75 m.
func centimetres(metres, rest string) string {
	digits := hanDigits.Replace(metres + rest)
	if len(digits) < 3 { // 一米七
		digits += "0"
	}
	return digits + " cm"
}

var hanDigits = strings.NewReplacer("一", "1", "二", "2", "三", "3", "四", "4", "五", "5", "六", "6", "七", "7", "八", "8", "九", "9")

// units are what follows a number, and how it is written.
var units = func() map[string]string {
	all := map[string]string{}
	for _, group := range []string{
		"kg 公斤 千克 kilo kilos kilogram kilograms kgs", "g 克 gram grams", "km 公里 千米 kilometer kilometers kilometre kilometres kms",
		"cm 厘米 公分 centimeter centimeters centimetre centimetres",
		"m 米 meter meters metre metres", "cny 元 块 块钱 元钱 人民币 rmb yuan cny", "usd 美元 美金 dollar dollars usd bucks", "eur 欧元 euro euros eur",
		"% 百分 percent", "h 小时 个小时 钟头 个钟头 hour hours hrs hr", "min 分钟 minute minutes mins", "岁 周岁",
	} {
		for w := range strings.FieldsSeq(group) {
			all[w], _, _ = strings.Cut(group, " ")
		}
	}
	return all
}()

var (
	unitAfter = lazyregexp.New(`^ ?(\p{Han}{1,3}|[a-z]+|%)`)
	moneyBefo = lazyregexp.New(`([$¥€])\s?$`)
)

// amounts finds numbers that say how many or how much, in a text without dates and times.
func amounts(text string) []cut {
	var cuts []cut
	list := numbers.Quantities(text)
	for i := 0; i < len(list); i++ {
		n := list[i]
		for i+1 < len(list) && list[i+1].Start == n.Start { // 一万五 is 15000 as people say it
			i++
			if list[i].End >= n.End && !plainDigits.MatchString(text[n.Start:n.End]) || list[i].End > n.End {
				n = list[i]
			}
		}
		words := text[n.Start:n.End]
		value := n.Value
		switch {
		case strings.HasPrefix(words, "百分之"):
			cuts = append(cuts, cut{n.Start, n.End, value + " %"})
			continue
		case plainDigits.MatchString(words):
			value = words
		case n.Written && !settled(words, text[n.End:]):
			continue
		}
		if strings.HasPrefix(text[n.End:], "半") {
			continue // 三岁半, 两个半
		}
		c := cut{n.Start, n.End, value}
		c.measure(text)
		if c.as != words {
			cuts = append(cuts, c)
		}
	}
	return cuts
}

// settled reports whether a number in words is one number and stands for a quantity.
func settled(words, after string) bool {
	if r, _ := utf8.DecodeRuneInString(words); unicode.Is(unicode.Han, r) {
		return !unsettled.MatchString(words)
	}
	if words == "one" || words == "a" {
		return false // "the one who"
	}
	after = strings.TrimLeft(after, " ")
	return after == "" || after[0] >= 'a' && after[0] <= 'z' || after[0] == '.' || after[0] == ','
}

// measure takes the unit of a number in.
func (c *cut) measure(text string) {
	if m := moneyBefo.FindStringSubmatchIndex(text[:c.start]); m != nil {
		c.as += " " + map[string]string{"$": "usd", "¥": "cny", "€": "eur"}[text[m[2]:m[3]]]
		c.start = m[0]
		return
	}
	m := unitAfter.FindStringSubmatchIndex(text[c.end:])
	if m == nil {
		return
	}
	word := text[c.end+m[2] : c.end+m[3]]
	for word != "" {
		if unit, ok := units[word]; ok {
			// 70千克 was read as 70,000 grams
			if rest, ok := strings.CutSuffix(c.as, "000"); ok && rest != "" && (unit == "g" || unit == "m") {
				c.as, unit = rest, "k"+unit
			}
			c.as += " " + unit
			c.end += m[2] + len(word)
			return
		}
		if word == "斤" {
			if n, err := strconv.ParseFloat(c.as, 64); err == nil {
				c.as = numbers.Canonical(strconv.FormatFloat(n/2, 'f', 2, 64)) + " kg"
				c.end += m[2] + len(word)
			}
			return
		}
		_, n := utf8.DecodeLastRuneInString(word)
		if n == 1 { // a word is a unit or is not
			return
		}
		word = word[:len(word)-n]
	}
}
