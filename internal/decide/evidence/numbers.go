package evidence

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// found is a number in a folded text.
type found struct {
	value      string // canonical: "1000", "3.5"
	start, end int
	written    bool // in words
}

var (
	digits = regexp.MustCompile(`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?`)
	mixed  = regexp.MustCompile(`(\d+(?:\.\d+)?)(万|亿|千)(\d+)(千|百|万)`)
	scale  = regexp.MustCompile(`^\s?(千|万|百万|千万|亿|k\b|m\b|thousand\b|million\b|billion\b|hundred\b|dozen\b)`)
	han    = regexp.MustCompile(`百分之[零〇一二两三四五六七八九十百千万亿点半\d.]+|[零〇一二两三四五六七八九十百千万亿廿]+(?:点[零〇一二三四五六七八九]+)?`)
	words  = regexp.MustCompile(`\b(?:(?:a|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen` +
		`|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half)(?:[ -](?:and )?|\b))+`)
)

var scales = map[string]int64{
	"百": 100, "千": 1000, "万": 10_000, "百万": 1_000_000, "千万": 10_000_000, "亿": 100_000_000, "k": 1000, "m": 1_000_000,
	"thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000, "hundred": 100, "dozen": 12,
}

// numbersIn finds the numbers of a folded text, in digits, in Chinese characters and in English words. A number that can be
// read in two ways is found in both.
func numbersIn(text string) []found {
	var list []found
	for _, m := range mixed.FindAllStringSubmatchIndex(text, -1) {
		group := func(i int) string { return text[m[2*i]:m[2*i+1]] }
		if value := sum(product(group(1), scales[group(2)]), product(group(3), scales[group(4)])); value != "" {
			list = append(list, found{value: value, start: m[0], end: m[1]})
		}
	}
	within := func(start int) bool {
		return slices.ContainsFunc(list, func(f found) bool { return start > f.start && start < f.end })
	}
	for _, at := range digits.FindAllStringIndex(text, -1) {
		if within(at[0]) {
			continue
		}
		plain := canonical(strings.ReplaceAll(text[at[0]:at[1]], ",", ""))
		f := found{value: plain, start: at[0], end: at[1]}
		if m := scale.FindStringSubmatch(text[at[1]:]); m != nil {
			if times := scales[m[1]]; times > 0 {
				list = append(list, found{value: product(plain, times), start: at[0], end: at[1] + len(m[0])})
			}
		}
		list = append(list, f)
	}
	for _, at := range han.FindAllStringIndex(text, -1) {
		if within(at[0]) || at[0] > 0 && text[at[0]-1] >= '0' && text[at[0]-1] <= '9' {
			continue
		}
		for _, value := range hanValues(text[at[0]:at[1]]) {
			list = append(list, found{value: value, start: at[0], end: at[1], written: true})
		}
	}
	for _, at := range words.FindAllStringIndex(text, -1) {
		if value, ok := wordsValue(text[at[0]:at[1]]); ok {
			end := at[0] + len(strings.TrimRight(text[at[0]:at[1]], " -"))
			list = append(list, found{value: value, start: at[0], end: end, written: true})
		}
	}
	return list
}

// canonical is a decimal number without leading and trailing zeros.
func canonical(s string) string {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		return whole + "." + fraction
	}
	return whole
}

func sum(a, b string) string {
	x, ok := new(big.Rat).SetString(a)
	y, also := new(big.Rat).SetString(b)
	if !ok || !also {
		return ""
	}
	return canonical(x.Add(x, y).FloatString(6))
}

func product(decimal string, times int64) string {
	r, ok := new(big.Rat).SetString(decimal)
	if !ok {
		return decimal
	}
	return canonical(r.Mul(r, new(big.Rat).SetInt64(times)).FloatString(6))
}

var hanDigits = map[rune]int64{'零': 0, '〇': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9, '廿': 20}

var hanUnits = map[rune]int64{'十': 10, '百': 100, '千': 1000, '万': 10_000, '亿': 100_000_000}

// hanValues are the readings of a number in Chinese characters: 二〇二六 digit by digit, 三百五 as 350.
func hanValues(s string) []string {
	s = strings.TrimPrefix(s, "百分之")
	if s != "" && s[0] < utf8.RuneSelf {
		return []string{canonical(s)}
	}
	whole, fraction, dotted := strings.Cut(s, "点")
	readings := hanIntegers(whole)
	if dotted {
		for i := range readings {
			readings[i] += "." + hanByDigit(fraction)
		}
	}
	for i := range readings {
		readings[i] = canonical(readings[i])
	}
	return readings
}

