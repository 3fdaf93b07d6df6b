package lists

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// Selection is what a person chose from a list.
type Selection struct {
	None  bool   // an explicit refusal: "none of them"
	Spans []Span // otherwise, in the order of the answer
}

// Span is a range of a list, from its first item to its last, which may be equal.
type Span struct{ First, Last Ordinal }

// Numbers returns the selected numbers in a list of count items, in the order of the answer. If a number is out of range, ok is false
// and outside is the first such number. repeated is true if a number occurs twice.
func (s Selection) Numbers(count int) (numbers []int, outside int, repeated, ok bool) {
	for _, span := range s.Spans {
		first, last := span.First.In(count), span.Last.In(count)
		switch {
		case first < 1 || first > count:
			return nil, first, false, false
		case last < 1 || last > count:
			return nil, last, false, false
		}
		for n := first; n <= last; n++ {
			repeated = repeated || slices.Contains(numbers, n)
			numbers = append(numbers, n)
		}
	}
	return numbers, 0, repeated, true
}

// ParseSelection parses an answer to a numbered list: numbers in digits of any width or in Chinese or English words, counted from the
// beginning or the end, alone, several ("1 and 3", 前两个, "2-4"), all, none, or titles of the list. Only phrases of before.txt, after.txt
// and aspects.txt may surround them: "三部电影" is a quantity, "3点开会" an appointment, "3 or 4" a question. It returns false if the text is
// not a selection.
func ParseSelection(text string, titles []string) (Selection, bool) {
	if utf8.RuneCountInString(text) > MaxTextRunes {
		return Selection{}, false
	}
	p := parser{text: []rune(fold(text)), dead: map[state]bool{}}
	if s, ok := p.parse(); ok || len(titles) == 0 {
		return s, ok
	}
	p.titles, p.dead = titleForms(titles), map[state]bool{}
	if s, ok := p.parse(); ok {
		return s, ok
	}
	n, ok := exactTitle(text, titles)
	if !ok {
		n, ok = nearTitle(string(p.text), titles)
	}
	if ok {
		return Selection{Spans: []Span{{n, n}}}, true
	}
	return Selection{}, false
}

// keycaps turns an emoji such as 3️⃣ into a digit.
var keycaps = strings.NewReplacer("\ufe0f", "", "\u20e3", "")

// fold normalises the text for the grammar: lower case, half width and simplified characters; ① stays a number of its own.
func fold(text string) string {
	var b strings.Builder
	for _, r := range keycaps.Replace(text) {
		if unicode.Is(unicode.No, r) {
			b.WriteString(" " + string(r) + " ")
			continue
		}
		b.WriteRune(r)
	}
	text = strings.ToLower(norm.NFKC.String(b.String()))
	return variants.Replace(lexical.Simplified(strings.ReplaceAll(text, "’", "'")))
}

// variants are formal digits, other spellings, and traditional characters that lexical.Simplified does not convert.
var variants = strings.NewReplacer("贰", "二", "叁", "三", "參", "三", "肆", "四", "伍", "五", "陆", "六", "柒", "七", "捌", "八", "玖", "九",
	"壹", "一", "拾", "十", "佰", "百", "仟", "千", "萬", "万", "–", "-", "—", "-", "〜", "~",
	"製", "制", "瞭", "了", "鬥", "斗", "託", "托", "註", "注", "徵", "征", "誌", "志", "繫", "系", "嚐", "尝", "佈", "布", "卻", "却", "羣", "群", "牀", "床",
	"綫", "线", "汙", "污", "颱", "台", "乾", "干", "倂", "并", "叄", "三", "弍", "二", "弌", "一")

// parser parses one text. dead holds states that were tried and do not lead to the end.
type parser struct {
	text   []rune
	titles []titleForm
	dead   map[state]bool
}

// state is a state of the parser.
type state struct {
	at     int
	chosen bool // an item was selected before this state
	alone  bool // no other selection may follow: all, or none
	digits bool // the last token was digits
}

