package rules

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// What people say around the matter, in closed classes of words and constructions that any grammar lists: talk about the
// conversation itself, promises to follow advice, announcements that something will be said, remarks about the bot, leave
// taking. None of it is worth keeping, though it names the speaker and holds words of signals.

// aside classifies a clause that is only an aside; ok is false for other clauses.
func (g *grammar) aside(p piece, lang string) (class, bool) {
	if lang == chinese {
		return aroundZH(p)
	}
	return aroundEN(p)
}

var (
	// "I was hoping you could …": a wish with the bot as subject.
	botWishEN = lazyregexp.New(`^(i|we) (would |am |was |were |are |have been )?(really |just |also |only |kind of )?(hope|hoping|` +
		`hoped|want|wanted|like|love|need|needed|wish|wished|expect|prefer|appreciate|wonder|wondering|wondered|asking|counting on|` +
		`thinking)( it)?( if| that| for| maybe| perhaps)*( to)? you\b`)
	// "I enjoyed our chat", "I'd love to discuss this more", "I wanted to ask you something".
	talkEN = lazyregexp.New(`\b(our|this|the|another|your|(yesterday|today|last time) 's) ([a-z]+ )?(chat|conversation|conversations|` +
		`discussion|chats|little talk)\b|\b(chat|chatting|chatted|talk|talking|talked|speak|speaking|spoke|discuss|discussing|converse|` +
		`share|sharing)( about| of)?( [a-z]+){0,4} (with you|to you|you|again|sometime|soon|more|further|for a bit|later)\b|\bto (chat|` +
		`talk|ask|discuss)$|\b(stay|keep|remain|be|get) in touch$|\b(stay|keep) in touch and (chat|talk|share)\b|\b(ask|tell) you\b|` +
		`\blearn(ed|t)?( so| quite)? (a lot|much|something)( new)?( today| from you| from this)?$|\b(hear|know|see|learn) (more|your|` +
		`what you|how you|about your)\b`)
	// A relative or friend takes part: "I'd love to talk to my boss again".
	ownTalkEN = lazyregexp.New(`\b(my|his|her|their) |\b(with|to) (him|her|them)\b`)
	// "my" without a person: "chatting with you has lifted my mood".
	inwardEN = lazyregexp.New(`\bmy ((very )?first time|turn|pleasure|stress|mood|mind|day|spirits?|worries|feelings?|heart|thoughts|` +
		`confidence|energy|anxiety|emotions)\b`)
	// The talk is the subject.
	talkActsEN = lazyregexp.New(`\b(chatting|talking|speaking|sharing|conversations?|chats?|talks?) with you( [a-z]+ly| always| ` +
		`just)? (has|have|had|is|was|feels?|felt|makes?|made|helps?|helped|gives?|gave|brings?|brought|relieve[sd]|calms?|cheers?)\b`)
	othersEN = lazyregexp.New(`\b(to|with) (my|his|her|their|him|them)\b`)
	leaveEN  = lazyregexp.New(`\b(have|need|has|got|gotta|should|must|better|going|ought)( to)?( probably| really| get| be)?( to)? ` +
		`(run|go|going|leave|head out|head off|heading out|sign off|log off|be off|get back to work|get back to it|get started|wrap up|` +
		`call it a day|call it a night)( on that| to it| now| soon| for now| then)*$`)
	// "I'll keep that in mind": a will to comply, with nothing of its own.
	promiseEN = lazyregexp.New(`^(then )?(i|we) (think |guess )?(i )?(will|would|might|may|shall|should|promise to)( [a-z]+ly| also| ` +
		`just| try to| try and| be sure to| make sure to| have to| start to)* (try|give (it|that|this|them|those|these|your|all)|check|` +
		`look (into|for|up|at)|consider|keep|bear|remember to|make sure|be sure|follow|take (your|that|it|this|these|those|note)|pay( ` +
		`more)? attention|think about|do (my best|that|so|it)|put (it|that|this|these)|practice (it|that|more)|see (how|if|what|about)|` +
		`let you know|go with|work on (it|that|this)|apply (it|that|these|those|your)|adjust|be careful|be more|continue to|keep up|use ` +
		`(it|that|this|these|those|your))\b`)
	// "That's all I wanted": the end of the matter.
	closeEN = lazyregexp.New(`\b(that is|that will be|that was) (all|it|everything)\b|\bbe in touch\b|\bstep away\b`)
	// "I enjoyed hearing your thoughts": thanks in other words.
	courtesyEN = lazyregexp.New(`\b(enjoy|love|like|appreciate|hope|hoping|want|look forward|thank)[a-z]*\b.*\b(your (thoughts|` +
		`thinking|insight|insights|perspective|perspectives|help|assistance|ideas|explanation|explanations|answer|answers|suggestion|` +
		`suggestions|tips|advice|input|company|time|support|kindness)|with you|from you)\b|\b(use|appreciate|need|want|like|get) (your|` +
		`some of your) (help|assistance|advice|input|opinion|thoughts)\b`)
	thanksEN = lazyregexp.New(`^(and |so |well )*i (am|feel|was)( so| very| really| truly| quite| also| just)* (grateful|thankful|` +
		`glad|happy|lucky|honou?red|pleased)( and [a-z]+)? (to (you|have you|have met you|meet you|know you)|for (you|your|all your|all ` +
		`you|everything you))\b`)
	// "You always help me": praise of the bot.
	praiseEN = lazyregexp.New(`^you( [a-z]+ly| always| really| have| are| just)* (help|helped|helping|cheer|cheered|listen|listened|` +
		`understand|support|supported|comfort|make me|made me|give me|gave me)\b`)
	// "I'd like to change some details": what the bot is to be told next.
	editEN = lazyregexp.New(`\b(like|want|wanted|need|needed|looking|trying) to (add|change|update|remove|delete|edit|modify|` +
		`organi[sz]e|structure|share|provide) (some|a few|several|certain|more|the)? ?(new |additional |other )?(information|detail|` +
		`details|data|things|items|content|entries|it|them|changes)\b`)
	// "I enjoy learning about these": it points at what the bot said.
	pointingEN = lazyregexp.New(`\b(enjoy|enjoying|enjoyed|like|love|loved|interested|learning|fascinated|intrigued|exploring|` +
		`thinking|focus|reading)\b.*\b(these|those|them|this|that)( topics?| things?| areas?| subjects?| ideas?| facts?| questions?| ` +
		`concepts?)?$`)
	// "I'm in the office now": where one is this minute. "As well as keeping at it": a part of a sentence that is not there.
	hereEN = lazyregexp.New(`^i am( still| just| currently| sitting| standing| waiting)? (in|at|on) (the|a|my) ([a-z]+ )?(office|` +
		`kitchen|bed|bedroom|bathroom|garden|bus|train|tram|metro|subway|plane|car|taxi|park|gym|library|shop|store|supermarket|cafe|` +
		`restaurant|bar|queue|line|meeting|class|lobby|street|station|airport|balcony|couch|sofa|desk) (right )?now\b`)
	leftoverEN = lazyregexp.New(`^(as well as|in addition to|rather than|instead of|along with) [a-z]+ing\b`)
	// "I'd like to talk about my reading": the topic, and nothing about it yet.
	// Moods of the moment: "I'm really tired today".
	moodEN = lazyregexp.New(`^(today |right now |now )?i (am|feel|am feeling|was) (so |very |really |a bit |a little |quite |pretty |` +
		`kind of |just |extremely |too |also )*(tired|sad|happy|bored|hungry|sleepy|exhausted|excited|down|good|great|fine|okay|awful|` +
		`terrible|angry|annoyed|upset|nervous|anxious|relaxed|better)( today| now| right now| tonight| this morning)?$`)
	// "Now I'm going to practice": what one is off to this minute.
	offEN   = lazyregexp.New(`^(now i am|i am now) (just )?(going to|about to|off to) ([a-z]+)`)
	topicEN = lazyregexp.New(`\b(want|wanted|like|love|going|here|wish|need)( to)? (talk|chat|discuss|share|speak)( with you| to ` +
		`you)?( about| some| something| a| my| the)\b`)
	// "I want to find some movies": something unnamed, wanted for this moment.
	unnamedEN = lazyregexp.New(`^i (am |would |will |just |also |really )*(want|wanted|like|need|looking|trying|going|plan|planning|` +
		`hoping)( to| for)?( go)?( find| watch| read| buy| try| do| choose| play| eat| listen to| hear| see| get| pick)? (some|a|an|` +
		`something|any|another)( new| good| fun| nice| interesting| great| different| other| outdoor| indoor| light)*( movie| movies| ` +
		`film| films| book| books| music| song| songs| game| games| activity| activities| food| place| places| thing| things| show| ` +
		`shows| story| stories| recipe| recipes)?( to [a-z]+)?( now| today| tonight| this evening| with)?$`)
	friendEN = lazyregexp.New(`\b(you as (a |my )([a-z]+ )?|(can|could|we|be|become|you are|you are such) (become |be )?(a |my ` +
		`)?(good |great |best |real |true )?)friends?\b`)
	withKinEN = lazyregexp.New(`\b(with|to) (my|his|her|the|our) `)
)

