package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// ending is a state of things that something else ends.
type ending struct {
	what         string
	open, closed *lazyregexp.Regexp
	queries      []string // by which memories that tell of the state are found
}

func end(what, open, closed string) ending {
	e := ending{what: what, open: lazyregexp.New(`(?i)` + open), closed: lazyregexp.New(`(?i)` + closed)}
	for _, q := range endingQueries {
		if e.open.MatchString(q) {
			e.queries = append(e.queries, q)
		}
	}
	return e
}

var endings = []ending{
	end("the search for a job is over",
		`\b(?:looking|searching|hunting) for (?:a |an |another )?(?:new )?(?:job|work|position)|\bjob[- ]hunting|\bunemployed\b|\bbetween `+
			`jobs\b|找(?:新)?工作|求职|待业|失业`,
		`\b(?:found|got|landed|accepted|started) (?:a |an |the |their |his |her )?(?:new )?(?:job|position|offer)|找到了?(?:新|一份)?工作|入职|`+
			`拿到了?.{0,8}offer|上班了`),
	end("the search for a home is over",
		`\b(?:looking|searching|hunting) for (?:a |an )?(?:new )?(?:apartment|flat|house|place to (?:live|rent)|room)|\b(?:flat|house|`+
			`apartment)[- ]hunting|在?找房子?|在?看房`,
		`\bfound (?:a |an )?(?:new )?(?:apartment|flat|house|place|room)|\bsigned (?:a|the) lease|租到了?|找到了?房子|买了(?:套|一套)?(?:新)?房`),
	end("the pregnancy is over",
		`\bpregnant\b|\bexpecting a (?:baby|child)|怀孕|待产`,
		`\bgave birth|\bbaby (?:was|is) born|\bhad (?:a|the) baby|生了(?:个|一个)?(?:宝宝|孩子|女儿|儿子|女孩|男孩)|宝宝出生`),
	end("the illness is over",
		`\b(?:has|caught|have|is down with) (?:a |the )?(?:cold|flu|fever|covid|cough)\b|\bis (?:sick|ill)\b|感冒|发烧|流感|生病|咳嗽|新冠`,
		`\brecovered\b|\bis (?:well|healthy|better) (?:again|now)|\bgot over (?:the |a )?(?:cold|flu|covid)|病好了|感冒好了|烧退了|退烧|康复|痊愈|好了$`),
	end("the driving licence is there",
		`\blearning to drive|\btaking driving lessons|学车|考驾照|学开车`,
		`\bgot (?:a |the |their |his |her )?(?:driver's|driving) licen[cs]e|\bpassed (?:the |their |his |her )?driving test|拿到了?驾照|考到了?驾照`),
	end("the engagement is over", `\bengaged\b|\bfianc|订婚|未婚妻|未婚夫`, `\bgot married|\bcalled off the (?:wedding|engagement)|\bbroke off `+
		`the engagement|结婚了|领证了|退婚|悔婚|解除了?婚约`),
	end("the studies are over", `\b(?:in|writing) (?:the |their |his |her )?(?:thesis|dissertation)\b|\bstudent at\b|在读|写(?:毕业)?论文|`+
		`读大[一二三四]`, `\bgraduated\b|\bsubmitted (?:the |their |his |her )?(?:thesis|dissertation)|毕业了|交了?论文`),
}

