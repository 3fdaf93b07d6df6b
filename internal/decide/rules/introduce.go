package rules

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// People are introduced in two clauses: "他叫小明，是我弟弟", "that's Bob, he is my boss". One has the name, the other the relation, and a memory
// needs both. A following clause without a subject is about the same person: "我有个妹妹，在北京读书".

// peopleZH are relatives and friends, and petsZH animals, for patterns.
const (
	peopleZH = `(最好的|好|大学|高中|初中|小学|前|大|小|亲|双胞胎|新|老)?(老婆|老公|妻子|丈夫|太太|先生|媳妇|爱人|对象|男朋友|女朋友|男友|女友|未婚夫|未婚妻|前任|前男友|前女友|前妻|前夫|儿子|女儿|闺女|孩子|宝宝|哥哥?|` +
		`姐姐?|弟弟?|妹妹?|妈妈?|爸爸?|父亲|母亲|` +
		`[表堂][弟妹哥姐]|爷爷|奶奶|外公|外婆|姥姥|姥爷|叔叔|舅舅|阿姨|姑姑|姨妈|侄子|侄女|外甥女?|孙子|孙女|岳父|岳母|公公|婆婆|亲戚|朋友|闺蜜|哥们|兄弟|死党|发小|同学|室友|舍友|同桌|同事|老板|领导|上司|经理|下属|徒弟|` +
		`师傅|搭档|客户|老师|导师|教练|医生|学生|邻居|房东|网友|偶像)`
	petsZH   = `(小|大|新)?(狗狗?|猫咪?|宠物|兔子|仓鼠|鹦鹉|乌龟|金毛|柯基|泰迪|橘猫|布偶)`
	ofMineZH = `(` + peopleZH + `|` + petsZH + `)`
)

var (
	// A third person is named and nothing else is said.
	namingZH = lazyregexp.New(`^(刚才|刚刚|照片里|旁边|对面)?的?(他|她|它|(那|这)(个|位|只|条)?(人|女生|男生|女孩|男孩|姑娘|小伙子?|家伙|孩子)?)的?(名字|全名|大名|小名|本名|外号)?(就|` +
		`也)?(叫|名叫|叫做|姓)[^，,。我你您什么]{1,12}$`)
	// Then it is said who that is to the speaker.
	whoseZH   = lazyregexp.New(`^((他|她|它|这|那)(就|也|正)?)?(是|当)我们?(家|家里)?(的)?(一个|一位|唯一的?)?` + ofMineZH)
	relatedZH = lazyregexp.New(`^[^我]{1,14}(是|当)我们?(家|家里)?(的)?(一个|一位|唯一的?)?` + peopleZH)
	// 我弟弟, and no more: "小明，我弟弟，在上海读书".
	appositionZH = lazyregexp.New(`^我们?(家|家里)?(的)?` + ofMineZH + `$`)
	bareNameZH   = lazyregexp.New(`^[^我你您他她它这那什么谁]{2,4}$|^[A-Za-z]{2,12}$`)
	// 我有个妹妹, 我认识一位老师 introduce a person; 养了一只猫 an animal.
	bringsZH    = lazyregexp.New(bringZH + peopleZH + bringEndZH)
	bringsPetZH = lazyregexp.New(bringZH + petsZH + bringEndZH)
	// humanZH begins what is not said of an animal.
	humanZH = lazyregexp.New(`^(也|还|现在|目前|平时)?(住|在|来自|毕业|老家|单身|已婚|未婚)`)

	// 我妹妹在读大学: a relative or friend is the subject.
	ofSpeakerZH = lazyregexp.New(`^我们?(家|家里)?的?` + peopleZH)
	// describesZH begins a clause without a subject that describes a person.
	describesZH = lazyregexp.New(`^(也|还|现在|目前|平时|今年|最|很|特别|非常|比较|从小|一直|都)*(叫|姓|住|来自|[0-9一二三四五六七八九十两]+岁|属[鼠牛虎兔龙蛇马羊猴鸡狗猪]|在[^，]{1,12}(工作|` +
		`上班|上学|读书|读研|教书)|毕业于|老家|不?(喜欢|讨厌|爱吃|爱喝|爱看|爱听|吃素)|养了|对[^，]{1,12}过敏|单身|已婚|是(个|一个|一名|一位|学|做|搞))`)

	// A name is one to three capitalised words.
	namingEN = lazyregexp.New(`^` + namesEN + ` (` + nameWordsEN + `)$`)
	properEN = lazyregexp.New(`^` + nameWordsEN + `$`)
	whoseEN  = lazyregexp.New(`^(and )?(he|she|it|that|this|who)('s| is) ((also|actually) )?(my|our|one of my|an?|the)\b`)
	ofMineEN = lazyregexp.New(`\b(my|our|mine|ours)\b`)
	// "my sister", and no more.
	appositionEN = lazyregexp.New(`^(my|our)( [a-z'-]+){1,4}$`)
	apposedEN    = lazyregexp.New(`^(?i:my|our)( [a-z-]+){1,3}( ` + nameWordsEN + `)?$`)
	aboutSheEN   = lazyregexp.New(`^(he|she|it)('s| is| works| lives) `)
	// introducedEN is the whole of it in one: "that's Bob, he is my boss", "meet Luna, my cat".
	introducedEN = lazyregexp.New(`^` + namesEN + ` (` + nameWordsEN + `)(?:\s*[,.;!]+\s*(?:(?i:and )?(?i:he|she|it|that|this|` +
		`who)(?:['’]s| is) )?| (?i:and) (?i:he|she|it)(?:['’]s| is) )((?i:also |actually )?(?i:my|our|one of my|an?|the) .*)$`)
)

