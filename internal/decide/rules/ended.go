package rules

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Cancelled, postponed and unneeded things are worth remembering even if a clause has little content; otherwise the memory of them would
// stay valid.

var (
	// cancelsEN and cancelsZH ask the bot to call off something of the speaker's.
	cancelsEN = lazyregexp.New(`^(please |can you |could you |would you |will you |you can |so |also |now |just |then |go ahead and ` +
		`)*(cancel|call off) ((my|our)\b|(the|this|that) [^,.;!?]*\b(appointment|meeting|reservation|booking|membership|subscription|` +
		`trip|flight|interview|call|event|party|dinner|lunch|class|lesson|session|reminder|plan|delivery)s?\b)`)
	cancelsZH = lazyregexp.New(`^(请|麻烦你?|帮我|那|就|再|也|给我)*((把|将).{1,20}取消(掉)?(吧|了)?[。！!～~，, ]*$|取消(掉)?(我的?)?.{0,16}(预约|会议|面试|约会|聚会|聚餐|` +
		`航班|机票|行程|旅行|活动|预订|订单|会员|订阅|提醒|课|体检|会))`)
	// endedEN and endedZH match an arrangement that is cancelled or postponed.
	endedEN = lazyregexp.New(`\b(the|my|our|this|that) [^,.;!?]{2,40}? (is|was|are|were|has been|have been|had to be|got|gets|'s been|` +
		`'s) (just |now |finally |unfortunately )?(cancelled|canceled|called off|postponed|rescheduled)\b`)
	endedZH = lazyregexp.New(`(预约|会议|会|面试|约会|聚会|聚餐|航班|课|考试|旅行|旅游|行程|活动|婚礼|演出|演唱会|比赛|手术|体检|订单|预订|出差|派对|计划|看牙|团建)(又|已经|被|临时|突然|都)*(取消|` +
		`推迟|延期|改期|作罢|泡汤)(掉)?了`)
	// needlessEN and needlessZH tell that something is not needed any more.
	needlessEN = lazyregexp.New(`^i (really |actually |just |now )?((do not|don't|don’t|dont) (need|want) (to buy |to get )?([^,` +
		`.;!?]{2,40}) any ?more|no longer (need|want) (to buy |to get )?([^,.;!?]{2,40}))`)
	needlessZH = lazyregexp.New(`^我(现在|已经|也)*(不需要|不用买|不想要|不买|不要)([^，,。；;！!？?]{1,12})了[。！!～~，, ]*$`)
	// ceasesEN and ceasesZH match an activity that the speaker has stopped; endsZH has the activity first: 冰岛语我不学了.
	ceasesEN = lazyregexp.New(`^(i|we|[a-z]+ and i) (have |had |am |recently |just |finally |also |actually |really |completely |now ` +
		`)*(stopped ([a-z]+ing\b)|quit|gave up|given up|giving up|dropped out of|cut out|lost interest in|pulled out of|withdrew from|` +
		`decided against|called off|no longer [a-z]+|(do|am|can|will|have) not [a-z].* (any ?more|any longer|these days)$) ?(on )?([^,` +
		`.;!?]*)`)
	fellEN = lazyregexp.New(`\b(the|my|our) [^,.;!?]{2,40}? (is|are) off\b( now| again| then)?[.!]?$|\b(fell through|came to ` +
		`nothing|has fallen through)\b|^(scrap|never mind|forget about|ditch) (the|my|our) [^,.;!?]*\b(trip|move|move to|plan|plans|` +
		`holiday|visit|party|appointment|idea|course|lesson|booking|reservation|wedding)\b`)
	settledEN = lazyregexp.New(`^(the|my|our) [^,.;!?]{2,30}? (is|are|has been|have been) (all |now |finally |already )?(booked|paid|` +
		`returned|renewed|submitted|mailed|posted|ordered|repaired|signed|cancelled|registered)[.!]?$`)
	ceasesZH = lazyregexp.New(`^我(现在|已经|最近|后来|终于|也|都|又|就|真的|早就|决定|以后|其实)*((不再|再也不|再也没)[^，,。；;！!？?]{1,14}|(放弃|退出|戒掉|戒了|退掉|停掉|停止|解除)[^，` +
		`,。；;！!？?]{1,14}|(从|离开)[^，,。；;！!？?]{2,12}(辞职|离职|离开|退)?了|(不打算|不准备|不想|不去|不学|不练|不养|不吃|不喝|不抽|不玩|不做|不考|不买|不打|不写|不用|不住)[^，,。；;！!？?]{1,` +
		`12}了|对[^，,。；;！!？?]{1,12}(没有?兴趣|不感兴趣|腻|没感觉|厌倦)了|和[^，,。；;！!？?]{1,8}(分手|离婚|解除婚约|绝交)了)[。！!～~ ]*$`)
	endsZH = lazyregexp.New(`^[^我你您，,。；;！!？?]{2,12}我(已经|现在|再也|也|都|早就|真的)*((不(去|学|练|养|考|买|打|写|做|要|吃|喝|看)|(看|听|玩|吃|喝|读|学)(腻|不进去|不下去)|` +
		`放弃|退)(掉)?)了[。！!～~ ]*$|^[^我你您，,。；;！!？?]{2,12}(不用|不必|不需要)(去)?[^我你您，,。；;！!？?]{1,3}了[。！!～~ ]*$|^(去|搬)?[^我你您，,。；;！!？?]{2,12}(的事|` +
		`的计划)?(黄|泡汤|告吹)了[。！!～~ ]*$|^[^我你您，,。；;！!？?吃饭]{2,10}(订|交|续|办|修|寄|付|还)(好|完|掉)?了[。！!～~ ]*$`)
	// What is not known, felt or said any more is nothing that was known before.
	noDeed = lazyregexp.New(`\b(know|think|understand|remember|care|feel|see|believe|worry|hear|mind|sure|able|talk|bother)\b|^(i|we) ` +
		`(quit|gave up|given up)[.! ]*$`)
	// Help, answers and references are not things that a person keeps.
	noThing = lazyregexp.New(`\b(you|your|help|advice|this|that|it|them|anything|something|answers?|explanations?|suggestions?|` +
		`assistance|information|to know|to talk)\b|你|您|帮|建议|解释|回答|知道|担心|说|问|这|那|什么`)
)

