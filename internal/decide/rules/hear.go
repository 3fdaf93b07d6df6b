package rules

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// joinRunes is how long a statement may grow by joining clauses, in characters.
const joinRunes = 300

// hear reads one message of the speaker; earlier are the speaker's messages before it, to which "remember that" may refer.
func (r *Rules) hear(src *source, fallback string, earlier []*heard, classes map[class]int) *heard {
	h := &heard{source: src}
	if n := len(earlier); n > 0 && !earlier[n-1].forgotten && !earlier[n-1].withheld {
		h.last = earlier[n-1].last
	}
	if n := len(earlier); n > 0 && earlier[n-1].next {
		h.forgotten = true
		h.keepOut(earlier[n-1].source.index)
	}
	explicitRest, first, heardUpTo := false, true, 0
	for _, s := range src.sentences() {
		lang := languageOf(s.piece, fallback)
		clauses := s.clauses()
		w, forgets := r.withdrawal(s, clauses, lang)
		if forgets && !w.content.empty() {
			r.withdraw(h, s, w, lang, classes)
			first = false
			continue
		}
		asked, before, content := r.request(s, clauses, lang, heardUpTo)
		if forgets {
			asked = forgetAround
		}
		switch asked {
		case forgetAround:
			r.keepOutAround(h, earlier, s, first)
		case forgetThis:
			h.withheld = true
			h.keepOut(src.index)
		case remember:
			r.hearClauses(h, sentence{piece: s.piece}, before, lang, classes)
			h.units = append(h.units, r.explicitUnit(content, lang))
			heardUpTo = s.end
		case rememberNext:
			explicitRest = true
		case rememberBack:
			r.rememberBack(h, earlier)
		default:
			if explicitRest && !s.question {
				h.units = append(h.units, r.explicitUnit(s.piece, lang))
				break
			}
			if r.hearTold(h, s, clauses, lang, classes) {
				return h // the rest is material for a task: a text to translate, code to explain
			}
		}
		first = false
	}
	return h
}

// keepOutAround handles a request not to keep what stands around it: its message and, if it is alone there, the one before or, after a colon,
// the one after.
func (r *Rules) keepOutAround(h *heard, earlier []*heard, s sentence, first bool) {
	h.forgotten = true
	h.keepOut(h.source.index)
	alone := first && h.source.piece(s.end, len(h.source.raw)).empty()
	if alone && s.colon {
		h.next = true
		return
	}
	if n := len(earlier); alone && n > 0 {
		earlier[n-1].forgotten = true
		earlier[n-1].keepOut(h.source.index)
	}
	r.takeBack(h, earlier, s, alone)
}

// keepOut notes that a message asks not to keep this one.
func (h *heard) keepOut(asking int) { h.private = append(h.private, asking) }

// hearTold reads a sentence that asks nothing about remembering. It reports whether what follows is material for a task.
func (r *Rules) hearTold(h *heard, s sentence, clauses []piece, lang string, classes map[class]int) (material bool) {
	if lang != chinese && lang != english {
		return false // only requests are understood in other languages
	}
	if u := r.record(s, lang); u != nil {
		h.units = append(h.units, u)
		return false
	}
	return r.hearClauses(h, s, clauses, lang, classes)
}

func (r *Rules) explicitUnit(content piece, lang string) *unit {
	return &unit{
		assessment: r.assess(content, lang, SignalExplicit), pieces: []piece{content}, lang: lang, explicit: true,
		messages: []int{content.src.index},
	}
}

// rememberBack marks the previous words as requested: in this message, or else in the speaker's previous one.
func (r *Rules) rememberBack(h *heard, earlier []*heard) {
	mark := func(units []*unit) bool {
		found := false
		for _, u := range units {
			if u.class == statement || u.class == treatment {
				if !u.explicit {
					u.explicit = true
					u.assessment = r.assess(u.pieces[0], u.lang, SignalExplicit)
					u.requestedBy(h)
				}
				found = true
			}
		}
		return found
	}
	if mark(h.units) {
		return
	}
	for _, e := range slices.Backward(earlier) { // past thanks and greetings
		if len(e.units) > 0 || e.forgotten {
			if e.forgotten || mark(e.units) {
				return
			}
			break
		}
	}
	if len(earlier) == 0 {
		h.unclear = true
		return
	}
	previous := earlier[len(earlier)-1]
	if p := previous.source.piece(0, len(previous.source.raw)); !p.empty() && !previous.forgotten {
		u := r.explicitUnit(p, languageOf(p, english))
		u.requestedBy(h)
		previous.units = append(previous.units, u)
	}
}