const (
	bringZH    = `(有|认识|遇到|找到?|交|多|来|生|谈|养|领养|收养|捡)了?(一|两|三|几|好几)?(个|位|名|只|条|群|些)(新|[^，]{0,6}的)?`
	bringEndZH = `(了|叫[^，]{1,8}|，|$)`

	namesEN     = `(?:(?i:that|this|he|she|it|here)(?:['’]s| is)(?: called| named)?|(?i:his|her|its) name(?:['’]s| is)|(?i:meet))`
	nameWordsEN = `\p{Lu}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’-]*){0,2}`
)

// introduces reports whether a clause names a person whose relation the next clause states.
func (r *Rules) introduces(g *grammar, p, next piece, lang string) bool {
	if _, ok := r.byName[SignalRelation]; !ok || p.src == nil || p.runes() > 40 {
		return false
	}
	p = trimEnd(g.stripLead(p))
	if lang == chinese {
		switch {
		case namingZH.MatchString(p.norm):
			return whoseZH.MatchString(trimEnd(g.stripLead(next)).norm)
		case bareNameZH.MatchString(p.norm) && matchEnd(leadTimeZH, p.norm) == 0:
			return appositionZH.MatchString(trimEnd(next).norm)
		}
		return false
	}
	named, proper, she := namingEN.MatchString(p.raw), properEN.MatchString(p.raw) && p.raw != "I", aboutSheEN.MatchString(p.norm)
	if !named && !proper && !she || r.self(p, lang) {
		return false
	}
	next = trimEnd(g.stripLead(next))
	related, apposed := r.relates(next)
	apposed = apposed && appositionEN.MatchString(next.norm)
	return related && (apposed || named && whoseEN.MatchString(next.norm) && ofMineEN.MatchString(next.norm) || she && !proper &&
		apposedEN.MatchString(next.raw))
}

// relates reports whether a word of relation is in a clause, and whether one stands at its end.
func (r *Rules) relates(p piece) (is, last bool) {
	for _, h := range r.index.find(p) {
		if h.tag == r.byName[SignalRelation] {
			is, last = true, last || h.end == len(p.norm)
		}
	}
	return is, last
}

// before is the clause just before c: in this message, or at the end of the message before.
func (h *heard) before(c piece) piece {
	switch {
	case h.last.src == nil, h.last.src != c.src && h.last.src.index != c.src.index-1:
		return piece{}
	case h.last.src != c.src && strings.Trim(c.src.raw[:c.start]+h.last.src.raw[h.last.end:], betweenClauses) != "",
		h.last.src == c.src && (h.last.end > c.start || strings.Trim(c.src.raw[h.last.end:c.start], betweenClauses) != ""):
		return piece{}
	}
	return h.last
}

// betweenClauses is what stands between two clauses that belong together.
const betweenClauses = " \t\r\n.。!！,，;；~～…"

// introduce puts the clause with a person's name at the beginning of a unit.
func (h *heard) introduce(u *unit, name piece) {
	if name.src != u.pieces[0].src {
		u.intro, u.messages = name, []int{name.src.index, u.pieces[0].src.index}
		return
	}
	if n := len(h.units); n > 0 && h.units[n-1].pieces[0].start == name.start && !h.units[n-1].explicit {
		h.units = h.units[:n-1]
	}
	u.pieces[0] = name.src.piece(name.start, u.pieces[0].end)
}

// describes reports whether a sentence without a subject continues about the person of the previous unit.
func describes(g *grammar, last *unit, p piece, lang string) bool {
	if lang != chinese || last.explicit || p.has("我", "本人", "咱", "俺") || !describesZH.MatchString(g.stripLead(p).norm) {
		return false
	}
	end, first := last.pieces[len(last.pieces)-1], g.stripLead(last.pieces[0]).norm
	return end.src == p.src && end.end <= p.start && strings.Trim(p.src.raw[end.end:p.start], betweenClauses) == "" &&
		(bringsZH.MatchString(first) || ofSpeakerZH.MatchString(first) || relatedZH.MatchString(first))
}

// introduced is the first piece of a unit after the name of its person.
func (u *unit) introduced() piece {
	if u.intro.src == nil {
		return u.pieces[0]
	}
	comma := ", "
	if u.lang == chinese {
		comma = "，"
	}
	src := newSource(u.pieces[0].src.index, trimEnd(u.intro).raw+comma+u.pieces[0].raw)
	return src.piece(0, len(src.raw))
}

// named puts the name where the pronoun stands: "that's Bob, he is my boss" is "Bob is my boss".
func named(p piece) piece {
	m := introducedEN.FindStringSubmatch(p.raw)
	if len(m) < 3 || !ofMineEN.MatchString(strings.ToLower(m[2])) {
		return p
	}
	src := newSource(p.src.index, m[1]+" is "+m[2])
	return src.piece(0, len(src.raw))
}

// trimEnd is a piece without the punctuation at its end.
func trimEnd(p piece) piece {
	n := len(strings.TrimRight(p.norm, " ,.!;，。！；～~…"))
	return p.src.piece(p.start, p.start+n)
}
