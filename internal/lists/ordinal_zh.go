package lists

import "slices"

// Words for the last and the first item: alone, and before a measure word, with an optional 一 or 那 between.
var (
	lastAlone  = []string{"最后", "最末", "末尾", "最后面", "最下面", "最底下"}
	lastBefore = []string{"最后", "最末", "末尾", "最后面", "最下面", "最底下", "末", "最后面的", "最后的", "最下面的"}
	firstAlone = []string{"最前面", "最上面"}
	firstOf    = []string{"头", "首", "最前面", "最上面", "最前面的", "最上面的"}
	oneOf      = []string{"那一", "那", "一", "1", "这一", "这"}
	frontOf    = []string{"前", "前面", "头", "最前面", "最上面", "前面的"}
	backOf     = []string{"后", "后面", "最后", "最后面", "最下面", "末", "末尾"}
	numberOf   = []string{
		"编号为", "编号", "编号是", "序号为", "序号是", "序号", "选项", "方案", "号码", "号码是", "第",
	}
)

// chinese returns the selections in Chinese, and by digits, that start at a position.
func (p *parser) chinese(at int) (found []choice) {
	one := func(n Ordinal, ends ...int) {
		for _, end := range ends {
			found = append(found, choice{end: end, span: Span{n, n}, number: n >= 0, marked: true})
		}
	}
	if start := p.literal(at, numberOf...); start > at {
		if r, ok := p.number(p.spaces(start)); ok {
			one(r.n, append(p.measured(r.end), r.end)...)
		}
	}
	if start := p.literal(at, "倒数第"); start > at {
		if r, ok := p.number(p.spaces(start)); ok && r.n > 0 {
			one(-r.n, append(p.measured(r.end), r.end)...)
		}
	}
	if r, ok := p.number(at); ok { // with a measure word it would be a quantity
		found = append(found, choice{end: r.end, span: Span{r.n, r.n}, number: true, digits: r.digits})
		if end := p.literal(p.spaces(r.end), "号"); end > p.spaces(r.end) {
			one(r.n, append(p.thing(end), end)...)
		}
	}
	if end := p.literal(at, lastAlone...); end > at {
		one(-1, end)
	}
	if end := p.literal(at, firstAlone...); end > at {
		one(1, end)
	}
	one(-1, p.single(at, lastBefore)...)
	one(1, p.single(at, firstOf)...)
	return slices.Concat(found, p.side(at, frontOf, func(n Ordinal) Span { return Span{1, n} }),
		p.side(at, backOf, func(n Ordinal) Span { return Span{-n, -1} }))
}

// side parses several items at one end of the list: 前两个, 最后三部, 前三.
func (p *parser) side(at int, words []string, span func(Ordinal) Span) (found []choice) {
	start := p.literal(at, words...)
	if start == at {
		return nil
	}
	r, ok := p.number(p.spaces(start))
	if !ok || r.n < 1 || r.n == 1 && !r.digits {
		return nil
	}
	ends := p.measured(r.end)
	if p.literal(at, "前", "后", "最后") == start { // 前三
		ends = append(ends, r.end)
	}
	for _, end := range ends {
		found = append(found, choice{end: end, span: span(r.n)})
	}
	return found
}

// single returns the ends of phrases such as 最后一个 and 最下面那部电影.
func (p *parser) single(at int, words []string) (ends []int) {
	for _, word := range words {
		start := p.literal(at, word)
		if start == at {
			continue
		}
		middle := p.literal(start, oneOf...)
		if middle > start || word == "头" || word == "首" || word == "末" { // 最后个 is not used
			for _, end := range measureWords.at(p.text, middle) {
				ends = append(ends, append(p.thing(end), end)...)
			}
		}
	}
	return ends
}

// measured returns the ends of a measure word at a position, with and without a noun after it.
func (p *parser) measured(at int) (ends []int) {
	at = p.spaces(at)
	for _, end := range measureWords.at(p.text, at) {
		ends = append(ends, append(p.thing(end), end)...)
	}
	return append(ends, p.thing(at)...)
}

// thing returns the ends of the noun at a position.
func (p *parser) thing(at int) []int {
	start := p.spaces(at)
	return append(thingWords.at(p.text, start), thingWords.at(p.text, p.literal(start, "的"))...)
}

var (
	chineseDigits = map[rune]int{'零': 0, '〇': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}
	chineseUnits  = map[rune]int{'十': 10, '百': 100, '千': 1000}
)

// chineseNumber parses a number below 10,000: 十二, 二十, 一百零五, and 一百五, which is 150.
func chineseNumber(text string) (Ordinal, bool) {
	if text == "" {
		return 0, false
	}
	total, digit, lastUnit := 0, -1, 10_000
	zero := false
	for _, r := range text {
		if d, ok := chineseDigits[r]; ok {
			switch {
			case digit > 0: // 一二: digits of a telephone number, or two numbers
				return 0, false
			case d == 0:
				zero = true
			}
			digit = d
			continue
		}
		unit, ok := chineseUnits[r]
		if !ok || unit >= lastUnit {
			return 0, false
		}
		switch {
		case digit > 0:
		case unit == 10 && (total == 0 || zero) && digit <= 0: // 十二, 一百零十
			digit = 1
		default:
			return 0, false
		}
		total, digit, lastUnit, zero = total+digit*unit, -1, unit, false
	}
	switch {
	case digit > 0 && !zero && lastUnit > 10 && lastUnit < 10_000:
		total += digit * lastUnit / 10
	case digit > 0:
		total += digit
	case digit == 0 && total > 0: // 二十零
		return 0, false
	}
	return Ordinal(total), true
}
