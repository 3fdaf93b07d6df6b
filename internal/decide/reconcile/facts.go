package reconcile

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// fact is a value in a slot, of which there is one at a time: where the user lives, the dog's name. What qualifies it is
// part of the slot: a work email is another than a private one.
type fact struct {
	slot  string
	value string // for comparing
	ended bool   // the value does not hold any more; an empty value ends whatever there is
	whole bool   // the clause says nothing else
	weak  bool   // it is a value of "the budget", of which there may be several: it gives way to a change only
	turn  bool   // it tells that a value is changed
	from  string // the value that it had before, as a change tells it
}

// reading is what the patterns find in a statement.
type reading struct {
	text    string
	clauses []string
	facts   [][]fact // of each clause
	stances []stance
	words   []string // of the whole text, for comparing
	// The following is computed when it is first needed: endings, tastes, things given up or liked less, the topic, and the text in two
	// forms for comparison.
	closing   func() []ending
	tastes    func() []*taste
	givenUp   func() []object
	lesser    func() lesser
	core      func() core
	canonical func() string
	similar   func() compare.Text
}

// readings caches the latest readings. A statement is read to find its candidates, to be compared with them, and again for each new
// statement near it, which costs as much as all other work of a consideration. A reading depends on the text alone, not on the user.
var readings, _ = lru.New[string, *reading](2048) // some 5 MB; the only error is a size below 1

// DropReadings empties the cache, which holds users' words.
func DropReadings() { readings.Purge() }

// read is safe for concurrent use, and so is its result, which must not be modified.
func read(text string) *reading {
	if r, ok := readings.Get(text); ok {
		return r
	}
	r := readAnew(text)
	readings.Add(text, r)
	return r
}

func readAnew(text string) *reading {
	r := &reading{text: plain(text)}
	r.clauses = clauses(r.text)
	r.words = spoken(r.text)
	for _, c := range r.clauses {
		r.facts = append(r.facts, factsIn(c))
		r.stances = append(r.stances, stanceOf(c))
	}
	r.closing = sync.OnceValue(func() []ending { return endingsIn(r.text) })
	r.givenUp = sync.OnceValue(r.readGivenUp)
	r.lesser = sync.OnceValue(r.readLesser)
	r.core = sync.OnceValue(r.readCore)
	r.tastes = sync.OnceValue(r.readTastes)
	r.similar = sync.OnceValue(func() compare.Text { return compare.Prepare(text) })
	r.canonical = sync.OnceValue(func() string { return compare.Canonical(r.text) })
	return r
}

// slots are those of all facts.
func (r *reading) slots() []string {
	var list []string
	for _, facts := range r.facts {
		for _, f := range facts {
			list = append(list, f.slot)
		}
	}
	return list
}

// only reports whether the statement says nothing beyond a domain of slots, so that nothing else is lost with it.
func (r *reading) only(slot string) bool {
	for i, facts := range r.facts {
		if len(spoken(userZH.ReplaceAllString(userEN.ReplaceAllString(r.clauses[i], ""), ""))) == 0 {
			continue
		}
		if !slices.ContainsFunc(facts, func(f fact) bool { return domain(f.slot) == domain(slot) }) {
			return false
		}
	}
	return true
}

// domain is what a slot is about: "work" of "work/employer".
func domain(slot string) string {
	before, _, _ := strings.Cut(slot, "/")
	return before
}

// alone is the only fact of a statement that says nothing else.
func (r *reading) alone() (fact, bool) {
	if len(r.facts) == 1 && len(r.facts[0]) == 1 && r.facts[0][0].whole && !r.facts[0][0].ended {
		return r.facts[0][0], true
	}
	return fact{}, false
}

// pattern finds a fact in a clause. Its groups are o (whose, when not the user's own), a (an attribute's name) and v (the value).
type pattern struct {
	slot   string // "" when the attribute's name is the slot
	re     *lazyregexp.Regexp
	value  string // instead of the group v
	accept func(value string) bool
	ended  bool
	wish   bool // it stands also in what the user wants
	weak   bool // see fact
	turn   bool // see fact
}

func p(slot, re string, accept func(string) bool) pattern {
	return pattern{slot: slot, re: lazyregexp.New(re), accept: accept}
}

// relation is a pattern that tells a relationship by what it matches.
func relation(value, re string) pattern {
	return pattern{slot: "relationship", value: value, re: lazyregexp.New(re)}
}

// wish is a pattern that stands in what the user wants.
func wish(p pattern) pattern {
	p.wish = true
	return p
}

// weak is a pattern of a value of something that may not be the only one.
func weak(p pattern) pattern {
	p.weak = true
	return p
}

// turn is a pattern of such a value that is changed.
func turn(p pattern) pattern {
	p.weak, p.turn, p.wish = true, true, true
	return p
}

