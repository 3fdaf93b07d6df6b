package rules

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

var (
	yes = indexOf(append(strings.Fields(`好 好的 好啊 好呀 好滴 好哒 对 对的 对啊 对呀 是 是的 是啊 嗯 嗯嗯 嗯对 可以 行 没错 没问题 就这样 就这么定了 就这么办 说好了 确定 当然 ok okay 喜欢 有 有的 会 想`),
		lines(`yes, yeah, yep, yup, ok, okay, sure, correct, right, exactly, that is right, that is correct, sounds good, sounds great, `+
			`perfect, great, works for me, that works, deal, absolutely, of course, confirmed, i do, i am, i have, yes please, yes i do, `+
			`yes i am, yes i have, yes it is, agreed`)...)...)
	tagZH = lazyregexp.New(`[，,、 ]?(可以吗|好吗|对吗|对吧|是吗|是吧|行吗|行不行|好不好|对不对|是不是|没错吧|没问题吧|怎么样|如何|ok吗|可以不|可以吧|没记错吧)[？?。！!~～ ]*$`)
	tagEN = lazyregexp.New(`[,—-]? *(right|correct|okay|ok|is that right|is that correct|is that okay|is that ok|does that work|` +
		`does that work for you|sound good|sounds good|isn't it|aren't you|don't you|yes|is it)[ ?.!]*$`)
	offerZH = lazyregexp.New(`要不要|需要我|想让我|要我|你可以|您可以|你应该|不妨|要不|建议|试试|我帮|我可以|我给|给你|推荐|想不想听|想听|想看|想了解|想知道`)
	offerEN = lazyregexp.New(`\b(would you like|do you want me|want me|shall i|should i|can i|could i|may i|let me|have you tried|` +
		`have you considered|you could|you should|you might|how about trying|why not|do you want to (hear|know|see|try)|would it help|` +
		`interested in hearing)\b`)
	proposalZH = lazyregexp.New(`^(那就|那么|那|就|所以|也就是说|我记一下|确认一下|跟你确认一下|好的|好|您|嗯)[，,：: ]*`)
	copulaZH   = lazyregexp.New(`是不是(对|在|有|喜欢|不|想|要|会|住|打算|准备|很|也|都|已经|还|去|养|做|刚)`)
	invertedEN = lazyregexp.New(`^(do you|are you|have you|is your|were you) `)
	asksFactZH = lazyregexp.New(`(你|您).{0,6}(叫什么|名字|怎么称呼|称呼|生日|多大|几岁|住哪|住在哪|哪里人|哪儿人|哪个城市|做什么工作|职业|专业|爱好|喜欢什么|喜欢吃什么|喜欢哪|最喜欢|过敏|忌口|什么工作|` +
		`在哪里工作|老家)|(怎么|如何)称呼(你|您)`)
	asksFactEN = lazyregexp.New(`\b(what('s| is) your (name|birthday|age|job|favou?rite|hobby|major|occupation|hometown)|what are ` +
		`your (hobbies|interests|pets)|how old are you|where (do|are) you (live|from|work|based|study)|what do you do( for (work|a ` +
		`living))?\s*\?|when('s| is) your birthday|what should i call you|do you have any (allergies|pets|siblings|hobbies|dietary)|what ` +
		`do you (like|enjoy)|who do you live with)`)
)

// confirmed finds what the speaker confirms with message i of something that the assistant asked this speaker just before: an
// arrangement, or a fact about the speaker. What merely pleases, or an offer that is accepted, is none.
func (r *Rules) confirmed(d memory.Dialogue, i int, reply *source, fallback string) *unit {
	asked := askedBefore(d, i)
	if asked < 0 {
		return nil
	}
	answer := reply.piece(0, len(reply.raw))
	if u := r.dictated(d, i, answer, languageOf(answer, fallback)); u != nil {
		return u
	}
	if answer.empty() || answer.runes() > 60 || strings.ContainsAny(answer.raw, "?？") {
		return nil
	}
	sentences := newSource(asked, withoutName(d.Messages[asked].Content, d.Messages[i].Speaker)).sentences()
	if len(sentences) == 0 {
		return nil
	}
	last := len(sentences) - 1
	q := sentences[last]
	// "Dentist on Friday at 3. Is that right?": the question is about the sentence before it.
	if body := strings.TrimSpace(q.norm); last > 0 && q.question && q.runes() < 24 &&
		(tagZH.FindString(body) == body || tagEN.FindString(strings.TrimLeft(body, " ")) == body) {
		q.piece = q.src.piece(sentences[last-1].start, q.end)
	}
	if !q.question && !tagZH.MatchString(q.norm) && !strings.HasSuffix(q.norm, "吗") {
		return nil
	}
	if q.runes() > r.maxRunes/2 {
		return nil
	}
	lang := languageOf(q.piece, fallback)
	if affirms(answer, q.piece) {
		return r.confirmation(q.piece, answer, lang, i)
	}
	return r.answered(q.piece, answer, lang, i)
}

