package audit

import "github.com/memsidecar/memsidecar/internal/lang/lazyregexp"

// blockMarks occur in the block that Retrieve makes for the bot's prompt.
var blockMarks = []string{
	"【关于用户的记忆", "【用户记忆", "不作为事实依据", "【Memories of the user", "【End of the memories", "not a source of facts",
}

var (
	// quotation matches the words before a quotation.
	quotation = lazyregexp.New(`^(?i:the user (once )?(said|says|wrote|replied|answered)|用户(曾经|曾)?(说|表示|回答|回复|写道))\s*[：:,，]?\s*["“「]`)
	// subject matches the start of a statement or a clause.
	subject = lazyregexp.New(`^(?i:((today|yesterday|now|recently|actually),? )?the user('s)?\b|(今天|昨天|现在|最近|刚才|其实|所以|那)?用户)\s*`)
	// name matches a clause that may be only a person's name.
	name = lazyregexp.New(`^(\p{Latin}+|\p{Han}{1,3})$`)
	// contrast joins two clauses, of which the second may matter.
	contrast = lazyregexp.New(`(?i:,? (but|because|although|however) )|但是|不过|可是|因为`)
	// repeated matches the start of statements in the third person.
	repeated = lazyregexp.New(`^[-•*\s\d.\[\]]*(?i:the user('s)? |用户(的|喜欢|住|是|在|有|说|想|会|对|叫))`)
	// interjection matches a sound or an answer without content.
	interjection = lazyregexp.New(`\b(ok|okay|o+h|ah+|haha(ha)*|hehe|lol|lmao|hm+|um+|uh+|wow|yes|yeah|yep|yup|no|nope|nah|sure` +
		`|right|alright|cool|nice|great|awesome|perfect|exactly|indeed|well|hi|hey|hello|bye|please|says?|said)\b`)
	// answer matches a Chinese clause without other content.
	answer = lazyregexp.New(`^([嗯哈嘻嘿呵哦噢喔啊呀哎唉呃额诶咦哇耶啦吧了的]|好|行|可以|没错|对|是|不是|知道|明白|了解|收到|不错|说|表示|真|确实|当然|也许|大概|没有?)+$`)
	// asking matches a question without a question mark, or an indirect question.
	asking = lazyregexp.New(`^(ask(s|ed) (how|what|where|when|why|who|whom|which|whether|if|about|for|the (assistant|bot)` +
		`|a question)|is asking|wonders|wondered|is wondering|wants to know|inquires|inquired|requests? (information|advice|help|an? )` +
		`|(what|who|whom|whose|where|when|why|how|which|can you|could you|would you|will you|do you|did you|are you|is there|is it) )` +
		`|^(询问|问了?|想问|请问|想知道|想了解|咨询|请教|好奇)|(吗|什么|多少|怎么样|怎么办|哪里|哪儿|谁)$`)
	// courtesy matches thanks, greetings, wishes and praise.
	courtesy = lazyregexp.New(`^(thanks|thank you|thanked|thx|many thanks|much appreciated|i appreciate|appreciates (the|your)` +
		`|express(es|ed) (gratitude|thanks|appreciation)|you'?re welcome|no problem|no worries|sorry|i'?m sorry|my apologies` +
		`|apologi[sz]e[sd]?|good (morning|evening|afternoon|night|bye)|goodbye|see you|talk (to you )?(soon|later)|take care` +
		`|sounds? (good|great|nice|fun|perfect|delicious|lovely|like a plan)|that (sounds|would be|is|'s|was) (so |very ` +
		`|really )?(good|great|nice|helpful|perfect|awesome|wonderful|lovely|amazing)|(says?|said) (hi|hello|hey|good ?bye|bye)|greets` +
		`|greeted|i (totally |completely )?(agree|understand|see)|i got it|got it|makes sense|good (idea|point)|great (idea|suggestion` +
		`|advice)|nice to meet you|how kind|welcome back)\b` +
		`|^(非常|十分|太|真的?|真是|多)?(谢谢|感谢|多谢|谢啦|辛苦了|麻烦你|不好意思|抱歉|对不起|没关系|不客气|没事)|^(向(助手|你))?(道谢|道别|问好|打招呼|致谢|告别|表示(感谢|感激|谢意|同意|理解|知道))|^(早安` +
		`|早上好|上午好|中午好|下午好|晚上好|晚安|你好|您好|大家好|再见|拜拜|回头见|下次见|明天见)|^(听起来|听上去|看起来)(真|很|挺|非常|不错|好)|^(太好了|太棒了|真棒|好主意|说得对|有道理|我(完全)?(同意|理解|明白|懂了))`)
	// promise matches an announced action in the conversation.
	promise = lazyregexp.New(`^((i|we)('ll| will| shall|'m going to| am going to)( definitely| certainly| surely| also| just)*` +
		`|(will|promises? to|is going to)( definitely)?) (try|give (it|that|this|them)|let you know|keep (it|that|this|you)|check (it` +
		`|that|this|them|out)|look into|think about|consider|be careful|pay (more )?attention|do (it|that|this|so|my best)|be (back` +
		`|right back|in touch)|come back|update you|get back|have a look|take a look|remember (that|this|it)|report back|see what)` +
		`|^will do\b|^(let me|i'd love to|can't wait to) (try|check|see|think)( (it|that|this|them|out))*$` +
		`|^(我)?(一定|也|就|真的)*会(努力|尽力|尽量|认真|好好|慢慢|再|去|也|多)*(尝试|试着|考虑|琢磨|努力|尽力|尽量|改变|注意|小心|按照|听从)` +
		`|^(我|那我|会|我会|一定会)?(去|先|一定|好好|马上|这就|回头|下次|再|会|来)*(试试|试一下|试一试|看看|看一下|想想|想一想|考虑一下|考虑考虑|努力|加油|尽力|告诉你|跟你说|联系你|再来|记住的?)(吧|的|看|哦|啦)*$`)
	// botSays matches words of the bot.
	botSays = lazyregexp.New(`^(the )?(assistant|ai|bot|chatbot)( (has|have|also|really))? (says?|said|hopes?|hoped|wishe[sd]` +
		`|suggests?|suggested|recommends?|recommended|offers?|offered|advises?|advised|asks?|asked|thinks?|thanked|explained|is (happy` +
		`|glad|sorry))\b` +
		`|^((i|we) (really )?)?hope (you|it|this|that|everything)\b|^(wishing you|wish you|i wish you)|^(please )?(let me know` +
		`|feel free|don't hesitate|enjoy (your|the|it)|have (a|an) (great|nice|good|lovely|wonderful|safe|amazing))\b|^(good luck` +
		`|glad to (hear|help)|happy to help|i'm (glad|happy) (to (hear|help)|you)|i'm here (to help|for you|if you)|congrat` +
		`|is there anything else|if you (need|have|want) (any|more|help|further))` +
		`|^(助手|机器人|小助手|ai)(也|还|曾|会|就)?(说|希望|建议|推荐|表示|祝|提醒|认为|觉得|提供|询问|问)|^(我)?(衷心|真心)?(希望|祝愿?|愿)(你|您)|^(如果|要是|有)(你|您)?(还)?(有|需要|任何` +
		`|什么)*(问题|需要|帮助)|^(请)?随时|^(很|非常)?(高兴|乐意|开心)(能)?(为|帮|听到|见到|认识)|^(加油|恭喜|祝贺)`)
	// aboutTalk matches a statement about the conversation itself.
	aboutTalk = lazyregexp.New(`^((today|now|actually|just|so|and) )*(i |we )?((would|'d) (like|love) to |want(s|ed)? to ` +
		`|came? to |am here to |is here to |likes? to |enjoys? |loves? )?(talk|chat|talking|chatting|speak|discuss|consult|share` +
		`|sharing|ask)( [a-z']+){0,4} (to|with|for)? ?(you|the assistant|assistant)\b` +
		`|(your|the assistant's|our|yesterday's|today's|this) (chat|conversation|advice|suggestions?|reply|words|help)\b.* (helped|was|were|is|are) ` +
		`|^(今天|现在|其实|就是|还)*(我)?(很|也|还|又)*(想|要|来|喜欢|希望|愿意)(再|能|来|去|多)*(和|跟|向|找|同|请|问)(你|您|助手)(好好)?(聊|谈|说|请教|分享|交流|倾诉|咨询|问)` +
		`|(对话|聊天|建议|回答|回复)(真的|确实|也|都|很|给)*(帮|有用|有帮助|有启发)`)
	// pointing matches a statement about something that only the conversation names.
	pointing = lazyregexp.New(`^(i |really |also |just |still |already |would |will |does not |doesn't |did not |don't |has ` +
		`|have )*(likes?|loves?|loved|liked|wants?|needs?|prefers?|hates?|thinks?|thought|knows?|knew|did|does|do|said|says?|tried|try` +
		`|bought|got|read|saw|seen|understands?|agrees? with|remembers?|means?) (it|this|that|them|so|one|those|these|both|the same` +
		`|this one|that one)( too| also| a lot| so much| very much| again| already| then)*$` +
		`|^(我|也|还|很|非常|真的?|特别|挺|都|就|已经|不|没|想|要|会)*(喜欢|想要|需要|知道|觉得|要|买|试过?|看过?|去过?|做|用过?|记得|同意|选|明白|听过?)(了)?(这个|那个|它|它们|这|那|这样|那样|这些|那些|一下|一样|这么做|那么做)?(了|的|吧|过)*$`)
)