func ends(slot, re string) pattern {
	return pattern{slot: slot, re: lazyregexp.New(re), ended: true}
}

var (
	// unreal is what is planned, supposed, past, or said of several: it fills no slot.
	unrealEN = lazyregexp.New(`(?i)\b(?:if|would|might|may be|maybe|perhaps|could|plans?|planning|wants?|hopes?|wish|wishes|dreams?|` +
		`considering|considers|thinking|thinks|about to|going to|used to|formerly|previously|in the past|as a child|back then|not|never|` +
		`no longer|pretends?|imagine[sd]?|in the game|for a friend|both|one of|also|too|another|second|other)\b|\?`)
	unrealZH = lazyregexp.New(`如果|要是|假如|可能|也许|或许|打算|计划|考虑|准备|希望|想|要去|梦|差点|以为|据说|以前|曾|从前|过去|小时候|原来|之前|当年|那时|不|没|别|未(?:必|来)|也|另外|另一|第二|` +
		`其中|还有|同时|吗|本来|假装|游戏里`)
	// narrow are words that make a slot another one.
	narrowEN = lazyregexp.New(`(?i)\b(?:part-time|part time|weekends?|weekdays?|volunteers?|volunteering|sometimes|occasionally|` +
		`usually|mostly|temporarily|summers?|winters?|springs?|autumns?|holidays?|freelance|on the side|mornings?|evenings?|nights?)\b`)
	narrowZH = lazyregexp.New(`兼职|周末|工作日|平时|有时|偶尔|临时|暂时|夏天|冬天|春天|秋天|假期|寒假|暑假|志愿|业余|副业|实习`)
	// adverbsEN may be between subject and verb without changing the meaning.
	adverbsEN = lazyregexp.New(`(?i)\s+(?:now|currently|recently|just|actually|finally|still|already|really|nowadays|officially)\b`)
	perfectEN = lazyregexp.New(`(?i)\s+(?:has|have|had)\s+(moved|relocated|settled|turned|become|became|changed|switched|updated|` +
		`joined|started|quit|left|resigned|retired|lost|broken|divorced|married|dropped|gone|been|found|accepted|got|gotten|cancelled|` +
		`canceled|decided)\b`)
	adverbsZH = lazyregexp.New(`现在|目前|如今|最近|刚刚|刚|已经|其实|终于|真的|确实|今年|今天|上周|上个月|这周|正式|改口|重新`)
	// tail is what follows a value.
	tailEN = lazyregexp.New(`(?i)\s+(?:now|currently|these days|since|for|with|from now on|at the moment|anymore|last|this|next|as of|` +
		`already|again|recently|today|yesterday|after|before|so|which|who|where|when|until|instead|exactly|as an?|in (?:19|20)\d\d|in ` +
		`(?:january|february|march|april|may|june|july|august|september|october|november|december)|(?:a|two|three|\d+) (?:days?|weeks?|` +
		`months?|years?) ago)\b.*$`)
	tailZH = lazyregexp.New(`(?:了|的|啦|吧|呢|左右)+$`)
)

// factsIn finds what a clause says.
func factsIn(clause string) []fact {
	if han.MatchString(clause) && !strings.HasPrefix(clause, "the user") { // "the user's favourite fruit is 榴莲" is English
		return match(adverbsZH.ReplaceAllString(clause, ""), patternsZH, unrealZH, narrowZH, tailZH)
	}
	clause = perfectEN.ReplaceAllString(adverbsEN.ReplaceAllString(clause, ""), " $1")
	return match(clause, patternsEN, unrealEN, narrowEN, tailEN)
}

func match(clause string, patterns []pattern, unreal, narrow, tail *lazyregexp.Regexp) []fact {
	var facts []fact
	for i := range patterns {
		if p := &patterns[i]; p.re.MatchString(clause) && (p.wish || !unreal.MatchString(clause)) {
			f, ok := p.fact(clause, narrow, tail)
			if ok && !slices.ContainsFunc(facts, func(g fact) bool { return g.slot == f.slot }) {
				facts = append(facts, f)
			}
		}
	}
	return facts
}

// fact is what the pattern finds in a clause that it matches.
func (p *pattern) fact(clause string, narrow, tail *lazyregexp.Regexp) (fact, bool) {
	found := p.re.FindStringSubmatch(clause)
	group := func(name string) string {
		if k := p.re.SubexpIndex(name); k >= 0 {
			return strings.TrimSpace(found[k])
		}
		return ""
	}
	f := fact{
		slot: p.slot, value: p.value, ended: p.ended, whole: found[0] == clause && p.value == "", weak: p.weak, turn: p.turn,
		from: comparableForm(group("f")),
	}
	if p.value == "" {
		value := strings.TrimSpace(tail.ReplaceAllString(group("v"), ""))
		if f.value = comparableForm(value); f.value == "" && !p.ended || p.accept != nil && !p.accept(value) {
			return f, false
		}
	}
	if f.slot == "" {
		if f.slot = attribute(group("a")); f.slot == "" {
			return f, false
		}
	}
	if owner := comparableForm(group("o")); owner != "" {
		f.slot += " of " + canonical(owner)
	}
	if words := narrow.FindAllString(clause, -1); len(words) > 0 {
		f.slot += " (" + strings.ToLower(strings.Join(words, " ")) + ")"
	}
	return f, true
}