// choice is one possible parse at a position.
type choice struct {
	end    int
	span   Span
	none   bool
	alone  bool
	number bool // a number, which may begin a range
	digits bool // digits and nothing else
	marked bool // as an ordinal
}

func (p *parser) parse() (Selection, bool) { return p.before(0, Selection{}) }

// before parses what may come before a selection, and the selection.
func (p *parser) before(at int, s Selection) (Selection, bool) {
	at = p.skip(at)
	here := state{at: at, chosen: len(s.Spans) > 0}
	if at >= len(p.text) || p.dead[here] {
		return s, false
	}
	for _, c := range p.choices(at) {
		next := s
		if c.alone && len(s.Spans) > 0 {
			continue
		}
		if c.none {
			next.None = true
		} else {
			next.Spans = append(slices.Clip(s.Spans), c.span)
		}
		if done, ok := p.after(c, next); ok {
			return done, true
		}
	}
	for _, end := range p.lead(at) {
		if done, ok := p.before(end, s); ok {
			return done, true
		}
	}
	p.dead[here] = true
	return s, false
}

// people are first-person pronouns.
var people = []string{"我", "我们", "咱", "咱们"}

// lead returns the ends of what may come before a selection.
func (p *parser) lead(at int) (ends []int) {
	ends = beforeWords.at(p.text, at)
	start := p.word(at, "the", "its", "his", "her", "their")
	for _, end := range aspectWords.at(p.text, start) { // the link to 3
		if of := p.word(end, "of", "for", "to", "on", "about", "from"); of > end {
			ends = append(ends, of)
		}
	}
	if start := p.literal(at, people...); start > at { // 我就要: with the verb, for 我第三 is about 我
		ends = append(ends, verbWords.at(p.text, p.literal(start, "就", "还是", "还", "也", "只", "就只"))...)
	}
	return ends
}

// after parses what may follow a selection: the end, more items, or words without meaning here.
func (p *parser) after(c choice, s Selection) (Selection, bool) {
	return p.tail(state{at: c.end, chosen: true, alone: c.alone, digits: c.digits}, s)
}

func (p *parser) tail(here state, s Selection) (Selection, bool) {
	if p.dead[here] {
		return s, false
	}
	next := p.skip(here.at)
	if next >= len(p.text) {
		return s, true
	}
	if !here.alone {
		if done, ok := p.more(here, next, s); ok {
			return done, true
		}
	}
	for _, start := range slices.Compact([]int{here.at, next}) {
		for _, end := range p.trail(start, here.alone) {
			if done, ok := p.tail(state{at: end, chosen: true, alone: here.alone}, s); ok {
				return done, true
			}
		}
	}
	p.dead[here] = true
	return s, false
}

// more parses another item: after a connector or a comma, or digits after digits.
func (p *parser) more(here state, next int, s Selection) (Selection, bool) {
	between := string(p.text[here.at:next])
	starts := connectors.at(p.text, next)
	if strings.ContainsAny(between, ",、;") {
		starts = append(starts, next)
	}
	for _, start := range starts {
		if done, ok := p.before(start, s); ok {
			return done, true
		}
	}
	if !here.digits || between == "" || strings.TrimSpace(between) != "" {
		return s, false
	}
	for _, c := range p.choices(next) { // 1 3
		if !c.digits {
			continue
		}
		more := s
		more.Spans = append(slices.Clip(s.Spans), c.span)
		if done, ok := p.after(c, more); ok {
			return done, true
		}
	}
	return s, false
}

// trail returns the ends of what may come after a selection.
func (p *parser) trail(at int, alone bool) []int {
	ends := afterWords.at(p.text, at)
	if end := p.literal(at, "'s"); end > at {
		ends = append(ends, end)
	}
	if all := p.literal(at, "都", "全", "全都", "一起"); all > at && !alone {
		ends = append(ends, verbWords.at(p.text, all)...)
	}
	return ends
}