// affirms reports whether an answer says yes and nothing else, but perhaps repeats what it says yes to.
func affirms(answer, q piece) bool {
	n := yes.prefix(answer)
	rest := answer
	if n > 0 {
		rest = answer.from(n)
		for m := yes.prefix(rest); m > 0; m = yes.prefix(rest) {
			rest = rest.from(m)
		}
		if rest.empty() {
			return true
		}
	}
	if rest.has("不", "没", "别") || rest.hasWord("not", "no", "but") {
		return false
	}
	// An echo: most of its characters or words were in the question.
	known, all := 0, 0
	for _, w := range rest.words {
		all++
		if q.hasWord(w.norm) {
			known++
		}
	}
	for _, c := range rest.norm {
		if cjk(c) && !strings.ContainsRune("就吧了的好那在我你", c) {
			all++
			if strings.ContainsRune(q.norm, c) {
				known++
			}
		}
	}
	if all > 0 && known*10 >= all*7 {
		return n > 0 || hasTime(rest)
	}
	return n > 0 && rest.hasWord("please", "thanks", "thank") && len(rest.words) <= 3 || n > 0 && rest.has("谢谢", "麻烦") && rest.runes() < 6
}

// confirmation turns the confirmed question into a statement about the speaker.
func (r *Rules) confirmation(q, answer piece, lang string, i int) *unit {
	norm := strings.ToLower(q.norm)
	offer := offerZH.MatchString(norm) || offerEN.MatchString(norm)
	own, direct := asOwnWords(q, lang)
	arranged := r.assess(q, lang)
	appointment, ok := r.byName[SignalAppointment]
	isAppointment := ok && arranged.fires(appointment)
	var a assessment
	if direct {
		a = r.assess(own, lang)
	}
	if offer && !isAppointment || !isAppointment && (!direct || !a.self || a.score < r.threshold) {
		return nil
	}
	if isAppointment && a.score < arranged.score {
		a = arranged
	}
	if isAppointment && a.score < r.weight(SignalAppointment) { // the rules' doubts about others' appointments don't apply
		a.score = r.weight(SignalAppointment)
	}
	if a.score < r.threshold {
		return nil
	}
	u := &unit{assessment: a, pieces: []piece{answer}, lang: lang, messages: []int{q.src.index, i}}
	u.quote = q.raw + "\n" + answer.raw
	u.reason = "the user confirmed what the assistant asked; " + r.reason(a)
	if direct && !offer {
		u.text = r.tell(&unit{assessment: r.assess(own, lang), pieces: []piece{own}, lang: lang, explicit: false})
		if lang == chinese && isAppointment && !r.self(own, lang) && leadTimeZH.MatchString(own.norm) {
			u.text = "用户" + plain(own, lang)
		}
	}
	if u.text == "" || strings.HasPrefix(u.text, "用户说") || strings.HasPrefix(u.text, "The user said") {
		if lang == chinese {
			u.text = "用户确认了：“" + q.raw + "”"
		} else {
			u.text = `The user confirmed: "` + q.raw + `"`
		}
	}
	return u
}

// rhetoricalZH is "你不是喜欢猫吗", to which yes says that it is so.
var rhetoricalZH = lazyregexp.New(`^(.*[你您].{0,3})不是(.+)[吗嘛]$`)

// asOwnWords puts a question about the speaker into the speaker's mouth: "你住在北京，对吗？" is "我住在北京". It reports false
// when the question is not one that yes turns into a statement.
func asOwnWords(q piece, lang string) (piece, bool) {
	own := func(s string) (piece, bool) {
		src := newSource(q.src.index, s)
		p := src.piece(0, len(src.raw))
		return p, !p.empty()
	}
	if lang == chinese {
		s := tagZH.ReplaceAllString(q.raw, "")
		s = strings.TrimRight(s, "？?。！!~～ ")
		s = rhetoricalZH.ReplaceAllString(s, "$1$2")
		s = strings.TrimSuffix(s, "吗")
		for proposalZH.MatchString(s) && !strings.HasPrefix(s, "您") {
			s = proposalZH.ReplaceAllString(s, "")
		}
		s = copulaZH.ReplaceAllString(s, "$1")
		s = strings.NewReplacer("是不是", "是", "有没有", "有", "会不会", "会", "您", "你").Replace(s)
		if strings.Contains(s, "我") || questionWordZH.MatchString(normalize(s)) || strings.HasSuffix(s, "呢") {
			return piece{}, false
		}
		return own(strings.ReplaceAll(s, "你", "我"))
	}
	if lang != english {
		return piece{}, false
	}
	s := strings.ReplaceAll(q.raw, "’", "'")
	if at := matchStart(tagEN, strings.ToLower(s)); at > 8 && at <= len(s) {
		s = s[:at]
	}
	s = strings.TrimRight(s, "?!. ")
	p, ok := own(s)
	if !ok {
		return piece{}, false
	}
	g := []string{"so ", "then ", "ok so ", "okay, so ", "ok, ", "okay, ", "just to confirm, ", "to confirm, ", "great, ", "so, ", "and "}
	for _, head := range g {
		if strings.HasPrefix(p.norm, head) {
			p = p.from(len(head))
		}
	}
	if p.hasWord("i", "me", "my", "we", "us", "let") ||
		set1(p.word(0), "what", "where", "who", "how", "why", "when", "which", "shall", "should", "can", "could", "would", "will", "did", "does", "has") {
		return piece{}, false
	}
	text := p.raw
	if at := invertedEN.FindStringIndex(p.norm); at != nil {
		rest := text[at[1]:]
		switch p.word(0) {
		case "do":
			text = "you " + rest
		case "is":
			noun, after, found := strings.Cut(rest, " ")
			if !found {
				return piece{}, false
			}
			text = "your " + noun + " is " + after
		default:
			text = "you " + p.word(0) + " " + rest
		}
	} else if set1(p.word(0), "do", "are", "have", "is", "were", "was") {
		return piece{}, false
	}
	return own(swapPerson(text))
}