// requestedBy adds the message that asks to remember the unit.
func (u *unit) requestedBy(h *heard) {
	if !slices.Contains(u.messages, h.source.index) {
		u.messages = append(u.messages, h.source.index)
	}
}

// hearClauses groups the clauses of a sentence into units. It reports whether what follows in the message is material for a
// task of the bot.
func (r *Rules) hearClauses(h *heard, s sentence, clauses []piece, lang string, classes map[class]int) (material bool) {
	g := r.grammarOf(lang)
	var current *unit
	flush := func() {
		if current != nil {
			r.settle(h, current)
		}
		current = nil
	}
	for i, c := range clauses {
		before := h.before(c)
		h.last = c
		class := g.classify(c, lang, s.question && i == len(clauses)-1)
		if class == question && !s.question && current != nil && set1(c.word(0), "who", "which", "where", "whose") {
			class = statement // "my sister, who lives in Oslo, …"
		}
		// A clause that only says when or why takes the next one's class.
		if class == treatment && current != nil && (current.class == treatment || g.dangling(current.pieces[0], lang) || r.standing(current.pieces[0])) {
			current.class = treatment
			r.extend(current, c)
			continue
		}
		classes[class]++
		switch class {
		case statement:
			current = r.hearStatement(h, current, before, c, lang)
		case treatment:
			flush()
			current = &unit{pieces: []piece{c}, lang: lang, messages: []int{c.src.index}, class: treatment}
		case hypothetical:
			flush()
			if !strings.Contains(c.norm, "就好了") && c.word(1) != "wish" {
				return false // what follows is hypothetical too
			}
		case command:
			flush()
			if takesMaterialBelow(s, c, i == len(clauses)-1) {
				return true
			}
		default:
			flush()
		}
	}
	flush()
	return false
}

// hearStatement has a statement continue the current unit, or begin another, and returns the one that is current then. before is
// the clause before it.
func (r *Rules) hearStatement(h *heard, current *unit, before, c piece, lang string) *unit {
	g := r.grammarOf(lang)
	apart := current != nil && r.apart(g, current, c, lang)
	introduced := r.introduces(g, before, c, lang)
	if current != nil && !apart && (introduced || r.joins(g, current, c, lang)) {
		r.extend(current, c)
		return current
	}
	if current != nil {
		r.settle(h, current)
	}
	current = &unit{pieces: []piece{c}, lang: lang, messages: []int{c.src.index}, own: apart}
	if introduced {
		h.introduce(current, before)
	}
	return current
}

// takesMaterialBelow reports whether a command, such as to translate, is about the lines that follow.
func takesMaterialBelow(s sentence, c piece, last bool) bool {
	if !takesMaterial.MatchString(c.norm) {
		return false
	}
	below := strings.HasPrefix(strings.TrimLeft(c.src.raw[s.end:], " \r。.，,"), "\n")
	return last && below || strings.Contains(c.norm, ":") || strings.Contains(c.norm, "：")
}

var takesMaterial = lazyregexp.New(`翻译|润色|改写|总结|概括|校对|修改|优化|续写|分析|解释|检查|看看|[:：]\s*$|translate|proofread|summari[sz]e|rewrite|rephrase|` +
	`paraphrase|correct|improve|explain|analy[sz]e|review|edit|debug|fix`)

func (r *Rules) extend(u *unit, c piece) {
	u.pieces[0] = c.src.piece(u.pieces[0].start, c.end)
}

// standing reports whether a clause is only "from now on" and the like.
func (r *Rules) standing(p piece) bool {
	return p.runes() < 24 && (standingZH.MatchString(p.norm) || standingEN.MatchString(p.norm))
}