var (
	plansEN = lazyregexp.New(`(?i)^the user (?:is planning|plans|planned|intends|is going|wants|would like|hopes|is thinking of|is ` +
		`thinking about|is considering|is studying|is preparing|is training|decided|will)(?: on| to| for)* (.+)$`)
	dutiesEN = lazyregexp.New(`(?i)^the user (?:also |really |still |just |actually |urgently |probably )*(?:needs|has|must|should|` +
		`ought|is supposed|is meant|has yet)(?: to)? (.+)$`)
	dutiesZH = lazyregexp.New(`^用户(?:最近|现在|还|也|.{0,10}[日号]|.{0,6}月|周.|下周.?|这周.?|明天|今天)*(?:需要|得|必须|应该|还没|该)(.+)$`)
	plansZH  = lazyregexp.New(`^用户(?:最近|现在|正在|在|一直|还|.{0,10}年|.{0,6}月|.{0,4}周|明年|年底)*(?:打算|计划|准备|备考|决定|考虑|想要|想去|想|希望|要)(.+)$`)
	anyPlan  = lazyregexp.New(`(?i)\b(?:plans?|planning|intends?|going to|wants?|would like|hopes?|thinking (?:of|about)|considering|` +
		`will|next)\b|打算|计划|准备|考虑|想要|希望|将要`)
	repeated = lazyregexp.New(`(?i)\b(?:every|each|daily|weekly|monthly|regularly|usually|often|always)\b|每|经常|坚持|常常|总是`)
	longAgo  = lazyregexp.New(`(?i)\b(?:ago|as a child|in (?:19|20)\d\d|last year|years?|once|used to|when (?:he|she|they) (?:was|` +
		`were))\b|小时候|以前|去年|前年|曾|年前|当年|之前`)
	doneEN  = lazyregexp.New(`(?i)^the user (?:(?:has|have|had|finally|just|already|and|been) )*([a-z]+)\b`)
	doneZH  = lazyregexp.New(`了|过|已经|完成|终于`)
	cancels = lazyregexp.New(`(?i)\b(?:cancelled|canceled|called off|gave up|given up|dropped|abandoned|decided (?:not to|against)|` +
		`is not going|will not|no longer (?:wants?|plans?|going|planning|needs?|needed|has to|have to|intends?|considering|thinking)|` +
		`(?:does|do) not (?:need|have) to\b.*\banymore|did not|does not want to|changed (?:his|her|their) mind about)\b|取消|放弃|不去了|不想去|作罢|` +
		`泡汤|不打算|不准备|不想|不.{1,8}了$|没去|不用|不必|不需要|无需`)
	finished = lazyregexp.New(`(?i)^the user (?:(?:but|and|so|is|are|they|now|all|already|finally) )*(?:done|through|finished)(?: ` +
		`with)?\b|^the user (?:they )?(?:have |has |had )?(?:got|gotten|took|taken) (?:around to|care of|through)\b`)
	completed = lazyregexp.New(`(?i)^the user (?:(?:has|have|had|is|are) )*(?:finished|completed|done with|through with|finished ` +
		`with) (?:[a-z]+ing|the|their)\b`)
	settledEN = lazyregexp.New(`(?i)^(?:the|their|his|her|all the|all) .+ (?:is|are|has been|have been|was|were) (?:all |now |finally ` +
		`|already )?(?:done|paid|sent|written|bought|[a-z]+ed)$`)
	notYet = lazyregexp.New(`(?i)\b(?:did|has|have|is|are) not\b|没`)
	// setting is the place or the person of a duty, which may be left out once it is done.
	setting = lazyregexp.New(`(?i)(?: (?:for|at) (?:work|school|the office|the team|the company|university|college)| soon| today| ` +
		`tomorrow| this week)+$|\bsome\b `)
	settingOf = lazyregexp.New(`(?i)\b(?:for|at) (?:work|school|the office|the team|the company|university|college)\b`)
	relieved  = lazyregexp.New(`(?i)^(the user) is (?:glad|happy|relieved|proud|pleased|so glad)(?: that)? (?:they|he|she)(?: have| ` +
		`has)?\b|^(the user) (?:they|he|she)(?: have| has)?\b`)
	planWords = lang.Set(`plan want hope intend think consid decid will like go get do make have take see visit trip travel time cancel call
		off give up drop abandon
		chang mind about soon next week month year day weekend monday tuesday wednesday thursday friday saturday sunday january februari
		march april may june juli august septemb octob novemb decemb later sometim somewhen asap today morn afternoon even night tomorrow
		去 到 玩 旅 游 行 看 一 下 趟 打 算 计 划 准 备 想 取 消 放 弃 年 月 日 号 周 末 天 明 底 初 星 期`)
)