var (
	youSubject = lazyregexp.New(`(?i)\byou are\b|\byou're\b|\byou were\b|\byou've\b|\byou'll\b|\byou'd\b|\byourself\b|\byours\b|\byour\b|\byou\b`)
	takesYou   = lazyregexp.New(`(?i)\b(for|with|to|at|from|of|about|by|gave|give|called|call|see|meet|near|than)\s*$`)
)

// swapPerson puts an English sentence about "you" into the first person.
func swapPerson(s string) string {
	var b strings.Builder
	pos := 0
	for _, at := range youSubject.FindAllStringIndex(s, -1) {
		b.WriteString(s[pos:at[0]])
		switch strings.ToLower(s[at[0]:at[1]]) {
		case "you are", "you're":
			b.WriteString("I am")
		case "you were":
			b.WriteString("I was")
		case "you've":
			b.WriteString("I have")
		case "you'll":
			b.WriteString("I will")
		case "you'd":
			b.WriteString("I would")
		case "yourself":
			b.WriteString("myself")
		case "yours":
			b.WriteString("mine")
		case "your":
			b.WriteString("my")
		default:
			if takesYou.MatchString(s[:at[0]]) {
				b.WriteString("me")
			} else {
				b.WriteString("I")
			}
		}
		pos = at[1]
	}
	b.WriteString(s[pos:])
	return b.String()
}

// asksOpenly reports whether the assistant asks the speaker something that yes does not answer, and that is no offer and no question
// about how they are.
func asksOpenly(q piece) bool {
	norm := strings.ToLower(q.norm)
	if offerZH.MatchString(norm) || offerEN.MatchString(norm) || howAreYou.MatchString(norm) {
		return false
	}
	return q.has("你", "您", "妳") && (questionWordZH.MatchString(q.norm) || q.has("还是")) ||
		q.hasWord("you", "your", "you're", "u") && q.hasWord("what", "what's", "which", "where", "who", "whose", "when", "how", "or", "anything", "any")
}

// howAreYou matches questions about the moment.
var howAreYou = lazyregexp.New(`\bhow (are|is|was|were|do|did) (you|your|it|that|things|everything)\b|how('s| is) |怎么样|感觉如何|还好吗|心情`)

// answered keeps a short answer to the assistant's question about the speaker, "What's your name?" – "Bob."
func (r *Rules) answered(q, answer piece, lang string, i int) *unit {
	wish := answer.hasWord("please", "pls") || answer.has("请")
	if !asksFactZH.MatchString(q.norm) && !asksFactEN.MatchString(q.norm) && (wish || !asksOpenly(q)) {
		return nil
	}
	g := r.grammarOf(languageOf(answer, lang))
	body := g.stripLead(answer)
	if body.empty() || body.runes() > 40 || g.filler.whole(body) || yes.whole(body) || g.classify(body, languageOf(answer, lang), false) != statement ||
		body.has("不告诉", "秘密", "不想说", "不知道", "随便", "不方便", "你猜") ||
		body.hasWord("secret", "guess", "dunno", "rather", "no", "nothing", "none") && len(body.words) < 6 {
		return nil
	}
	a := assessment{score: r.threshold, self: true}
	for _, name := range []string{SignalIdentity, SignalAboutUser} {
		if k, ok := r.byName[name]; ok {
			a.findings = append(a.findings, finding{signal: k})
		}
	}
	u := &unit{assessment: a, pieces: []piece{answer}, lang: lang, messages: []int{q.src.index, i}, kind: memory.KindFact}
	u.quote = q.raw + "\n" + answer.raw
	u.reason = "the user answered the assistant's question about them"
	if lang == chinese {
		u.text = "助手问“" + q.raw + "”，用户回答“" + plain(answer, lang) + "”"
	} else {
		u.text = `Asked "` + q.raw + `", the user answered: "` + strings.TrimRight(answer.raw, ".! ") + `".`
	}
	return u
}
