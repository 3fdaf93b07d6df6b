package rules

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// A statement about "it" or "him" without an antecedent cannot be understood alone. It is combined with the sentence before it, which
// names the antecedent; without one it needs more content to be kept.

// hangingPenalty is what a statement loses that hangs on something unnamed.
const hangingPenalty = 1

// hangs reports whether a statement refers to something or a person that it does not name.
func hangs(p piece, lang string) bool {
	if strings.ContainsRune(p.norm, masked) {
		return false // a title
	}
	if lang == chinese {
		return hangsZH(p)
	}
	return partOfEN.MatchString(p.open()) || hangsEN(named(p))
}

var (
	// Nothing that could be meant stands before the pronoun: only the speaker, adverbs, prepositions and verbs of wishing and thinking.
	hangingZH = lazyregexp.New(`^(我们?|也|都|还|又|就|很|真的?|挺|更|最|一直|特别|非常|比较|十分|最近|今天|现在|已经|正在|以后|将来|想要?|要|希望|打算|准备|觉得|认为|担心|害怕|怕|相信|知道|发现|` +
		`感觉|喜欢|讨厌|爱上?|支持|理解|帮助|帮|跟|和|与|向|对|让|给|被|把|为了?|因为|因此|所以|但是?|可是|不过|而且|不|没有?|能|可以|会|应该|从|在|用|了|，|,| )*(他们?|她们?|它们?|(这|那)(个|种|件|份|项|` +
		`类|些|门))`)
	// "这个周末", "这个城市": what is pointed at can be known by when and where it is said. "他人" is anybody, "他是我爸爸" names him.
	knownZH = lazyregexp.New(`^(们)?(人|乡|周|月|星期|礼拜|学期|暑假|寒假|春|夏|秋|冬|季|年|天|假期|城市|时|世界|社会|国家|小区|点|叫|名叫|(今年)?[0-9一二三四五六七八九十]+岁|(也|就|都)?(是|当)我)`)
	namedZH = lazyregexp.New(`叫|名字|(这|那)种\p{Han}{2,6}的`)
)

func hangsZH(p piece) bool {
	end := matchEnd(hangingZH, p.norm)
	return end > 0 && !knownZH.MatchString(p.norm[end:]) && !namedZH.MatchString(p.norm)
}

var (
	thirdEN = lang.Set("he him his she her hers they them their theirs it its")
	// pointed nouns say of "this" nothing more than that it is one.
	pointedEN = lang.Set("problem problems issue issues situation field industry topic area subject idea book movie film song game thing " +
		"things kind type matter matters way")
	pointsEN = lang.Set("this that these those")
	timesEN  = lang.Set("days times years weeks months holidays moments nights mornings evenings weekends hours")
	// After these, a word is a verb or adjective.
	verbSlotEN = lang.Set(`i we you he she they it who am is are was were be been being do does did will would can could may might shall
		should must to not and or but so
		because if that when while feel felt feels get got keep kept what how where why then`)
	// After these, a word is a noun.
	nounSlotEN = lang.Set(`a an the my our your some any no every each another one two three many much more most few lot of in on at for
		with from by about into over under through during
		without like as against between after before around near than`)
	haveEN = lang.Set("have has had having")
	// A dummy subject or object, as in "it is hard to", "I find it hard to", and idioms.
	dummyEN = lazyregexp.New(`^it (is|was|'s|will be|would be|can be|could be|must be|may be|might be|has been|had been|seems|seemed|` +
		`looks|feels|felt|became|gets|got)( [a-z]+){0,3} (to|that|when|if|for|how|since|because|my|our|me|i|time|late|early|cold|hot|day|` +
		`days|weeks|months|years|[0-9]+)\b|^it (takes?|took|rain|rains|rained|snows?|snowed|turns?|turned|happens|depends|has been|had ` +
		`been|means|hurts|hurt) |^it (when|that|if)\b|^it (a |so |very |really |too |quite |more |as )?[a-z]+ (to|that|when|for|how)\b`)
	idiomEN = lazyregexp.New(`\b(making|make|made|makes) it( to| home| through| into| back)?$|\b(worth|at|beat|call|hang|wing|live) ` +
		`it$|^it (up|out)\b`)
	// "She is my best friend" says who she is.
	saysWhoEN = lazyregexp.New(`^(he|she|it|this|these|those|that|they) (is|was|'s|are|were)( also| now| not| still)? (my|our|me|the ` +
		`(first|second|last|only) time)\b`)
	acting = lang.Set("is was are were will would may might can could has have makes make made helps help helped affects affect " +
		"affected gives gave 's")
	// "I like the actors and the plot": parts of a thing unnamed.
	partOfEN = lazyregexp.New(`\b(enjoy|enjoyed|like|liked|love|loved|hate|hated|admire|appreciate) the (actors?|actress|plot|story|` +
		`storyline|ending|characters?|lyrics|melody|soundtrack|author|acting|cast|atmosphere|flavou?r|taste|texture|scenery)( (and|or|` +
		`especially|particularly|mainly)( the)? [a-z]+)*$`)
	// The noun follows: "When he was three, my son …".
	cataphoraEN = lang.Set("when while before after since although though if once as until because")
)