// skip skips spaces, quotes and punctuation.
func (p *parser) skip(at int) int {
	for at < len(p.text) && (unicode.IsSpace(p.text[at]) || strings.ContainsRune("\"'“”‘「」『』()[]【】《》<>。.!?~,、;:…*`", p.text[at])) {
		at++
	}
	return at
}

// spaces skips spaces.
func (p *parser) spaces(at int) int {
	for at < len(p.text) && unicode.IsSpace(p.text[at]) {
		at++
	}
	return at
}

// literal returns the end of the longest literal at a position, or the position itself.
func (p *parser) literal(at int, literals ...string) (end int) {
	end = at
	for _, l := range literals {
		if rest := []rune(l); at+len(rest) <= len(p.text) && slices.Equal(p.text[at:at+len(rest)], rest) {
			end = max(end, at+len(rest))
		}
	}
	return end
}

// word is literal for whole Latin words, including the spaces around them.
func (p *parser) word(at int, words ...string) int {
	start := p.spaces(at)
	end := p.literal(start, words...)
	if end == start || !bounded(p.text, start, end) {
		return at
	}
	return p.spaces(end)
}

// choices returns the possible selections at a position, longest first.
func (p *parser) choices(at int) []choice {
	found := slices.Concat(p.chinese(at), p.english(at), p.named(at), p.named(p.word(at, "the")))
	for _, c := range found {
		if c.number {
			found = append(found, p.ranges(c)...)
		}
	}
	for _, end := range allWords.at(p.text, at) {
		for _, end := range append(p.item(end), p.thing(end)...) {
			found = append(found, choice{end: end, span: Span{1, -1}, alone: true})
		}
	}
	for _, end := range noneWords.at(p.text, at) {
		found = append(found, choice{end: end, none: true, alone: true})
	}
	found = append(found, p.allOrNone(at)...)
	slices.SortStableFunc(found, func(a, b choice) int { return b.end - a.end })
	return found
}

// allOrNone parses 都要, 全都下载, 都不要, 一个都没看.
func (p *parser) allOrNone(at int) (found []choice) {
	at = p.literal(at, people...)
	start := p.literal(at, "一个", "一部", "一条", "一项", "一款", "一本", "一首", "一篇", "哪个", "哪一个", "哪部", "全部", "所有的", "这些")
	both := p.literal(start, "都", "全", "全都", "也", "统统")
	if both == start {
		return nil
	}
	not := p.literal(both, "不", "没", "没有", "不想", "不会")
	for _, end := range verbWords.at(p.text, not) {
		if not > both {
			found = append(found, choice{end: end, none: true, alone: true})
		} else if p.text[start] != '也' && (start == at || p.literal(at, "全部", "所有的", "这些") == start) {
			found = append(found, choice{end: end, span: Span{1, -1}, alone: true})
		}
	}
	return found
}

// ranges parses what follows a number that starts a range: 2-4, 第二到第四个, two to four.
func (p *parser) ranges(first choice) (found []choice) {
	to := p.word(first.end, "to", "through", "thru", "till", "until")
	if to == first.end {
		if to = p.literal(p.spaces(first.end), "到", "至", "-", "~"); to == p.spaces(first.end) {
			return nil
		}
	}
	to = p.spaces(to)
	for _, last := range slices.Concat(p.chinese(to), p.english(to)) {
		from, upto := first.span.First, last.span.First
		if last.number && from > 0 && from < upto && (first.marked || !last.marked || p.text[to] == '第') {
			found = append(found, choice{end: last.end, span: Span{from, upto}})
		}
		if !last.number || !first.marked {
			continue
		}
		for _, end := range p.measured(last.end) { // 第二到四个
			if from > 0 && from < upto {
				found = append(found, choice{end: end, span: Span{from, upto}})
			}
		}
	}
	return found
}