// fulfilled reports why the newer statement takes the place of an older plan, or "".
func fulfilled(newer, older *reading) string {
	if len(older.clauses) != 1 || repeated.MatchString(older.text) {
		return ""
	}
	clause := older.clauses[0]
	m := plansEN.FindStringSubmatch(clause)
	if m == nil {
		m = plansZH.FindStringSubmatch(clause)
	}
	duty := m == nil
	if duty {
		m = firstMatch(clause, dutiesEN, dutiesZH)
	}
	if m == nil {
		return ""
	}
	if !settingOf.MatchString(newer.text) { // done for school is not done for work
		m[1] = setting.ReplaceAllString(m[1], "")
	}
	object := weighty(m[1])
	if len(object) == 0 || duty && len(object) < 2 {
		// "Call the plumber": a verb that plans have, and one word of what. All of it has to be said.
		if object = spoken(stripTimes(m[1])); !duty || len(object) < 2 {
			return ""
		}
	}
	struck, isStruck := removalOf(newer)
	if isStruck && duty && struck.todo() && slices.ContainsFunc(struck.entries,
		func(entry []string) bool { return sameDuty(m[1], strings.Join(entry, " ")) }) {
		return "it is struck off the list of what is to be done"
	}
	for _, c := range newer.clauses {
		// "No longer needs to plan the party: it has taken place" says what it is about in two clauses.
		said := spoken(c)
		nearly := duty && len(object) > 2 && within(object, newer.words) && len(without(object, lang.Set(said...))) <= 1
		if !nearly && !within(object, said) {
			continue
		}
		c = adverbsEN.ReplaceAllString(relieved.ReplaceAllString(c, "$1$2"), "")
		switch {
		case duty && notYet.MatchString(c):
		case cancels.MatchString(c):
			return "the plan is given up"
		case duty && completed.MatchString(c):
			return "the plan is carried out"
		case anyPlan.MatchString(c), longAgo.MatchString(c), repeated.MatchString(c):
		case done(c):
			return "the plan is carried out"
		}
	}
	return ""
}

// sameDuty reports whether an entry of a list names a duty, with no word more or less that tells it from others.
func sameDuty(duty, entry string) bool {
	a, b := weighty(setting.ReplaceAllString(duty, "")), weighty(entry)
	return len(a) > 0 && within(a, b) && within(b, a)
}

// weighty are the words of a plan that tell it from others.
func weighty(text string) []string {
	text = timeZH.ReplaceAllString(timeEN.ReplaceAllString(text, " "), "")
	return slices.DeleteFunc(without(spoken(text), planWords), func(w string) bool { return unicode.IsDigit(rune(w[0])) })
}

// done reports whether a clause tells that something was done.
func done(clause string) bool {
	if han.MatchString(clause) {
		return doneZH.MatchString(clause)
	}
	if finished.MatchString(clause) {
		return true
	}
	if settledEN.MatchString(clause) {
		return true
	}
	m := doneEN.FindStringSubmatch(clause)
	if m == nil {
		return false
	}
	verb := strings.ToLower(m[1])
	_, past := irregular[verb]
	return past && verb != "has" && verb != "read" || strings.HasSuffix(verb, "ed")
}

// over reports why the newer statement takes the place of an older one whose state of things it ends, or "".
func over(newer, older *reading) string {
	if anyPlan.MatchString(newer.text) || denialEN.MatchString(newer.text) || strings.Contains(newer.text, "没") {
		return ""
	}
	for _, e := range newer.closing() {
		if e.open.MatchString(older.text) && len(older.clauses) == 1 && whose(newer) == whose(older) {
			return e.what
		}
	}
	return ""
}

// endingsIn lists the endings in a text.
func endingsIn(text string) (found []ending) {
	for _, e := range endings {
		if e.closed.MatchString(text) {
			found = append(found, e)
		}
	}
	return found
}

var otherEN, otherZH = lazyregexp.New(`(?i)^the user's ([a-z]+(?: [a-z]+)?)`), lazyregexp.New(`^用户(?:的)?(` + strings.Join(people(), "|") + `)`)

// whose is who a statement is about, "" when it is the user.
func whose(r *reading) string {
	if len(r.clauses) == 0 {
		return ""
	}
	for _, re := range []*lazyregexp.Regexp{otherEN, otherZH} {
		if m := re.FindStringSubmatch(r.clauses[0]); m != nil {
			return canonical(strings.ToLower(m[1]))
		}
	}
	return ""
}