// hanByDigit reads characters one by one.
func hanByDigit(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(strconv.FormatInt(hanDigits[r], 10))
	}
	return b.String()
}

func hanIntegers(s string) []string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hanUnits[r] > 0 }) {
		if s == "" || utf8.RuneCountInString(s) > 17 {
			return nil
		}
		return []string{hanByDigit(s)}
	}
	var total, section, digit, unit int64 // unit is the one before the last digit
	for _, r := range s {
		u := hanUnits[r]
		switch d := hanDigits[r]; {
		case u == 0 && d == 0:
			unit = 0 // 三百零五
		case u == 0:
			digit += d
		case u >= 10_000:
			total, section, digit, unit = max(total+section+digit, 1)*u, 0, 0, u
		default:
			section, digit, unit = section+max(digit, 1)*u, 0, u
		}
	}
	readings := []string{strconv.FormatInt(total+section+digit, 10)}
	if digit > 0 && unit >= 100 { // 三百五, 两万三
		readings = append(readings, strconv.FormatInt(total+section+digit*unit/10, 10))
	}
	return readings
}

var wordValues = map[string]int64{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
	"thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30,
	"forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// wordsValue is a number in English words; "a" alone is none.
func wordsValue(s string) (string, bool) {
	var total, section int64
	named := false
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ' ' || r == '-' }) {
		switch times := scales[w]; {
		case w == "and" || w == "a" || w == "half":
		case w == "hundred" || w == "dozen":
			section, named = max(section, 1)*times, true
		case times > 0:
			total, section, named = total+max(section, 1)*times, 0, true
		default:
			value, ok := wordValues[w]
			if !ok {
				return "", false
			}
			section, named = section+value, true
		}
	}
	return strconv.FormatInt(total+section, 10), named
}

// hasNumber reports whether a message has a number, or one from which it follows.
func (g *ground) hasNumber(d detail) bool {
	if d.folded[0] >= utf8.RuneSelf && strings.Contains(g.text, d.folded) {
		return true // as it was said, whatever it means
	}
	return slices.ContainsFunc(d.values, func(value string) bool { return g.numbers[value] || g.implies(value, d.years) })
}

// converted are the numbers that others mean in a unit that statements like better: 斤 in kilograms, 块 and 毛 in one number.
func converted(text string) []string {
	var values []string
	for _, m := range jin.FindAllStringSubmatch(text, -1) {
		n := numeral(m[1])
		if m[2] == "公斤" || m[2] == "kg" || m[2] == "千克" {
			values = append(values, strconv.Itoa(2*n))
		} else {
			values = append(values, canonical(strconv.FormatFloat(float64(n)/2, 'f', 1, 64)))
		}
	}
	for _, m := range kuai.FindAllStringSubmatch(text, -1) {
		values = append(values, canonical(strconv.Itoa(numeral(m[1]))+"."+strconv.Itoa(numeral(m[2]))+m[3]))
	}
	return values
}

var (
	jin  = regexp.MustCompile(`(\d{1,4}|[一二两三四五六七八九十百]{1,6})\s?(公斤|千克|kg|斤)`)
	kuai = regexp.MustCompile(`(\d{1,6}|[一二两三四五六七八九十百千]{1,8})(?:块|元)(\d|[一二两三四五六七八九])(?:毛|角)?(\d)?`)
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
var pairs = map[string]*regexp.Regexp{
	"2":  regexp.MustCompile(`\b(twins?|couple|pair|both|twice|double)\b|[双俩对]`),
	"3":  regexp.MustCompile(`\b(triplets?|thrice|triple)\b|[仨]`),
	"6":  regexp.MustCompile(`\bhalf a year\b|半年`),
	"7":  regexp.MustCompile(`\b(a|one|per|last|next|this|every) week\b|一周|每周|一星期`),
	"12": regexp.MustCompile(`\b(dozen|noon|midnight)\b|一打|中午|正午|半夜|午夜`),
	"50": regexp.MustCompile(`\bhalf\b|一半`),
	"30": regexp.MustCompile(`\bhalf (an hour|past)\b|半(个)?(小时|钟)|点半`),
	"15": regexp.MustCompile(`\bquarter\b|一刻`),
}