// hangsEN looks for a pronoun of the third person without a noun before it. Without a dictionary, nouns are recognised by their
// position.
func hangsEN(p piece) bool {
	open := p.open()
	if cataphoraEN[p.word(0)] && strings.Contains(p.norm, ",") || saysWhoEN.MatchString(open) {
		return false
	}
	before := ""
	for i, w := range p.words {
		norm := w.norm
		switch {
		case thirdEN[norm]:
			if norm != "it" || !dummy(p, i) {
				return true
			}
			before = norm
		case pointsEN[norm] && pointedEN[p.word(i+1)]:
			return detail(p, english) == ""
		case set1(norm, "these", "those") && strings.HasSuffix(p.word(i+1), "s") && !timesEN[p.word(i+1)]: // "these skills"
			return detail(p, english) == ""
		case set1(norm, "this", "these") && acting[p.word(i+1)]:
			return true
		case adverb(norm):
			continue // leaves the place as it is
		case nounAt(p, i, before):
			return false
		default:
			before = norm
		}
	}
	return false
}

// nounAt reports whether the word at i, which follows another or begins the clause, stands where a noun does.
func nounAt(p piece, i int, before string) bool {
	w := p.words[i]
	if w.norm == "i" || w.norm == "me" || verbSlotEN[w.norm] || nounSlotEN[w.norm] || haveEN[w.norm] || pointsEN[w.norm] || modals[w.norm] {
		return false
	}
	if c := p.raw[w.start]; c >= 'A' && c <= 'Z' && i > 0 || c >= '0' && c <= '9' {
		return true
	}
	switch {
	case before == "":
		return i == 0 && !strings.HasSuffix(w.norm, "ed")
	case haveEN[before]:
		return !participles[w.norm] && !strings.HasSuffix(w.norm, "ed")
	case verbSlotEN[before]:
		return false
	}
	return true
}

// dummy reports whether the "it" at word i stands for nothing.
func dummy(p piece, i int) bool {
	words := make([]string, 0, len(p.words))
	for _, w := range p.words {
		words = append(words, w.norm)
	}
	return dummyEN.MatchString(strings.Join(words[i:], " ")) || idiomEN.MatchString(strings.Join(words[:i+1], " "))
}

// lean handles a unit about the speaker that refers to something unnamed. It is combined with the sentence directly before it if there
// is one, and lean returns true; otherwise the unit's score is reduced.
func (r *Rules) lean(h *heard, u *unit) bool {
	p := u.pieces[0]
	if u.class != statement || !u.self || !hangs(r.grammarOf(u.lang).stripLead(p), u.lang) {
		return false
	}
	if n := len(h.units); n > 0 && r.passes(u) && r.carries(h.units[n-1], u) {
		last := h.units[n-1]
		last.pieces = append(last.pieces, p)
		if !r.passes(last) {
			last.assessment = u.assessment
		}
		return true
	}
	u.score -= hangingPenalty
	u.hanging = true
	return false
}

// pointsBack begins a remark about the previous words.
var pointsBack = lazyregexp.New(`^(这|那|它|it\b|this\b|that\b|these\b|those\b|they\b)`)

// carries reports whether a unit names what the next one hangs on: it is the sentence just before, and both can be told.
func (r *Rules) carries(last, u *unit) bool {
	end, p := last.pieces[len(last.pieces)-1], u.pieces[0]
	if last.class != statement || last.explicit || last.lang == english && len(last.pieces[0].words) < 2 || last.lang != u.lang ||
		len(last.pieces) > 3 || end.src != p.src || end.end > p.start || last.hanging ||
		strings.ContainsAny(last.pieces[0].raw, "?？") || strings.Trim(p.src.raw[end.end:p.start], " \t\n.。!！,，;；~～…") != "" {
		return false
	}
	if first := r.grammarOf(u.lang).stripLead(last.pieces[0]); !r.passes(last) &&
		(hangs(first, u.lang) || pointsBack.MatchString(first.norm) || youEN.MatchString(first.norm) || youZH.MatchString(first.norm)) {
		return false // a remark on what the bot said
	}
	_, ok := rewrite(p, u.lang, true)
	return ok
}