func people() []string {
	var list []string
	for w := range uniqueOwnersZH {
		list = append(list, w)
	}
	for w := range severalZH {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

const (
	whenEN = `(?:(?:next|this|last|coming) )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|week|month|weekend)|tomorrow|` +
		`today|tonight|the day after tomorrow|\d{4}-\d\d-\d\d(?: \(\w+\))?|(?:january|february|march|april|may|june|july|august|` +
		`september|october|november|december)(?: \d{1,2}(?:st|nd|rd|th)?)?|\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:january|february|march|` +
		`april|may|june|july|august|september|october|november|december)|\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)|\d{1,2}:\d\d|noon|the \d{1,` +
		`2}(?:st|nd|rd|th)|morning|afternoon|evening`
	whenZH = `(?:(?:\d{4}年)?[\d一二三四五六七八九十]{1,3}月[\d一二三四五六七八九十]{1,3}[日号]?|[\d一二三四五六七八九十]{1,3}月(?:份|底|初|中)?|[\d一二三四五六七八九十]{1,3}[日号]|(?:下下|` +
		`下个|下|上|这|本)?(?:周|星期|礼拜)[一二三四五六日天末\d]|今天|明天|后天|大后天|今晚|明晚|下周|下个月|本周|周末|早上|上午|中午|下午|晚上|傍晚|[\d一二三四五六七八九十两]{1,3}点(?:半|一刻|` +
		`[\d一二三四五六七八九十]{1,3}分?)?|\d{1,2}:\d\d)`
)

var (
	timeEN = lazyregexp.New(`(?i)\b(?:on |at |in |for |until |till |from )?(?:` + whenEN + `)\b`)
	timeZH = lazyregexp.New(whenZH)

	movedEN = lazyregexp.New(`(?i)^(?:the user(?:'s)? )?(.+?) (?:(?:has|have|had|was|is|are|were|been|got) )*(?:moved|rescheduled|` +
		`postponed|pushed back|pushed|delayed|brought forward|changed|shifted)\b(?: from (.+?))?(?: (?:to|until|till) (.+))?$`)
	movesEN = lazyregexp.New(`(?i)^the user ` + askedToEN + `(?:moved?|rescheduled?|postponed?|pushed back|pushe?d?|push back|` +
		`delaye?d?|brought forward|bring forward|changed?|shift(?:ed)?) (?:his|her|their|the|a) (.+?)(?: from (.+?))? (?:to|until|till) ` +
		`(.+)$`)
	cancelledEN = lazyregexp.New(`(?i)^(?:the user(?:'s)? )?(.+?) (?:(?:has|have|had|was|is|been|got) )+(?:(?:cancelled|canceled|` +
		`called off)\b.*|off(?: now| again| then)?)$`)
	cancelsEN = lazyregexp.New(`(?i)^the user ` + askedToEN + `(?:cancel|cancelled|canceled|called off|call off) (?:his|her|their|the|a) (.+)$`)
	movedZH   = lazyregexp.New(`^(?:用户(?:的)?)?(?:要求助手)?(?:把|将)?(?:用户的?)?(.+?)(?:被)?(?:改期到|改签到|改到|改成|改为|改在|推迟到|延期到|延到|提前到|挪到|换到|调到|` +
		`调整到)了?(.+?)了?$`)
	cancelledZH = lazyregexp.New(`^(?:用户(?:的)?)?(?:要求助手)?(?:帮)?(?:用户)?(?:把|将|取消了?)?(?:用户的?)?(.+?)(?:被)?(?:取消|作罢|泡汤|黄|不办|不开|推)?掉?了?$`)
	cancelZH    = lazyregexp.New(`取消|作罢|泡汤|黄了|不办了|不开了`)

	// vague words name an appointment without identifying it.
	vague = lang.Set(`appoint meet meetup plan event call session date visit schedul time origin
		预 约 会 议 安 排 活 动 行 程 日 期 时 间 有 要 去 原 定 本`)
	fillerZH = lazyregexp.New(`原定|原本|原来|本来|已经|和|跟|与|的|在|于|那个|这个|那次|约了|约好`)
)

// rearranged is an appointment that is moved or cancelled.
type rearranged struct {
	what   string   // in words
	words  []string // that tell which appointment
	strong bool     // they tell it by themselves
	from   string   // the time that it had, as it is said
}

// rearrangement reads that an appointment is moved or cancelled.
func rearrangement(r *reading) (rearranged, bool) {
	for _, c := range r.clauses {
		if m := firstMatch(c, movesEN, movedEN); len(m) > 3 &&
			(timeEN.MatchString(m[3]) || strings.Contains(strings.ToLower(c), "postponed") && m[3] == "") {
			return newRearranged("it is put at another time", m[1], m[2])
		}
		if m := firstMatch(c, cancelsEN, cancelledEN); m != nil {
			return newRearranged("it is cancelled", m[1], "")
		}
		if m := movedZH.FindStringSubmatch(c); len(m) > 2 && timeZH.MatchString(m[2]) {
			return newRearranged("it is put at another time", m[1], "")
		}
		if m := cancelledZH.FindStringSubmatch(c); m != nil && cancelZH.MatchString(c) {
			return newRearranged("it is cancelled", m[1], "")
		}
	}
	return rearranged{}, false
}

func firstMatch(text string, patterns ...*lazyregexp.Regexp) []string {
	for _, re := range patterns {
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
	}
	return nil
}

// holdsTime reports whether a text names a time: an hour may be either half of the day where it is not said which.
func holdsTime(text, from string) bool {
	if strings.Contains(text, from) {
		return true
	}
	either := func(s string) string { return hourHalf.ReplaceAllStringFunc(s, half) }
	return strings.Contains(either(text), either(from)) && (strings.Contains(from, "u") || strings.Contains(text, "u"))
}

// hourHalf is a time of day as similar.Canonical writes it: t15:00, or u03:00 when it may be either half.
var hourHalf = lazyregexp.New(`\b[tu]\d\d:`)

func half(clock string) string {
	hour := int(clock[1]-'0')*10 + int(clock[2]-'0')
	return fmt.Sprintf("h%02d:", hour%12)
}

func newRearranged(what, event, from string) (rearranged, bool) {
	x := rearranged{what: what, from: from}
	times := append(timeEN.FindAllString(event, -1), timeZH.FindAllString(event, -1)...)
	if x.from == "" && len(times) > 0 {
		x.from = times[0]
	}
	if x.from == "" || !timeEN.MatchString(x.from) && !timeZH.MatchString(x.from) {
		x.from = ""
	}
	event = timeZH.ReplaceAllString(timeEN.ReplaceAllString(event, " "), "")
	all := spoken(fillerZH.ReplaceAllString(event, ""))
	x.words = without(all, vague)
	x.strong = len(x.words) > 0
	if !x.strong {
		x.words = all
	}
	return x, len(x.words) > 0
}

// rearranges picks, of the older statements, the one whose appointment is meant. When it cannot be told which, it is none.
func (x rearranged) rearranges(older []*reading) int {
	var list []int
	for i, r := range older {
		timed := timeEN.MatchString(r.text) || timeZH.MatchString(r.text)
		if _, moved := rearrangement(r); !timed && !moved {
			continue
		}
		if within(x.words, r.words) && !cancelZH.MatchString(r.text) && !cancelledEN.MatchString(r.text) {
			list = append(list, i)
		}
	}
	if len(list) > 1 && x.from != "" {
		from := strings.TrimSpace(strings.ToLower(timeEN.ReplaceAllStringFunc(x.from, func(s string) string {
			for _, word := range []string{"on ", "at ", "in ", "for ", "from "} {
				s = strings.TrimPrefix(strings.ToLower(s), word)
			}
			return s
		})))
		list = slices.DeleteFunc(list, func(i int) bool { return !holdsTime(older[i].canonical(), compare.Canonical(from)) })
	}
	if len(list) != 1 {
		return -1
	}
	return list[0]
}
