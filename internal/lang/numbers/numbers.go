// Package numbers reads numbers as people write them in Chinese and English: 三, 3 and three.
//
// It takes folded texts: lower case, half width, simplified characters.
package numbers

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Number is a number in a folded text.
type Number struct {
	Value      string // Canonical: "1000", "3.5"
	Start, End int
	Written    bool // in words
}

var (
	digits = lazyregexp.New(`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?`)
	mixed  = lazyregexp.New(`(\d+(?:\.\d+)?)(万|亿|千)(\d+)(千|百|万)`)
	scale  = lazyregexp.New(`^\s?(千|万|百万|千万|亿|k\b|m\b|thousand\b|million\b|billion\b|hundred\b|dozen\b)`)
	han    = lazyregexp.New(`百分之[零〇一二两三四五六七八九十百千万亿点半\d.]+|[零〇一二两三四五六七八九十百千万亿廿]+(?:点[零〇一二三四五六七八九]+)?`)
	words  = lazyregexp.New(`\b(?:(?:a|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|` +
		`sixteen|seventeen|eighteen|nineteen` +
		`|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half)(?:[ -](?:and )?|\b))+`)
)

var scales = map[string]int64{
	"百": 100, "千": 1000, "万": 10_000, "百万": 1_000_000, "千万": 10_000_000, "亿": 100_000_000, "k": 1000, "m": 1_000_000,
	"thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000, "hundred": 100, "dozen": 12,
}

// Numbers finds the numbers of a folded text, in digits, in Chinese characters and in English words. A number that can be
// read in two ways is found in both.
func Numbers(text string) []Number {
	var list []Number
	for _, m := range findAll(mixed, text, has(text, "万", "亿", "千")) {
		group := func(i int) string { return text[m[2*i]:m[2*i+1]] }
		if value := sum(product(group(1), scales[group(2)]), product(group(3), scales[group(4)])); value != "" {
			list = append(list, Number{Value: value, Start: m[0], End: m[1]})
		}
	}
	within := func(start int) bool {
		return slices.ContainsFunc(list, func(f Number) bool { return start > f.Start && start < f.End })
	}
	for _, at := range findAll(digits, text, strings.ContainsAny(text, "0123456789")) {
		if within(at[0]) {
			continue
		}
		plain := Canonical(strings.ReplaceAll(text[at[0]:at[1]], ",", ""))
		f := Number{Value: plain, Start: at[0], End: at[1]}
		if m := scale.FindStringSubmatch(text[at[1]:]); m != nil {
			if times := scales[m[1]]; times > 0 {
				list = append(list, Number{Value: product(plain, times), Start: at[0], End: at[1] + len(m[0])})
			}
		}
		list = append(list, f)
	}
	for _, at := range findAll(han, text, hasHan(text)) {
		if within(at[0]) || at[0] > 0 && text[at[0]-1] >= '0' && text[at[0]-1] <= '9' {
			continue
		}
		for _, value := range hanValues(text[at[0]:at[1]]) {
			list = append(list, Number{Value: value, Start: at[0], End: at[1], Written: true})
		}
	}
	for _, at := range findAll(words, text, has(text, wordBeginnings...)) {
		if value, ok := wordsValue(text[at[0]:at[1]]); ok {
			end := at[0] + len(strings.TrimRight(text[at[0]:at[1]], " -"))
			list = append(list, Number{Value: value, Start: at[0], End: end, Written: true})
		}
	}
	return list
}

// Canonical is a decimal number without leading and trailing zeros.
func Canonical(s string) string {
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
	return Canonical(x.Add(x, y).FloatString(6))
}

func product(decimal string, times int64) string {
	r, ok := new(big.Rat).SetString(decimal)
	if !ok {
		return decimal
	}
	return Canonical(r.Mul(r, new(big.Rat).SetInt64(times)).FloatString(6))
}

// Int is the whole number that a text is, in digits, English words or Chinese characters; 0 if it is none.
func Int(text string) int {
	n, _ := ParseInt(text)
	return n
}

// ParseInt reads a whole number in digits, English words or Chinese characters. "a" and "an" are 1.
func ParseInt(text string) (n int, ok bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, true
	}
	if text == "a" || text == "an" {
		return 1, true
	}
	value, ok := wordsValue(text)
	if !ok {
		readings := hanValues(text)
		if len(readings) == 0 {
			return 0, false
		}
		value = readings[0]
	}
	n, err := strconv.Atoi(value)
	return n, err == nil
}

var hanDigits = map[rune]int64{'零': 0, '〇': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9, '廿': 20}

var hanUnits = map[rune]int64{'十': 10, '百': 100, '千': 1000, '万': 10_000, '亿': 100_000_000}

// hanValues are the readings of a number in Chinese characters: 二〇二六 digit by digit, 三百五 as 350.
func hanValues(s string) []string {
	s = strings.TrimPrefix(s, "百分之")
	if s != "" && s[0] < utf8.RuneSelf {
		return []string{Canonical(s)}
	}
	whole, fraction, dotted := strings.Cut(s, "点")
	readings := hanIntegers(whole)
	if dotted {
		for i := range readings {
			readings[i] += "." + hanByDigit(fraction)
		}
	}
	for i := range readings {
		readings[i] = Canonical(readings[i])
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

var (
	// counters are what follows a Chinese number that counts something; without one it may be a part of any word.
	counters = lazyregexp.New(`^(只|个|條|条|岁|年|月|天|日|号|点|次|块|元|位|名|本|台|辆|口|人|斤|公斤|千克|克|米|公里|厘米|平|套|间|层|楼|级|门|周|星期|小时|分钟|秒|倍|度|页|章|集|部|张|` +
		`件|双|瓶|杯|碗|盒|箱|晚|遍|家|所|座|棵|头|匹|%|美元|欧元)`)
	idioms = lazyregexp.New(`^(十分[^钟之]|千万[^元块人美个]|万一|百分百|三明治|五官|四季|七夕|万圣|百货|千金|八卦|十足|三思|二手|二次元|百科|千里|万事|四川|九寨|三亚|五一|六一|十一$)`)
)

// Quantities are the numbers of a folded text that say how many or how much: none of 第一 and 万一, nor 三 alone. A number that can
// be read in two ways is there twice, the literal reading first.
func Quantities(text string) []Number {
	return slices.DeleteFunc(Numbers(text), func(n Number) bool {
		words := text[n.Start:n.End]
		if r, _ := utf8.DecodeRuneInString(words); !unicode.Is(unicode.Han, r) || strings.HasPrefix(words, "百分之") {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:n.Start])
		return words == "一" || before == '第' || before == '星' || idioms.MatchString(text[n.Start:]) ||
			!counters.MatchString(text[n.End:]) && utf8.RuneCountInString(words) < 2
	})
}

// wordBeginnings are the beginnings of numbers in English words.
var wordBeginnings = []string{
	"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twel", "thir", "fif", "twen", "for",
	"hundred", "thousand", "million", "billion", "dozen", "zero",
}

// Any reports whether a folded text may hold a number.
func Any(text string) bool {
	return strings.ContainsAny(text, "0123456789") || hasHan(text) || has(text, wordBeginnings...)
}

// hasHan reports whether a text holds a Chinese numeral.
func hasHan(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		if r < 0x3000 {
			return false
		}
		_, digit := hanDigits[r]
		_, unit := hanUnits[r]
		return digit || unit
	})
}

func has(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// findAll returns the matches of a pattern if the text may hold one.
func findAll(re *lazyregexp.Regexp, text string, may bool) [][]int {
	if !may {
		return nil
	}
	return re.FindAllStringSubmatchIndex(text, -1)
}