// settle scores a unit and adds it to the result, or to the previous unit if it continues about the same person.
func (r *Rules) settle(h *heard, u *unit) {
	p := u.pieces[0]
	if p.runes() > r.maxRunes {
		return // nobody says so much in one breath: pasted text
	}
	if u.class == treatment {
		u.assessment = r.assess(p, u.lang, SignalTreatment)
	} else {
		u.assessment = r.assess(p, u.lang)
		if i, ok := r.byName[SignalRecord]; ok && u.score < r.threshold && ended(r.grammarOf(u.lang).stripLead(p), u.lang) {
			u.assessment = assessment{score: r.signals[i].Weight, findings: []finding{{signal: i}}, self: true}
		}
	}
	g := r.grammarOf(u.lang)
	if n := len(h.units); n > 0 && (followUp.MatchString(g.stripLead(p).norm) && !u.self || describes(g, h.units[n-1], p, u.lang)) {
		last := h.units[n-1]
		if i, ok := r.byName[SignalRelation]; ok && r.passes(last) && last.fires(i) && len(last.pieces) < 4 &&
			(len(u.findings) > 0 || isSomething.MatchString(p.norm)) {
			last.pieces = append(last.pieces, p)
			return
		}
	}
	if !r.lean(h, u) {
		r.weighThin(u)
		h.units = append(h.units, u)
	}
}

var followUp = lazyregexp.New(`^(他|她|它|叫|名字叫|今年|he\b|she\b|they\b|it is\b|it's\b|his name|her name|its name|their names?)`)

var isSomething = lazyregexp.New(`\b(is|are) (an?|my)\b|\b(he|she|it)'s (an?|my)\b|^(他|她|它)是`)

func (a assessment) fires(signal int) bool {
	for _, f := range a.findings {
		if f.signal == signal {
			return true
		}
	}
	return false
}

var (
	ownSubjectZH = lazyregexp.New(`^(我|俺|本人|咱|他|她|它)`)
	tiedZH       = lazyregexp.New(`^(但|可是|不过|所以|因此|就|才|也|却|因为|而|否则|不然|结果|只是|反而|于是|可我|更|还)`)
	tiedEN       = lazyregexp.New(`^(but|so|because|since|although|though|which|who|where|or|then|except|whereas|while|when|if|unless|` +
		`yet|not|especially|plus)\b`)
	ownSubjectEN = lazyregexp.New(`^(i\b|i'|im\b|ive\b|my\b|we\b|we'|our\b)`)
	// unfinishedEN ends a clause that continues after a comma: "I used to like it, but lately, …".
	unfinishedEN = lazyregexp.New(`\b(but|and|though|yet|so) (lately|recently|now|these days|nowadays|today|then|since then|over time|` +
		`in the end|honestly|actually|(after|since|when|while|with|because of|due to|owing to|despite|in spite of|given|once|thanks to) ` +
		`[^,]+)[, ]*$`)
	danglingZH = lazyregexp.New(`(后|时|之后|以后|之前|以前|以来|的时候|期间|开始|起)[，,]?$|^(而|但)?(在|从|对|对于|就)[^我，,]{1,20}(中|里|方面|来说|看来|而言)[，,]?$`)
)

// joins reports whether a clause continues a unit rather than standing on its own.
func (r *Rules) joins(g *grammar, u *unit, c piece, lang string) bool {
	p := u.pieces[0]
	if u.class != statement || p.runes()+c.runes() > joinRunes {
		return false
	}
	if g.dangling(p, lang) {
		return true
	}
	if lang == chinese {
		if tiedZH.MatchString(c.norm) {
			return true
		}
		body := skipTimeZH(g.stripLead(c))
		if ownSubjectZH.MatchString(body.norm) && !strings.HasPrefix(body.norm, "我、") && (r.self(c, lang) || !r.self(p, lang)) {
			return false
		}
	} else {
		if tiedEN.MatchString(c.norm) || unfinishedEN.MatchString(p.norm) {
			return true
		}
		if ownSubjectEN.MatchString(g.stripLead(c).norm) {
			return false
		}
	}
	return r.self(p, lang) || !r.self(c, lang)
}

// dangling reports whether a clause only says when, where or why, so that it belongs to the next one.
func (g *grammar) dangling(p piece, lang string) bool {
	if lang == chinese {
		if strings.ContainsAny(strings.TrimRight(p.norm, ","), ",") || strings.Contains(strings.TrimRight(p.norm, "，"), "，") {
			return false
		}
		body := g.stripLead(p)
		if end := matchEnd(leadTimeZH, body.norm); end > 0 && utf8.RuneCountInString(strings.TrimRight(body.norm[end:], "，, ")) < 2 {
			return true
		}
		return g.asOf.prefix(p) > 0 || danglingZH.MatchString(p.norm) && p.runes() < 24
	}
	if strings.Contains(strings.TrimRight(p.norm, ", "), ",") {
		return false
	}
	return g.asOf.prefix(p) > 0 && !set1(p.word(1), "is", "was", "are", "were", "'s")
}