// endWords are words of which every English clause about an end has one.
var endWords = lang.Set(`cancelled canceled called postponed rescheduled more anymore longer stopped quit gave given giving dropped cut lost
	pulled withdrew decided days off through nothing
	scrap never forget ditch booked paid returned renewed submitted mailed posted ordered repaired signed registered`)

// cancels reports whether a command calls off something of the speaker's.
func cancels(p piece, lang string) bool {
	if lang == chinese {
		return cancelsZH.MatchString(p.norm)
	}
	return cancelsEN.MatchString(p.norm)
}

// ended reports whether a clause says that something is cancelled, postponed or unneeded.
func ended(p piece, lang string) bool {
	if lang == chinese {
		if !strings.Contains(p.norm, "了") && !p.has("再也", "不再") {
			return false
		}
		return endedZH.MatchString(p.norm) ||
			(needlessZH.MatchString(p.norm) || ceasesZH.MatchString(p.norm) || endsZH.MatchString(p.norm)) && !noThing.MatchString(p.norm)
	}
	if !slices.ContainsFunc(p.words, func(w word) bool { return endWords[w.norm] }) {
		return false
	}
	if endedEN.MatchString(p.norm) || needlessEN.MatchString(p.norm) && !noThing.MatchString(p.norm) || settledEN.MatchString(p.norm) {
		return true
	}
	open := p.open()
	return (ceasesEN.MatchString(open) || fellEN.MatchString(p.norm)) && !noThing.MatchString(open) && !noDeed.MatchString(open)
}