// Words without which a pattern need not be tried.
const (
	cuePerson = 1 << iota // somebody of the conversation
	cueYou
	cueFriend
	cueTalk
	cueTo
	cuePoint
	cueEnd
)

var cuesEN = func() map[string]int {
	out := map[string]int{}
	for cue, words := range map[int]string{
		cuePerson: "i we me my us our you your myself",
		cueYou:    "you your",
		cueFriend: "friend friends",
		cueTalk: `chat chatting chatted chats conversation conversations discussion talk talking talked speak speaking spoke discuss ` +
			`discussing converse share sharing ask tell
			learn learned learnt hear know see`,
		cueTo:    "to",
		cuePoint: "these those them this that",
		cueEnd:   "run go going leave head heading sign log be get wrap call back started all it everything touch away",
	} {
		for w := range strings.FieldsSeq(words) {
			out[w] |= cue
		}
	}
	return out
}()

func aroundEN(p piece) (class, bool) {
	cues := 0
	for _, w := range p.words {
		cues |= cuesEN[w.norm]
	}
	has := func(cue int, pattern *lazyregexp.Regexp, open string) bool {
		return cues&cue != 0 && pattern.MatchString(open)
	}
	if cues&(cuePerson|cueTalk) == 0 {
		return statement, false
	}
	open := p.open()
	switch {
	case p.word(0) == "you" && (!p.hasWord("i", "my", "me") || praiseEN.MatchString(open)),
		has(cueFriend, friendEN, open) && !withKinEN.MatchString(open):
		return smallTalk, true
	case has(cueYou, botWishEN, open):
		return command, true
	case emptyEN(p):
		return announcement, true
	case has(cueTo, editEN, open), cues&cueTalk != 0 && has(cueTo, topicEN, open) && !othersEN.MatchString(open):
		return announcement, true
	case unnamedEN.MatchString(open):
		return command, true
	case has(cueEnd, leaveEN, open), has(cueEnd, closeEN, open), has(cueTo, offEN, open) && !definite(p), moodEN.MatchString(open),
		has(cueYou, courtesyEN, open) && !definite(p), has(cueYou, thanksEN, open),
		has(cuePoint, pointingEN, open) && !definite(p) && !p.hasWord("my"):
		return smallTalk, true
	case hereEN.MatchString(open) && detail(p, english) == "", leftoverEN.MatchString(open) && !p.hasWord("i", "we"):
		return smallTalk, true
	case passingEN(p), has(cueTalk, learnedEN, open) && !definite(p):
		return smallTalk, true
	case has(cueTalk, talkEN, open) && (talkActsEN.MatchString(open) || !toldEN(open)) &&
		!ownTalkEN.MatchString(inwardEN.ReplaceAllString(talkEN.ReplaceAllString(open, ""), "")):
		return smallTalk, true
	case (promiseEN.MatchString(open) || resolves(p)) && !definite(p):
		return promise, true
	}
	return statement, false
}

