package rules

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// A word of a signal has the signal's sense only in some company: "like" is a verb after a subject and a preposition after a
// noun, "learning" is what the speaker does after "I am" and a noun after "machine".

// before lists the words that stand before a position in a piece, nearest first, at most n.
func (p piece) before(at, n int) []string {
	var out []string
	for i := len(p.words) - 1; i >= 0 && len(out) < n; i-- {
		if p.words[i].start < at {
			out = append(out, p.words[i].norm)
		}
	}
	return out
}

// after is the word that follows a position in a piece without punctuation between, or "".
func (p piece) after(at int) string {
	for _, w := range p.words {
		if w.start >= at {
			if strings.ContainsAny(p.norm[at:w.start], ",.;:!?()，。") {
				return ""
			}
			return w.norm
		}
	}
	return ""
}

var (
	// verbs follow these: subjects, auxiliaries, adverbs, "to" and "and".
	beforeVerb = lang.Set(`i we you they he she who kids children parents both and or but not to do does did would will can could may might
		should used
		longer also really always never usually often still actually just quite especially particularly mostly mainly definitely absolutely
		generally sometimes 's`)
	// doing words follow these: forms of "be", verbs of beginning and going on, and of taste.
	beforeDoing = lang.Set(`am are was were been be start started starting began begin keep kept busy enjoy enjoyed enjoying love loved like
		liked hate hated
		currently now just still also longer been actually always mostly mainly really stop stopped quit finish finished practice avoid by
		for while after before spent spend spending of at into about on i and`)
	doing = lang.Set("learning studying developing organizing organising researching practicing practising planning renovating moving " +
		"working preparing")
	// What is asked about, not liked: "interested in how …", "interested in learning more".
	inquiry = lang.Set("how what why where when whether who which learning hearing knowing discussing exploring understanding seeing your " +
		"this that these those you it them finding talking chatting asking the")
	// "thinking about moving", "thinking of my future": a plan; "thinking about how", "about the future of mankind": none.
	own = lang.Set("my a an our getting")
	// Fields of work are an occupation if a person is in them: "我做销售", not "销售脚本".
	field       = lang.Set("行业 销售 前端 后端 全栈 运营 编辑 模特 演员 经理")
	predicateZH = lazyregexp.New(`(是|做|当|干|学|从事|成为|名|个|位|转|搞|的|员|产品|项目|大堂|客户)$|^$|[，,、]$`)
	ownTasteZH  = lazyregexp.New(`(我|我的|更|比较|一直|个人|饮食|口味)$`)
	// "thinking about whether to move", "about where to go"
	deliberating = lazyregexp.New(`^ (whether|if i |(what|where|which|when|how) ([a-z]+ )?to )`)
	// "我的手机号", "手机号是…", not "手机号字段".
	ownNumberZH  = lazyregexp.New(`(我|我的|新|旧|老)$`)
	saysNumberZH = lazyregexp.New(`^(号|码)?(是|为|换|改|[:：0-9a-z])`)
	nounAfter    = lang.Set("life lives task tasks user users people person things thing objects use world items routine language english technology")
)

