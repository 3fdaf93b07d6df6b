package rules

import "regexp"

// What is called off, put off or not needed any more is worth knowing although it holds little: else what was known of it
// would go on to hold.

var (
	// cancelsEN and cancelsZH ask the bot to call off something of the speaker's.
	cancelsEN = regexp.MustCompile(`^(please |can you |could you |would you |will you |you can |so |also |now |just |then |go ahead and )*(cancel|call off) ((my|our)\b|(the|this|that) [^,.;!?]*\b(appointment|meeting|reservation|booking|membership|subscription|trip|flight|interview|call|event|party|dinner|lunch|class|lesson|session|reminder|plan|delivery)s?\b)`)
	cancelsZH = regexp.MustCompile(`^(请|麻烦你?|帮我|那|就|再|也|给我)*((把|将).{1,20}取消(掉)?(吧|了)?[。！!～~，, ]*$|取消(掉)?(我的?)?.{0,16}(预约|会议|面试|约会|聚会|聚餐|航班|机票|行程|旅行|活动|预订|订单|会员|订阅|提醒|课|体检|会))`)
	// endedEN and endedZH tell that an arrangement is called off or put off.
	endedEN = regexp.MustCompile(`\b(the|my|our|this|that) [^,.;!?]{2,40}? (is|was|are|were|has been|have been|had to be|got|gets|'s been|'s) (just |now |finally |unfortunately )?(cancelled|canceled|called off|postponed|rescheduled)\b`)
	endedZH = regexp.MustCompile(`(预约|会议|会|面试|约会|聚会|聚餐|航班|课|考试|旅行|旅游|行程|活动|婚礼|演出|演唱会|比赛|手术|体检|订单|预订|出差|派对|计划|看牙|团建)(又|已经|被|临时|突然|都)*(取消|推迟|延期|改期|作罢|泡汤)(掉)?了`)
	// needlessEN and needlessZH tell that something is not needed any more.
	needlessEN = regexp.MustCompile(`^i (really |actually |just |now )?((do not|don't|don’t|dont) (need|want) (to buy |to get )?([^,.;!?]{2,40}) any ?more|no longer (need|want) (to buy |to get )?([^,.;!?]{2,40}))`)
	needlessZH = regexp.MustCompile(`^我(现在|已经|也)*(不需要|不用买|不想要|不买|不要)([^，,。；;！!？?]{1,12})了[。！!～~，, ]*$`)
	// Help, answers and what is only pointed at are no things that somebody keeps.
	noThing = regexp.MustCompile(`\b(you|your|help|advice|this|that|it|them|anything|something|answers?|explanations?|suggestions?|assistance|information|to know|to talk)\b|你|您|帮|建议|解释|回答|知道|担心|说|问|这|那|什么`)
)

// cancels reports whether a command calls off something of the speaker's.
func cancels(p piece, lang string) bool {
	if lang == chinese {
		return cancelsZH.MatchString(p.norm)
	}
	return cancelsEN.MatchString(p.norm)
}

// ended reports whether a clause tells that something is called off, put off or not needed any more.
func ended(p piece, lang string) bool {
	if lang == chinese {
		return endedZH.MatchString(p.norm) || needlessZH.MatchString(p.norm) && !noThing.MatchString(p.norm)
	}
	return endedEN.MatchString(p.norm) || needlessEN.MatchString(p.norm) && !noThing.MatchString(p.norm)
}