// toldEN reports whether what one wants to tell follows in the same clause: "I wanted to tell you I'm pregnant".
func toldEN(open string) bool {
	at := talkEN.FindStringIndex(open)
	rest := open[at[1]:]
	return tellsEN.MatchString(rest) && !youEN.MatchString(rest) // "… and I'm glad to meet you"
}

var tellsEN = lazyregexp.New(`\b(i|is|are|was|am|has|have|'s)\b`)

// lastingFuture are verbs of which "will" tells a fact to come, not a resolution of this moment.
var lastingFuture = lang.Set("be have get move start marry graduate turn become retire miss never always not need own lose inherit travel " +
	"visit leave join attend meet host give")

// kinEN matches relatives and friends of the speaker.
var kinEN = lazyregexp.New(`\b(my|our) ([a-z]+ )?(wife|husband|partner|girlfriend|boyfriend|mom|mum|mother|dad|father|parents|son|` +
	`sons|daughter|daughters|kids?|child|children|baby|brothers?|sisters?|grandma|grandpa|grandmother|grandfather|uncle|aunt|cousins?|` +
	`family|friends?|boss|colleagues?|team|dog|cat)\b`)

// resolves reports whether a clause is a spontaneous resolution. "going to" and "plan" express earlier intentions, "will" a decision of
// the moment; it is kept if it names a time, a person or an owner.
func resolves(p piece) bool {
	i := 0
	for set1(p.word(i), "so", "then", "and", "that") {
		i++
	}
	if p.word(i) != "i" || p.word(i+1) != "will" || kinEN.MatchString(p.norm) {
		return false
	}
	for i += 2; adverbs[p.word(i)] || strings.HasSuffix(p.word(i), "ly"); i++ {
		continue
	}
	return p.word(i) != "" && !lastingFuture[p.word(i)] && detail(p, english) == ""
}