// idle reports whether a signal's phrase, found in a text, has not the signal's sense.
func idle(name string, h hit, p piece) bool {
	switch name {
	case SignalPreference:
		switch h.phrase {
		case "like":
			near := p.before(h.start, 1)
			return len(near) == 0 || !beforeVerb[near[0]]
		case "偏好":
			return !ownTasteZH.MatchString(p.norm[:h.start])
		case "interested in", "interest in":
			return inquiry[p.after(h.end)]
		}
	case SignalPlan:
		switch next := p.after(h.end); h.phrase {
		case "about to": // of this minute: "about to faint", not "about to move"
			return !lastingFuture[next]
		case "thinking about", "thinking of", "considering":
			return !own[next] && !strings.HasSuffix(next, "ing") && !deliberating.MatchString(p.norm[h.end:])
		case "我得", "我还得", "我需要", "我必须":
			return notDueZH.MatchString(p.norm[h.end:])
		case "need to", "needed to", "have to", "needs to", "must", "supposed to":
			return notDue[next] || editing[next] && !hasTime(p) && !p.hasWord("today")
		}
	case SignalPlace:
		return strings.HasPrefix(h.phrase, "mov") && (p.after(h.end) == "by" || slices.Contains(p.before(h.start, 1), "deeply"))
	case SignalOccupation:
		if field[h.phrase] {
			return !predicateZH.MatchString(p.norm[:h.start])
		}
		if strings.HasPrefix(h.phrase, "work") { // "it doesn't seem to be working"
			near := p.before(h.start, 5)
			subject := slices.IndexFunc(near, func(w string) bool {
				return set1(w, "i", "we", "my", "he", "she", "who", "it", "this", "that", "nothing")
			})
			return subject >= 0 && set1(near[subject], "it", "this", "that", "nothing")
		}
	case SignalIdentity:
		switch h.phrase {
		case "手机号", "电话号码", "邮箱":
			return !ownNumberZH.MatchString(p.norm[:h.start]) && !saysNumberZH.MatchString(p.norm[h.end:])
		}
	case SignalDecision: // "入选了展览": chosen by others
		return h.phrase == "选了" && endsWithAny(p.norm[:h.start], "入", "当", "落", "中", "海")
	case SignalHabit:
		return set1(h.phrase, "everyday", "daily") && nounAfter[p.after(h.end)]
	}
	if doing[h.phrase] {
		near := p.before(h.start, 1)
		return len(near) == 0 || !beforeDoing[near[0]]
	}
	return false
}

// notDueZH is what one has to do in the conversation or in general: 我得承认, 我需要更多的时间.
var notDueZH = lazyregexp.New(`^(要|先|再|离开|回去|去|好好|多|更|尽快|马上|赶紧|到|了|以|的|一[些点个]|你|您|说|讲|承认|想|考虑|走|睡|吃|喝|休息|放松|知道|了解|明白|思考|面对|努力|保持|提高|` +
	`提升|继续|坚持|学会|注意|冷静|改变|调整|时间|帮|支持|鼓励|建议|安慰|有|是|看)`)

// What one needs to do this minute or in the conversation is nothing to be done: "I need to know", "I have to say".
var notDue = lang.Set(`know ask see say admit agree go run leave head understand find check think talk tell get be have wonder wait confess
	hear look learn remember
	keep believe consider note mention add believe explain point disagree not do stop rest sleep relax eat come try`)

// editing words announce to the bot what it is to change.
var editing = lang.Set("update remove delete add change edit modify adjust revise")

var (
	// "we" as mankind: "how we work", "our brains".
	genericWeEN = lazyregexp.New(`\b(how( much| fast| often| many| well)?|why|way|ways) we\b|\b(our|us)( [a-z]+)? (lives|life|brain|` +
		`brains|mind|minds|bodies|body|planet|world|society|species|universe|culture|history|cells|ancestors|attention|perception|` +
		`understanding|thinking|behavior|behaviour|decisions|choices|emotions|interactions|daily|health|environment|surroundings|` +
		`everyday|future|technology|time)\b|\bwe (all|humans|people|as humans|tend|perceive|process|interact)\b|\bwe both\b|\bof us\b|` +
		`\bus (all|humans|to|better)\b`)
	firstEN = lang.Set("i my me mine myself")
)

// genericWe reports whether "we" means people in general.
func genericWe(p piece) bool {
	many := false
	for _, w := range p.words {
		if firstEN[w.norm] {
			return false
		}
		many = many || set1(w.norm, "we", "our", "us")
	}
	return many && !hasTime(p) && genericWeEN.MatchString(p.open())
}

// measured are quantities that people tell of themselves: age, size, weight, money.
var measured = lazyregexp.New(`\b(i am|am) (now |only |just |already |almost )?[0-9]{1,2}\b|[$€£¥] ?[0-9]|[0-9] ?(dollars|euros|` +
	`pounds|bucks|yuan|rmb|kg|kilos|lbs|cm|feet|mph|miles|km|steps|calories|hours|minutes|percent|%)|[0-9一二两三四五六七八九十百千万]+多?(元|块|斤|公斤|千克|` +
	`厘米|公分|米|岁|公里|步|小时|kg|cm|%|千|万)|有[0-9]+多?(个|名|位|家|台|本|张)`)

// particular reports whether a detail alone tells something of the speaker: a measured quantity.
func particular(p piece) bool { return measured.MatchString(p.open()) || measured.MatchString(p.norm) }