var unitSpace = lazyregexp.New(`(\d)\s+(\pL)`)

// comparableForm is a value in the form for comparison.
func comparableForm(value string) string {
	value = strings.ToLower(strings.Join(strings.Fields(value), " "))
	value = strings.Trim(value, " .:-/\"'“”‘’《》「」()")
	value = strings.TrimPrefix(strings.TrimPrefix(value, "the "), "on ")
	return compare.Canonical(value)
}

// differ reports whether two values of a slot contradict each other. One that holds the other is only more exact.
func (f fact) differs(from fact) bool {
	a, b := f.value, from.value
	if f.ended || from.ended {
		return f.ended != from.ended && (a == "" || b == "" || holds(a, b) || holds(b, a))
	}
	return !holds(a, b) && !holds(b, a)
}

// holds reports whether all words of b are in a, or b itself where words have no spaces.
func holds(a, b string) bool {
	if han.MatchString(a + b) {
		return placeOf(strings.ReplaceAll(b, " ", ""), strings.ReplaceAll(a, " ", "")) >= 0
	}
	split := func(r rune) bool { return r == ' ' || r == ',' }
	return within(strings.FieldsFunc(b, split), strings.FieldsFunc(a, split))
}

// placeOf is the position of a value in a text, or -1: 70 is not a part of 170.
func placeOf(value, text string) int {
	at := strings.Index(text, value)
	if at < 0 || value == "" {
		return at
	}
	if end := at + len(value); at > 0 && digit(text[at-1]) && digit(value[0]) || end < len(text) && digit(text[end]) && digit(value[len(value)-1]) {
		return -1
	}
	return at
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

func capital(value string) bool {
	for _, r := range value {
		return unicode.IsUpper(r)
	}
	return false
}

// conflict reports why the newer statement takes the place of the older one by what fills a slot, or "".
func conflict(newer, older *reading) string {
	for _, facts := range newer.facts {
		for _, f := range facts {
			for _, others := range older.facts {
				for _, g := range others {
					if related(f, g) && f.differs(g) && !g.ended && (!f.weak || f.turn) && !g.weak && older.only(g.slot) &&
						(f.ended || !names(newer, g.value) && !names(older, f.value)) {
						return "it is said anew: " + strings.ReplaceAll(g.slot, "/", ", ")
					}
				}
			}
		}
	}
	return ""
}

// names reports whether a statement mentions a value in another role, as "Leeds, England" mentions England. A value that the user left
// counts too.
func names(r *reading, value string) bool {
	at := placeOf(value, r.canonical())
	return at >= 0 && value != "" && !leftBehind.MatchString(strings.TrimSpace(r.canonical()[:at]))
}

var leftBehind = lazyregexp.New(`(?:\bfrom|\bleft|\bleaving|\bof|\bnot|\bin|\bthan|\bwas|从|离开|不在|不是|由|把)$`)

// related reports whether two facts are about the same: a fact that only ends something ends all of its domain.
func related(newer, older fact) bool {
	return newer.slot == older.slot || newer.ended && newer.value == "" && strings.HasPrefix(older.slot, newer.slot+"/")
}

// revalues reports whether the newer statement changes a value of the older one that may not be the only one of its kind; sure
// is true when it names the value that was changed.
func revalues(newer, older *reading) (is, sure bool) {
	for _, facts := range newer.facts {
		for _, f := range facts {
			for _, others := range older.facts {
				for _, g := range others {
					if g.weak && f.turn && f.slot == g.slot && !f.ended && f.differs(g) && older.only(g.slot) {
						is, sure = true, sure || f.from != "" && f.from == g.value
					}
				}
			}
		}
	}
	return is, sure
}

// revalued are, by the number of the memory, those of which a statement changes a value. When it cannot be told which is
// meant, it is none.
func revalued(s memory.Statement, mine *reading, near []decide.Neighbor, others []*reading) map[int]bool {
	var list, sure []int
	for i := range near {
		is, certain := revalues(mine, others[i])
		if !is || before(s.ObservedAt, &near[i].Memory) {
			continue
		}
		list = append(list, i)
		if certain {
			sure = append(sure, i)
		}
	}
	if len(list) > 1 {
		list = sure
	}
	if len(list) != 1 {
		return nil
	}
	return map[int]bool{list[0]: true}
}