// Empty words of English, and nouns that announce without content.
var (
	emptyWordsEN = lang.Set(`i we you have had has having got get need want would like am was were is are be been there 's a an the some any
		few little small big
		another other certain real bit of kind sort something things thing to ask talk discuss share tell say about with your today lately
		recently now again and but
		so do did not know how what solve deal fix handle it this that for me us on could use can will going came across run ran into facing
		face faced encountered encounter met
		meeting help assist assistance hoping hope wondering new good interesting important please just really also very quite here come
		seek seeking looking minor major one two
		came come up found find thought think
		update change remove add delete edit make`)
	emptyNounsEN = lang.Set(`problem problems question questions issue issues trouble troubles difficulty difficulties something things
		thing matter matters help advice favor favour request
		requests solution solutions news story stories topic topics details detail information info assistance suggestion suggestions tip
		tips idea ideas changes change`)
)

// emptyEN reports whether a clause announces a matter without a word about it: "I have a small problem".
func emptyEN(p piece) bool {
	noun := false
	for _, w := range p.words {
		noun = noun || emptyNounsEN[w.norm]
		if !emptyWordsEN[w.norm] && !emptyNounsEN[w.norm] {
			return false
		}
	}
	return noun
}

// definite reports whether a clause names when, how much, or a title, so that a promise becomes a plan.
func definite(p piece) bool {
	return hasTime(p) || strings.ContainsRune(p.norm, masked) || strings.ContainsAny(p.norm, "0123456789")
}

