package rules

import (
	"fmt"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// finding is a signal that fired, and on which words.
type finding struct {
	signal int // index into Rules.signals
	words  string
	beside bool // a companion, not the matter: "with my sister"
}

// assessment is what was found in a unit.
type assessment struct {
	score    int
	findings []finding
	self     bool // the speaker is its subject, owner or object
	hanging  bool // it is about something that it does not name
	thin     bool // none of its words names anything
}

func (r *Rules) weight(name string) int {
	if i, ok := r.byName[name]; ok {
		return r.signals[i].Weight
	}
	return 0
}

// assess sums the signals of a text. Each signal counts once. forced are signals that count whether or not their phrases
// occur, such as an explicit request found in the sentence around it.
func (r *Rules) assess(p piece, lang string, forced ...string) assessment {
	var a assessment
	at, beside := r.signalsIn(p, lang)
	for _, name := range forced {
		if i, ok := r.byName[name]; ok && at[i] == "" {
			at[i] = " "
		}
	}
	a.self = r.self(p, lang)
	if i, ok := r.byName[SignalAboutUser]; ok && a.self {
		at[i] = " "
	}
	r.disregardMoments(r.grammarOf(lang), p, at)
	r.disregardBareDetail(p, at)
	r.disregardEveryday(r.grammarOf(lang), p, at)
	strong := 0
	for i, s := range r.signals {
		if at[i] == "" {
			continue
		}
		a.score += s.Weight
		a.findings = append(a.findings, finding{i, strings.TrimSpace(at[i]), beside && s.Name == SignalRelation})
		if r.custom[s.Name] || s.Name == SignalProblemSolution && resolved.MatchString(p.norm) ||
			set1(s.Name, SignalConfiguration, SignalAppointment, SignalTreatment) {
			strong += s.Weight
		}
	}
	// What is not about the speaker counts only when it is a technical fact, an appointment or something the operator
	// asked for, and then only when it is concrete.
	if !a.self && len(forced) == 0 {
		a.score = min(a.score, strong)
		if strong > 0 && !r.impersonal(p, at) {
			a.score = min(a.score, 1)
		}
	}
	return a
}

// signalsIn finds the signals of words or shape: the words at which each fires, by signal, and whether the relation is only a companion.
func (r *Rules) signalsIn(p piece, lang string) (at map[int]string, beside bool) {
	at = map[int]string{}
	aside := r.grammarOf(lang).neutral.find(p)
	for _, h := range r.index.find(p) {
		name := r.signals[h.tag].Name
		if at[h.tag] != "" || within(h, aside) || set1(name, SignalExplicit, SignalTreatment) || name == SignalAppointment && !hasTime(p) ||
			idle(name, h, p) {
			continue
		}
		if name == SignalRelation {
			beside = companion.MatchString(p.norm[:h.start])
		}
		at[h.tag] = `"` + p.raw[h.start:h.end] + `"`
	}
	if i, ok := r.byName[SignalDetail]; ok {
		if d := detail(p, lang); d != "" && !strings.ContainsRune(d, masked) {
			at[i] = `"` + d + `"`
		}
	}
	return at, beside
}

// resolved tells that a technical problem has an end or a cause; a heading such as "解决思路" has neither.
var resolved = lazyregexp.New(`(解决|修复|搞定|恢复|修)(好|掉|完)?了|修好|已经?(解决|修复)|原因(是|在于)|是因为|改成|设为|\b(fixed|solved|resolved|turned out|caused ` +
	`by|because|fix (was|is)|root cause|works now)\b`)

var thirdPersonSubject = lazyregexp.New(`^(他|她|它|he\b|she\b|they\b|it\b)`)

// impersonal reports whether a sentence that does not name the speaker may still be worth keeping.
func (r *Rules) impersonal(p piece, at map[int]string) bool {
	for i := range at {
		if r.custom[r.signals[i].Name] {
			return true
		}
	}
	if thirdPersonSubject.MatchString(p.norm) || p.runes() > 120 {
		return false
	}
	return concreteZH.MatchString(p.norm) || concreteEN.MatchString(p.norm) || hasTime(p)
}

// disregardBareDetail drops a number or name that stands with nothing else about the speaker: "I take the B2", "我加doc_id字段".
// Quantities that people tell of themselves, such as their age or what they spent, count.
func (r *Rules) disregardBareDetail(p piece, at map[int]string) {
	i, ok := r.byName[SignalDetail]
	if !ok || at[i] == "" || particular(p) || strings.Contains(p.norm, "《") {
		return
	}
	for j := range at {
		if j != i && r.signals[j].Name != SignalAboutUser {
			return
		}
	}
	delete(at, i)
}

// disregardEveryday drops an everyday outing or meal that nothing sets apart: no other person, title, time or number, no taste and
// nothing that makes it a habit.
func (r *Rules) disregardEveryday(g *grammar, p piece, at map[int]string) {
	i, ok := r.byName[SignalEveryday]
	if !ok || at[i] == "" {
		return
	}
	_, lasting := g.lasting.any(p)
	_, planned := at[r.byName[SignalPlan]] // "I want to take a walk" is of this day; who wants to learn to swim is about more
	planned = planned && !learningZH.MatchString(p.norm)
	special := lasting || definite(p) || !planned && !finishedEN.MatchString(p.norm) && !strings.Contains(p.norm, "了")
	for j := range at {
		special = special || !set1(r.signals[j].Name, SignalEveryday, SignalExperience, SignalHabit, SignalPlan, SignalPlace, SignalAboutUser)
	}
	if special {
		delete(at, i)
	}
}

var learningZH = lazyregexp.New(`学|教|练|办|开|比赛|\b(learn|teach|open|join)`)

// finishedEN matches what is finished or momentary.
var finishedEN = lazyregexp.New(`\b(went|had|took|did|just|today|tonight|this (morning|evening|afternoon)|been to)\b`)

// disregardMoments drops troubles of the moment: "今天有点头疼".
func (r *Rules) disregardMoments(g *grammar, p piece, at map[int]string) {
	trouble, ok := r.byName[SignalLastingProblem]
	if !ok || at[trouble] == "" {
		return
	}
	for i := range at {
		if name := r.signals[i].Name; i != trouble && name != SignalAboutUser {
			return
		}
	}
	_, brief := g.brief.any(p)
	_, lasting := g.lasting.any(p)
	if brief && !lasting {
		delete(at, trouble)
	}
}

var companion = lazyregexp.New(`(和|跟|与|同|陪|(with|and|for) (my|our|a|an|some|the)?) ?(我的?|几个|一个|高中|大学|小学|最好的|好|best |old )*$|(是|当|做|` +
	`成为)(一名|一个|个|名|位)?$|(am|'m|as|be|become) an? ([a-z]+ )?$`)

func within(h hit, spans []hit) bool {
	for _, s := range spans {
		if s.start <= h.start && h.end <= s.end && s.end-s.start > h.end-h.start {
			return true
		}
	}
	return false
}

var selfZH = indexOf("我", "本人", "鄙人", "在下")

// self reports whether a text speaks of its speaker.
func (r *Rules) self(p piece, lang string) bool {
	g := r.grammarOf(lang)
	weak := g.weakSelf.find(p)
	strong := g.strongSelf.find(p)
	spoken := func(start, end int) bool {
		h := hit{start: start, end: end}
		for _, s := range strong {
			if s.start <= start && end <= s.end {
				return true
			}
		}
		for _, w := range weak {
			if w.start <= h.start && h.end <= w.end {
				return false
			}
		}
		return true
	}
	for _, h := range selfZH.find(p) {
		if spoken(h.start, h.end) {
			return true
		}
	}
	if lang != chinese && genericWe(p) {
		return false
	}
	for _, w := range p.words {
		if set1(w.norm, "i", "my", "me", "mine", "myself", "we", "our", "us", "ours") && p.raw[w.start:w.end] != "US" &&
			spoken(w.start, w.start+len("i")) {
			return true
		}
	}
	if lang == chinese {
		if lastingStateZH.MatchString(g.stripLead(p).norm) {
			return true
		}
		return !yes.whole(p) && impliedZH.MatchString(skipTimeZH(g.stripLead(p)).norm)
	}
	return impliedEN.MatchString(g.stripLead(p).norm)
}

var (
	leadTimeZH = lazyregexp.New(`^(([0-9一二三四五六七八九十两]+(月|日|号|点|半|分|年|天|周|个月|岁)半?)|大?[前昨今明后]天|(上|下|本|这)+个?(周|星期|礼拜|月)[一二三四五六日天末]?|(周|星期|` +
		`礼拜)[一二三四五六日天末]|[上中下]午|早上|晚上|今晚|明晚|昨晚|明早|凌晨|傍晚|去年|今年|明年|前年|最近|一直|平时|每天|每周|每晚|从小|小时候|刚刚|刚|已经|目前|现在|也|还|又|就|特别|非常|很|超级|超|比较|最|真的|` +
		`有点|不太|从来不|从来没|从不|一般|通常|经常|偶尔|周末|月底|年底|春节|国庆|元旦|暑假|寒假|过年|的时候|，|,| )+`)
	// A clause without a subject, in a chat, is about its speaker when it begins with what people say of themselves.
	impliedZH = lazyregexp.New(`^(喜欢|爱吃|爱喝|爱看|爱听|讨厌|偏爱|不喜欢|不爱|不吃|不喝|吃不了|吃素|住在|住的|住|来自|坐标|要(去|考|参加|交|开会|面试|出差|见|和|跟|陪|带|做|上|搬|回)|得去|打算|` +
		`计划|准备|想去|想学|想换|想买|想当|养了|有[一两三]?(只|条|个|辆)|对.{1,8}过敏|过敏|(和|跟|陪|带)我?(老婆|老公|女朋友|男朋友|女友|男友|爸|妈|孩子|女儿|儿子|朋友|同事|同学|闺蜜|家人)|毕业于|毕业|刚毕业|` +
		`搬到|搬来|搬家|搬完|考完|迷上|爱上|带(娃|孩子|儿子|女儿)|加班|家里有|家里养|新家|支持|终于|结婚|离婚|怀孕|失眠|去了|看了|读了|玩了|参加了|约了|预约了|要见|去见|要开会|要面试|要出差|出差|辞职|跳槽|入职|买了|报名|` +
		`决定|生日|属[鼠牛虎兔龙蛇马羊猴鸡狗猪]|做.{1,8}年|当了|学了|考上|考了|被裁|失业|戒|没结婚|单身|已婚|从事|负责|是.{1,8}人$|在.{1,16}(工作|上班|上学|读书|念书|读研|读博|读大|实习|生活|长大|租房|定居|准备|` +
		`学|写|做)|在(写|学|做|准备|找|备考|减肥|装修)|起床|跑步|健身([^房]|$)|遛狗|熬夜|早起|总是|老是|睡不|头疼|头痛|胃疼|腰疼|掉头发|学会|拿到|收到|认识|[0-9]+岁|叫我)`)
	// "最近工作压力有些大": a lasting state of the speaker.
	lastingStateZH = lazyregexp.New(`^(最近|近来|近期|这几天|这段时间|这阵子|一直|总是|老是|总|有时候?|常常|经常)(也|都|又|还|总是|老是|一直|经常|总|老|有点|有些|开始|在)*(工作|学习|生活|心理|` +
		`精神|经济|睡眠|身体|心情|情绪|胃口|感觉|感到|觉得|压力|焦虑|孤独|失眠|担心|害怕|睡|没有?动力|没胃口|学|练|备考|减肥|健身|忙|加班)`)
	impliedEN = lazyregexp.New(`^(allergic to|just (moved|started|got|bought|adopted|finished|came back|turned|quit)|moved to|` +
		`(was )?born (in|on)|grew up in|got (married|engaged|divorced|promoted|laid off|a new)|currently (living|working|studying)|been ` +
		`(working|living|learning|struggling|studying)|can't stand|don't (like|eat|drink)|love to|hate when|planning to|living in|` +
		`working (on|as|at)|studying|started (a|learning|working)|bought a|adopted a|have a (dog|cat)|have (two|three) |mom of|dad of|` +
		`father of|mother of|married with|thinking of (moving|buying|quitting))`)
)

// skipTimeZH drops the adverbs that a Chinese clause begins with.
func skipTimeZH(p piece) piece {
	if end := matchEnd(leadTimeZH, p.norm); end > 0 && end < len(p.norm) {
		return p.from(end)
	}
	return p
}

// importance maps a score to 0..1: the threshold gives 0.4 and every further point 0.1, up to 0.8; what the speaker asked to
// remember gives 0.9, and 1 when another signal than a mere mention fires too.
func (r *Rules) importance(a assessment, explicit bool) float64 {
	points := min(max(a.score-r.threshold, 0), 4)
	if explicit {
		if a.score >= r.weight(SignalExplicit)+2 {
			return 1
		}
		return 0.9
	}
	return float64(4+points) / 10
}

// kind is that of the strongest signal; explicit requests and mere mentions name none when another does.
func (r *Rules) kind(a assessment) memory.Kind {
	best, kind, held := 0, memory.KindFact, false
	for _, f := range a.findings {
		s := r.signals[f.signal]
		if s.Name == SignalExplicit || s.Name == SignalAboutUser || s.Name == SignalDetail {
			continue
		}
		if s.Weight > best || held && s.Weight == best {
			best, kind, held = s.Weight, s.Kind, f.beside
		}
	}
	return kind
}

// reason names the signals of an assessment, strongest first in the order of the signals.
func (r *Rules) reason(a assessment) string {
	parts := make([]string, len(a.findings), len(a.findings)+1)
	for i, f := range a.findings {
		s := r.signals[f.signal]
		name := strings.ReplaceAll(s.Name, "_", " ")
		if s.Name == SignalAboutUser {
			name = "about the user"
		}
		if f.words != "" {
			parts[i] = fmt.Sprintf("%s: %s(%+d)", name, f.words, s.Weight)
		} else {
			parts[i] = fmt.Sprintf("%s (%+d)", name, s.Weight)
		}
	}
	if a.hanging {
		parts = append(parts, fmt.Sprintf("about something unnamed (%+d)", -hangingPenalty))
	}
	if a.thin {
		parts = append(parts, "nothing in it is named")
	}
	return strings.Join(parts, ", ")
}