var (
	talkZH = lazyregexp.New(`(和|跟|与|同|找|陪|向|请)(你|您)(一起|来|再|多|好好|随便)*(聊|谈|交流|说|讲|对话|分享|沟通|认识|再见|倾诉|探讨|讨论|请教|咨询|问|见面)|(问|请教|咨询|` +
		`告诉)(一下)?(你|您)|(聊天|对话|交流|谈话)(很|真|非常|真的|特别)*(愉快|开心|高兴|有趣)|(今天|这次|我们)的(聊天|对话|谈话|交流)|^(我|我们|咱们)?(今天|现在|也|还|就|来|可以|以后)*(想|要|想要|来|` +
		`可以)(来)?(聊聊|聊一聊|谈谈|说说|探讨|讨论|分享)|(下次|改天|明天|回头)(再|见|继续)(聊|面|谈)?|再见$|来和?聊聊`)
	// The bot is the subject, or is to be a friend.
	aboutBotZH = lazyregexp.New(`^(你|您)(们)?(也|真|真的|就|一直|总|总是|永远|已经|可|实在|简直|确实|还|是不是|的)*(是|像|让|给|能|会|对|帮|太|好|很|总|建议|话|陪伴|回答|声音|支持|帮助|` +
		`理解|推荐|聪明|厉害|懂)|(你|您|希望|我们|咱们|一起).{0,10}(成为|当|做|是|像)(我|你|您)?(的)?(一个|一位)?(最)?(好)?(的)?(朋友|伙伴|伴侣|知己|闺蜜|家人)(一样)?(了|吧|啊|呀|呢)?[。！!，,` +
		`]?$|(有|能有|认识|遇到|遇见)(你|您)`)
	botFriendZH = lazyregexp.New(`(你|您)(能)?(作为|当|做|是|成为)了?我(最)?(好)?(的)?(最)?(好)?(的)?(朋友|伙伴|伴侣|知己)`)
	// "我们是大学时的朋友" is about another person.
	othersZH  = lazyregexp.New(`他|她|认识.{0,4}年|大学|高中|小学|从小`)
	promiseZH = lazyregexp.New(`^(我|咱)(们)?(现在|以后|今后|接下来|回去|回头|下次|晚点|等下|那|就|这就|也|还|一定|肯定|再|先|尽快|尽量|真的|确实)*(会|将会|将|可以|去|来|试着|` +
		`一定要)(\p{Han}{2}地?)?(再|也|去|先|就|好好|认真|努力|尽量|尽力|一定|慢慢|仔细|积极|继续|试着|照着|有空|开始|地)*(试|尝试|考虑|参考|听从|听取|听你|听您|按照|按|照|遵守|遵照|遵循|采纳|采用|注意|留意|` +
		`关注|坚持|加油|珍惜|保持|改进|改善|改正|调整|实践|践行|实行|执行|看看|看一看|看一下|查一查|查看|查找|查查|搜|找找|找来|寻找|了解|努力|尽力|做到|做好|行动|思考|想想|想一想|反思|记住|放松|相信|面对|克服|加强|提高|` +
		`提升|运用|应用|利用|多\p{Han})|^我(打算|准备|要|想)(去)?(试试|试一试|试一下|尝试一下|考虑一下|看看|看一看|了解一下)[。！!，,～~]*$`)
	ownPlaceZH = lazyregexp.New(`我(妈|爸|老婆|老公|儿子|女儿|女朋友|男朋友|家|的(朋友|同事|老板|家人|父母|孩子))`)
	// Nothing is left of an announcement when its frame is taken away.
	frameZH = lazyregexp.New(`^(我|们|今天|最近|现在|刚才|刚刚|刚|昨天|这几天|又|还|也|有|遇到|碰到|遇见|出现|面临|面对|发生|了|着|个|一个|一些|些|一点|点|几个|一件|件|这|那|小|大|很|非常|比较|难|` +
		`新|棘手|严重|重要|有趣|奇怪|特别|的|问题|疑问|疑惑|麻烦|困难|困扰|困惑|烦恼|难题|难事|事情|事儿|事|情况|话题|想法|建议|帮助|请求|想|要|需要|希望|能|得|来|请|找|让|你|您|帮忙|帮|请教|咨询|求助|问|告诉|说|聊|` +
		`讨论|谈|分享|听|一下|下|聊聊|说说|问问|和|跟|与|向|关于|方面|怎么|如何|办|解决|处理|不|知道|该|才|好|助手|老师|方法|办法|已经|想好|想到|找到|有了|啊|呀|呢|吧|，|,| )+[。.！!？?～~]*$`)
	topicZH = lazyregexp.New(`问题|方法|办法|疑问|疑惑|麻烦|困难|困扰|困惑|烦恼|难题|事|情况|话题|想法|建议|帮助|请求`)
	// "我想找一些电影看": something unnamed, wanted for this moment.
	// "我现在要去准备晚餐了": what one is off to this minute.
	offZH     = lazyregexp.New(`^(那|好了|现在|我|得|该|先|要|就)*(现在|得|该|先)(要|得|该|就|我)*(去|走|睡|忙|准备|回|上|吃|洗).{0,10}了[。！!～~，,]*$`)
	unnamedZH = lazyregexp.New(`^(我|今天|最近|现在|晚上|周末|也|还|就)*(想|想要|要|在|打算|准备)(找|看|听|读|买|玩|吃|做|去)(一)?(些|点|点儿|部|本|首|个|款|下|场|几部|几本|几首)(好|新|` +
		`有趣|有意思|好看|好听|好玩|好吃|轻松|不错|经典|其他|别)?(的)?(电影|影片|电视剧|剧|书|书籍|小说|音乐|歌|歌曲|游戏|运动|活动|美食|菜|餐厅|地方|东西|事情|事|节目|视频)(来)?(观看|看看|看|听听|听|读读|读|玩玩|` +
		`玩|做做|做|吃|放松)?(一下)?[，。,！!]?$`)
	deicticZH = lazyregexp.New(`^(这|那)(些|样|种)?(也|都|就|确实|正|真的|的确)*(让|给|对|听|很|太|真|非常|可以|能|会)|^(这|那)(些|样|种|个)?(也|都|就|确实|正|真)*是(我(很|最|也|` +
		`都|一直)*(喜欢|想|需要|感兴趣)|很|个|非常|一个|好)`)
	botNamesZH = lazyregexp.New(`^(ai)?(朋友|伴侣|伙伴|ai|老师|亲爱的)+[，,！!。～~ ]*$`)
)

// toldZH reports whether what one wants to tell follows in the same clause: "我想告诉你我怀孕了".
func toldZH(p piece) bool {
	at := talkZH.FindStringIndex(p.norm)
	if at == nil {
		return false
	}
	rest := strings.ReplaceAll(p.norm[at[1]:], "我的", "")
	return strings.Contains(rest, "我")
}

func aroundZH(p piece) (class, bool) {
	if !strings.ContainsAny(p.norm, "我你您咱俺聊谈") {
		return statement, false
	}
	switch {
	case botFriendZH.MatchString(p.norm):
		return smallTalk, true
	case aboutBotZH.MatchString(p.norm) && !othersZH.MatchString(p.norm) && !ownPlaceZH.MatchString(p.norm), botNamesZH.MatchString(p.norm):
		return smallTalk, true
	case p.runes() < 60 && frameZH.MatchString(p.norm) && topicZH.MatchString(p.norm):
		return announcement, true
	case offZH.MatchString(p.norm) && !definite(p):
		return smallTalk, true
	case unnamedZH.MatchString(p.norm):
		return command, true
	case strings.ContainsAny(p.norm, "你您聊谈说讨再") && talkZH.MatchString(p.norm) && !toldZH(p) && !strings.ContainsRune(p.norm, masked):
		return smallTalk, true
	case passingZH.MatchString(p.norm) && passedZH.MatchString(p.norm):
		return smallTalk, true
	case promiseZH.MatchString(p.norm) && !definite(p) && !ownPlaceZH.MatchString(p.norm):
		return promise, true
	case deicticZH.MatchString(p.norm) && !definite(p) && !p.has("生日", "年纪", "我家", "我们家", "我妈", "我爸", "我的工作"):
		return smallTalk, true // "这些都是我喜欢的活动" tells nothing without what it points at
	}
	return statement, false
}
