package rules

import (
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// class is the function of a clause. Only statements and treatments become memories on their own.
type class int

const (
	statement    class = iota
	treatment          // how the bot is to treat the speaker from now on
	smallTalk          // greetings, thanks, acknowledgements, talk about the talk, where one is going this minute
	promise            // to follow advice
	announcement       // that something will be said, without what
	question           // to the bot
	command            // a one-off task for the bot
	hypothetical       // what is not so
	hearsay            // what others say about the world
)

// String names the class in the reasons that people read.
func (c class) String() string {
	return [...]string{
		"statements", "requests", "small talk", "promises to follow advice", "announcements", "questions",
		"commands to the bot", "hypotheticals", "hearsay",
	}[c]
}

// grammar are the phrase lists of one language that class clauses; they are fixed, unlike the signals.
type grammar struct {
	lead       *index // said before the matter itself: "by the way", "其实"
	leadPaused *index // the same, when punctuation follows: "no, …", "好，…"
	filler     *index // a clause that is nothing else
	command    *index // begins a one-off task
	momentary  *index // what is over within the hour
	neutral    *index
	weakSelf   *index
	strongSelf *index
	lasting    *index // makes a mood or pain more than a moment's
	brief      *index // makes it a moment's
	speech     *index // verbs of saying and thinking
	asOf       *index // begins a subordinate clause that belongs to the next one
}

func chineseGrammar() *grammar {
	fields := func(s string) *index { return indexOf(strings.Fields(s)...) }
	return &grammar{
		lead: fields(`嗯 哈 呵呵 嘿嘿 嘻嘻 其实 对了 话说 说起来 说到这个 顺便说一下 顺便说一句 顺便说 顺便提一下 顺便一提 说实话 老实说 讲真的 讲真 说真的 不瞒你说 实不相瞒 我告诉你 告诉你 我跟你说 跟你说 我想跟你说 我和你说 ` +
			`我跟你讲 跟你讲 你知道吗 你知道
			你好 您好 早上好 上午好 中午好 下午好 晚上好 大家好 谢谢你 谢谢您 谢谢 哎呀 哎 唉 哦 噢 诶 欸 哇 嗨 哈喽 哈啰 另外 比如说 比如 例如 还有就是 补充一下 补充一点 反正 总之 是这样的 而且 并且 然后 所以 因此 因为 由于 既然 ` +
			`毕竟 虽然 可是 但是 但 只是 不过 那么 hello hi hey ok okay btw lol emmm emm actually well 呃 额 唔`),
		leadPaused: fields(`好 好的 好吧 好呀 对 对的 对啊 对呀 是 是的 是啊 行 可以 没错 没有 不是 不 不用了 啊 那个 这个 还有 主要是 那 当然 确实 同样 也是 明白 明白了 知道了 了解 懂了 太好了 真的 真的吗 也对 ` +
			`有道理 原来如此 今天天气真好 补充 早 亲 老师 助手 朋友 我的朋友 亲爱的 亲爱的朋友`),
		filler: fields(`你好 您好 你好啊 嗨 哈喽 早 早安 早上好 上午好 中午好 下午好 晚上好 晚安 再见 拜拜 谢谢 谢谢你 谢谢您 多谢 感谢 非常感谢 谢谢你的建议 谢谢你的帮助 好的 好 好吧 好呀 好滴 好哒 嗯 嗯嗯 嗯好 哦 噢 对 ` +
			`是 是的 对的 没错 行 行吧 可以 可以的 ok okay 哈 哈哈 哈哈哈 哈哈哈哈 呵呵 嘿嘿 嘻嘻
			明白 明白了 知道了 懂了 收到 了解 原来如此 真的吗 真的假的 不是吧 太好了 太棒了 真棒 不错 挺好 挺好的 厉害 牛 没事 没关系 不客气 不用谢 辛苦了 在吗 在么 在不在 你在吗 先这样 就这样 这样啊 加油 天哪 天啊 我去 我的天 唉 哎 ` +
			`啊 呜呜 确实 当然 当然了 有道理 说得对 你说得对 同意 我同意 算了 随便 都行 都可以 继续 我知道了 我明白了 我懂了 我会试试 我会试试的 我试试 我试试看 我去试试 那我试试 我会考虑 我考虑考虑 我再想想 听起来不错 听上去不错 好主意 ` +
			`不知道 我不知道 无聊 好无聊 好累 好困 好饿 好烦 开心 难过 hi hello hey thanks thx`),
		command: fields(`帮我 帮忙 帮一下 给我写 给我讲 给我推荐 给我介绍 给我列 给我解释 给我翻译 给我一 给我来 给我说 给我看 给我出 给我算 给我查 给我编 给我画 给我唱 替我 教我 教教我 告诉我 推荐 写一 写首 写个 写篇 翻译 ` +
			`讲个 讲一 讲讲 说个 说一 说说 画一 画个 生成 总结 概括 解释 介绍一 介绍下 列出 列举 查一 查查 搜一 搜索 搜 算一 算算 计算 继续写 继续说 继续讲 再来 来一 来个 来首 换一 换个 再写 再说 再给 再讲 看看这 看看下 分析 ` +
			`比较一 比较下 修改 优化 润色 改写 校对 续写 扩写 缩写
			你能 你可以 你可不可以 你能不能 能不能 能否 可不可以 可以帮 可以给 可以告诉 可否 我想让你 我想请你 我要你 我需要你 我想知道 我想问 我想了解 我想请教 我想咨询 请问 请教 请帮 请给 请写 请翻译 请告诉 请解释 请介绍 请推荐 请总结 ` +
			`请你 请将 请把 请根据 请用 请列 请分析 请问 请生成 麻烦你 麻烦帮 扮演 假装 假设你 你来 你帮 你给 你说说 你讲 把下面 把这 将下面 将以下 根据 用python 提醒我 叫醒我 陪我聊 陪我玩 跟我聊 和我聊 玩个 猜猜 猜一 你猜 问你 ` +
			`问一下 问个 想问 想请教 想知道 求推荐 求 唱首 唱一 我们来玩 我们玩 我们聊 我们来 咱们聊 咱们来 让我们 聊聊 打开 播放 关闭 停止 调用 执行 运行 不要说 别说 闭嘴 你别 你不要 你应该 你要 你得 你先 你再 想听 我想听 我要听 ` +
			`评价一 评价下 给这`),
		momentary: fields(`我去吃饭 我去睡 我要睡 我睡觉 我先 去吃饭了 吃饭去 我去洗澡 我去洗 我要上班了 我去上班 我在吃饭 我吃饭 我饿 我困 我到家了 我下班了 我放学 我要走 我走了 我出门了 我去开会了 我去忙 我有点饿 ` +
			`我有点困 我好饿 我好困 我好累 我累了 我好无聊 我无聊 有点无聊 我去上课了 我去上厕所 我回来 我醒了 我起床了 我刚睡醒 刚睡醒 刚起床 刚下班 心情不好 心情不错 心情很好 心情好 心情糟 好开心 很开心 好难过 很难过 好烦 好累 ` +
			`好困 想哭 想睡觉 笑死 我吃了饭 吃了饭 吃完饭了 吃过了 在吃饭 今天天气 天气真好 天气不错 天好热 天气好 下雨了 好热啊 好冷啊 肚子饿 饿了 困了 饿死 累死 困死 热死 冷死 我要去睡 去睡了 睡觉了 晚安`),
		neutral:    indexOf(neutralZH...),
		weakSelf:   indexOf(weakSelfZH...),
		strongSelf: indexOf(strongSelfZH...),
		lasting:    fields(`一直 长期 总是 老是 经常 每天 每晚 每次 很久 好久 几年 几个月 多年 从小 慢性 最近 近来 近期 这几天 这段时间 这阵子 有时 常常 年了 个月了 周了 天天 反复 连续`),
		brief:      fields(`今天 现在 刚才 此刻 有点 今晚 这会儿 好 太`),
		speech:     fields(`说 认为 觉得 表示 宣布 声称 报道 据说 听说 传闻 写道 主张 提到 告诉`),
		asOf:       fields(`因为 由于 虽然 自从 既然 尽管 为了 作为 除了 关于 当 每当 只要 只有 无论 不管 随着 通过 等 比起 相比 相较于 与其`),
	}
}

func englishGrammar() *grammar {
	list := func(s string) *index { return indexOf(lines(s)...) }
	return &grammar{
		lead: list(`well, so, oh, hey, hi, hey there, hi there, hello there, haha, hahaha, hehe, lol, lmao, btw, by the way, ` +
			`actually, ok, okay, ok so, anyway, anyways, also, and, but, yeah, yep, yup, you know, honestly, to be honest, tbh, fyi, ` +
			`just so you know, for your information, as i said, like i said, as i told you, i told you that, i told you, i just wanted ` +
			`to say, i wanted to tell you that, i wanted to tell you, i should mention that, i should mention, i forgot to mention, let ` +
			`me tell you, did i mention, guess what, hmm, hm, um, uh, ugh, ah, wow, oh no, oh and, because, cuz, although, speaking of ` +
			`which, in fact, plus, besides, i mean, the thing is, good morning, good evening, good afternoon, just to let you know, ` +
			`please know that, i must admit, i have to admit, i would say, funnily enough, as for me, personally, basically, fun fact, ` +
			`for example, for instance, like how much, like how, just like how, kind of like how, a bit like how, it is like how, it is ` +
			`a lot like how`),
		leadPaused: list(`no, nope, yes, sure, thanks, thank you, thanks a lot, thank you so much, great, cool, nice, right, sorry, hello,` +
			` then, true, exactly, of course, good, perfect, absolutely, definitely, nah, not really, same, same here, me too, fine, ` +
			`alright, makes sense, good idea, good point, sounds good, sounds great, that is true, that is great, that is cool, got it, ` +
			`i see, in that case, like, man, dude, bro, friend, my friend, dear friend, awesome, nice to meet you, good question, ` +
			`finally, lastly, first, firstly, first of all, secondly, thirdly, next, afterwards`),
		filler: list(`hi, hello, hey, hey there, hi there, hello there, good morning, good evening, good afternoon, good night, bye, ` +
			`goodbye, see you, see you later, see ya, thanks, thank you, thank you so much, thanks a lot, thanks so much, many thanks, ` +
			`thx, ty, ok, okay, k, sure, yes, no, yep, yup, yeah, nope, nah, right, great, cool, nice, awesome, perfect, good, fine, ` +
			`alright, sounds good, sounds great, got it, i see, makes sense, good idea, good point, haha, hahaha, lol, lmao, wow, oh, ` +
			`hmm, of course, absolutely, exactly, true, indeed, me too, same, same here, no problem, no worries, never mind, nevermind, ` +
			`you are welcome, how are you, what is up, that is great, that is cool, that is nice, that is true, interesting, that is ` +
			`interesting, i agree, i understand, i know, nice to meet you, i will try that, i will try it, i will give it a try, i will ` +
			`give that a try, i will check it out, i will think about it, i will do that, will do, you are right, you are great, you are ` +
			`the best, i love it, i like it, i like that, i love that, i would love to, i would like that, i would love that, i would ` +
			`like to, friend, my friend, my dear friend, i am bored, i am tired, i am good, i am fine, i am hungry, i am back, i am here,` +
			` please, forget it, whatever, go on, continue, ready, test, testing`),
		command: list(`tell, write, give, show, explain, help, translate, summarize, summarise, list, find me, make me, make a, make ` +
			`it, create, generate, recommend, suggest, describe, compare, draft, rewrite, rephrase, paraphrase, proofread, fix, check, ` +
			`search, look up, calculate, compute, convert, continue, play, sing, draw, imagine, pretend, act as, act like, let us, let ` +
			`me know, please, can you, could you, would you, will you, can i, could i, may i, can we, i want you to, i need you to, i ` +
			`would like you to, i would like to know, i want to know, i need to know, i am wondering, i was wondering, i wonder, i would ` +
			`appreciate, i need help, i need some help, i need your help, i need a recipe, i need ideas, i need some ideas, i need ` +
			`advice, i need some advice, i need tips, i need suggestions, i need some suggestions, i need a recommendation, i need ` +
			`recommendations, i need an idea, i am looking for a recipe, i am looking for a book, i am looking for recommendations, i am ` +
			`looking for suggestions, i am looking for ideas, i am looking for advice, i am looking for some, i am looking for tips, i ` +
			`would like a recipe, i would like some, i want a recipe, i want a shorter, i want a longer, i want a different, i want ` +
			`another, i want a version, i would like option, i would like a different, i would like another, i would like a shorter, i ` +
			`would like a longer, i want some advice, give me, send, remind me, wake me, set a, set an, turn on, turn off, open, stop, ` +
			`start over, repeat, say, spell, define, solve, read this, analyze, analyse, review, edit, correct, improve, shorten, expand,` +
			` format, outline, brainstorm, plan a, plan me, design, quiz, teach, guess, ask me, choose a, pick a, rate, name a, name ` +
			`some, name three, name five, keep going, try again, do it, do that, do not tell, do not say, do not worry, go ahead, use ` +
			`the, use this, add a, add the, remove, delete, cheer me up, surprise me, entertain me, walk me through, any tips, any ideas,` +
			` any advice, any recommendations, any suggestions, question, quick question, i have a question, i have a quick question, ` +
			`got a question, you should, you must, you can, you need to, you have to`),
		momentary: list(`i am going to bed, i am going to sleep, going to bed, i have to go, i have got to go, i need to go, i should go,` +
			` i am leaving now, i am heading out, i am about to leave, i am at work right now, i am eating, i am having lunch, i am ` +
			`having dinner, i am having breakfast, i am so tired, i am tired, i am so bored, i am bored, i am hungry, i am so hungry, i ` +
			`am starving, i am sleepy, i am so sleepy, i am sad, i am so sad, i am feeling sad, i am so happy, i am happy today, i am ` +
			`feeling down, i feel sad, i feel tired, i feel bored, i feel down, i feel good, i feel great, i feel better, i am excited, ` +
			`i am so excited, i am in a bad mood, i am in a good mood, i just woke up, just woke up, i am awake, i am home now, i am ` +
			`just chilling, i will be back, i am off to bed, talk to you later, i am not feeling great today, i am having a bad day, i ` +
			`am having a good day, i had a bad day, i had a long day, i had a rough day, it is raining, it is hot today, it is cold ` +
			`today, nice weather`),
		neutral:    indexOf(neutralEN...),
		weakSelf:   indexOf(weakSelfEN...),
		strongSelf: indexOf(strongSelfEN...),
		lasting: list(`for months, for years, for weeks, since, always, every day, every night, constantly, chronic, often, lately, ` +
			`keep, keeps, for a long time, all the time, never, months, years, recently`),
		brief: list(`today, right now, at the moment, just now, a bit, a little, tonight, this morning, so, very, now`),
		speech: list(`says, said, thinks, thought, told, tells, believes, claims, claimed, argues, argued, stated, according to, ` +
			`reported, reportedly`),
		asOf: list(`because, since, although, though, while, when, whenever, after, before, as, given that, now that, even though, ` +
			`being, unlike, like, besides, on, in, at, last, next, this, yesterday, tomorrow, every, for, during, over, by, with, ` +
			`despite, apart from, growing up, recently, lately, currently, these days, nowadays, once, until, from, during, one day, ` +
			`someday, two, three, a few, years, as soon as, to be honest, usually, sometimes`),
	}
}

var (
	hypotheticalZH = lazyregexp.New(`^(要是|如果|假如|假设|倘若|假使|万一|若是|想象一下|要不是|设想|假定)|就好了$|的话$`)
	questionEndZH  = lazyregexp.New(`(吗|么|嘛|呢|吧)[？?!！。~～\s]*$`)
	questionWordZH = lazyregexp.New(`什么|怎么|怎样|如何|哪|谁|多少|几点|几岁|几个|几号|为什么|为啥|咋|啥|是不是|能不能|有没有|可不可以|要不要|会不会|行不行|好不好|对不对|是否|多久|多大|多远|多长|何时`)
	// Question words that ask nothing: "什么都吃", "没什么爱好", "不怎么喝酒", "好几个".
	indefiniteZH = lazyregexp.New(`(没|没有|不知道|忘了|无论|不管|不|不太|想不起)(什么|怎么|怎样|谁|哪|多少|啥)|(什么|谁|哪[里儿]?|怎么|啥|多少)[^，,]{0,6}(都|也)|(思考|考虑|犹豫|纠结|` +
		`琢磨|在想)[^，,]*|好几|不知道[^，,]*|多少(有点|有些)|什么的`)
	treatZH = lazyregexp.New(`^(请|麻烦|希望|你|您|可以|就|直接|那|以后|今后|往后|从现在起|从现在开始|从今以后|每次|请你|都|也|跟我|和我|对我|回答|回复|说话|聊天|的时候|时|，|,|能不能|` +
		`能否)*(叫我|称呼我|喊我|别叫我|不要叫我|用[^，]{1,6}(回答|回复|跟我|和我|说|聊|交流|写)|说(中文|英文|英语|粤语)|讲(中文|英文|粤语)|(别|不要|不用|少用|多用|尽量|简短|简洁|记得|先|都|每次|一直)[^，,` +
		`]*(我|说|讲|回答|回复|叫|称呼|用|推荐|提醒|问|聊|写|发|表情|简短|简洁|中文|英文|英语|粤语|详细|直接))`)
	// 每次都有人要我做给他们吃, 每次和你聊天都很开心: what is so each time. Of a request the bot is the subject, never the object.
	toldOfZH   = lazyregexp.New(`^(每次|一直|都|总是|总)+(有|没|是|我|他|她|它|在|会|能|想|觉得|感|很|得|被)|^(每次|一直)[^，,]*(和|跟|与|找|陪|听|向|让|给|看到|想到)(你|您)`)
	standingZH = lazyregexp.New(`以后|今后|往后|从现在|从今|每次|一直|永远|总是|都要|别再|不要再|不用再|叫我|称呼我|喊我|中文|英文|英语|粤语|尽量|简短|简洁|表情|回答|回复`)
	reactionZH = lazyregexp.New(`^我?(也|很|超|真|好|太|非常|挺|特别|真的)*(喜欢|爱|讨厌)(你|它|你的.{0,6}|这个|那个|(这|那)(个|首|篇|段|种|句)?(主意|建议|想法|回答|故事|诗|歌|笑话|` +
		`答案|方案|名字|点子|推荐|解释|说法|话|比喻))(了|啊|呀|哈|！|!|。|～|~)*$`)
	plannedZH = lazyregexp.New(`^(我|咱|俺)`)
	treatEN   = lazyregexp.New(`^(please |you can |you could |you may |just |from now on,? |in the future,? |going forward,? |next ` +
		`time,? |whenever you [a-z ]+, |when you (answer|reply|respond|talk|speak|write)[a-z ]*, )*(call me|refer to me|address me|` +
		`(always|never) (be|answer|reply|respond|speak|talk|write|use|call|address|start|begin|end|include|give|tell|ask|keep|say|add|` +
		`explain|show|greet|translate|cite|mention|assume|refer|remind|check|send|make|put|sign|provide|format|suggest|recommend|` +
		`interrupt|swear|apologi[sz]e|share|bring)\b|don't |do not |stop |only |be |keep |use |answer|reply|respond|speak|talk|write|` +
		`avoid )`)
	standingEN = lazyregexp.New(`\b(from now on|in the future|going forward|next time|always|never|call me|refer to me as|address me|` +
		`whenever you|every time|stop (calling|using|saying|asking)|(answer|reply|respond|speak|talk|write)( to me)? in [a-z]+|your ` +
		`(answers|replies|responses|messages)|(don't|do not) (call me|use|ever)|when you (answer|reply|respond|talk))\b`)
)

// stripLead drops introductory words.
func (g *grammar) stripLead(p piece) piece {
	for range 8 { // more fillers than this is no sentence
		if n := g.lead.prefix(p); n > 0 && !g.bound(p, n) {
			p = p.from(n)
			continue
		}
		n := g.leadPaused.prefix(p)
		if n == 0 || n >= len(p.norm) || !pauses(p.norm[n:]) {
			return p
		}
		p = p.from(n)
	}
	return p
}

// pauses reports whether a text begins with punctuation, or with a space after a Chinese word.
func pauses(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	next, _ := utf8.DecodeRuneInString(s[n:])
	return strings.ContainsRune(",，、。.!！~～:：;；…", r) || r == ' ' && cjk(next)
}

// bound reports whether a filler is in truth a part of the matter: "不过敏", "因为…所以…", "but for".
func (g *grammar) bound(p piece, n int) bool {
	lead, rest := p.norm[:n], p.norm[n:]
	switch lead {
	case "不过":
		return strings.HasPrefix(rest, "敏")
	case "但":
		return strings.HasPrefix(rest, "丁") || strings.HasPrefix(rest, "愿")
	case "因为", "由于", "既然":
		return strings.Contains(rest, "所以") || strings.Contains(rest, "就")
	case "虽然":
		return strings.Contains(rest, "但") || strings.Contains(rest, "可是") || strings.Contains(rest, "不过")
	case "because", "although":
		return strings.Contains(rest, ",")
	case "i told you":
		return len(p.words) < 4 || !set1(p.words[3].norm, "i", "my", "we")
	case "额":
		return strings.HasPrefix(rest, "外") || strings.HasPrefix(rest, "头")
	case "哈":
		return strings.HasPrefix(rest, "尔滨") || strings.HasPrefix(rest, "士奇") || strings.HasPrefix(rest, "佛") || strings.HasPrefix(rest, "利")
	case "so":
		return len(p.words) > 1 && set1(p.words[1].norm, "many", "much", "far")
	case "besides", "plus", "like": // "Besides tea, I like …"
		return !pauses(rest) && len(p.words) > 1 && !set1(p.words[1].norm, "i", "we", "my", "our", "the", "he", "she", "they", "it", "that")
	case "and", "but", "also", "hi":
		return len(p.words) < 2
	}
	return false
}

// classify determines the class of a clause; asked is true for the last clause before a question mark.
func (g *grammar) classify(p piece, lang string, asked bool) class {
	body := g.stripLead(p)
	if body.empty() || g.filler.whole(body) || g.filler.whole(p) {
		if asked && g.filler.prefix(body) == 0 {
			return question
		}
		return smallTalk
	}
	if lang == chinese {
		return g.classifyZH(body, asked)
	}
	return g.classifyEN(body, asked)
}

func (g *grammar) classifyZH(p piece, asked bool) class {
	selfFirst := plannedZH.MatchString(p.norm) && g.strongest(p)
	switch {
	case hypotheticalZH.MatchString(strings.TrimRight(p.norm, "，。,. ！!")):
		return hypothetical
	case !plannedZH.MatchString(p.norm) && treatZH.MatchString(p.norm) && standingZH.MatchString(p.norm) && !toldOfZH.MatchString(p.norm) &&
		!p.has("吗") && !p.has("这个问题", "这道题", "下面", "以下", "这段", "这首", "这篇", "介绍", "翻译", "解释", "写一", "写个"):
		return treatment
	case reactionZH.MatchString(p.norm):
		return smallTalk
	case g.momentary.prefix(p) > 0 && !p.has("明天", "下周", "每天", "一直") || p.runes() < 16 && g.mood(p):
		return smallTalk
	case g.command.prefix(p) > 0 && !p.has("是我", "我是"):
		return command
	case g.command.prefix(skipTimeZH(p)) > 0 && !selfFirst:
		return command
	}
	if c, ok := g.aside(p, chinese); ok {
		if asked {
			return question
		}
		return c
	}
	switch {
	case asked:
		return question
	case questionEndZH.MatchString(p.norm) && (p.has("吗") || p.has("你") && questionWordZH.MatchString(p.norm)) && !strings.HasSuffix(p.norm, "什么"):
		return question
	case questionWordZH.MatchString(indefiniteZH.ReplaceAllString(strings.ReplaceAll(p.norm, "有没有", "是否有"), "")) &&
		(p.has("你") || !selfFirst || strings.HasPrefix(p.norm, "我应该") || strings.HasPrefix(p.norm, "我该")):
		return question
	case hearsayZH(g, p):
		return hearsay
	}
	return statement
}

// mood reports whether a short clause tells a mood of the moment.
func (g *grammar) mood(p piece) bool {
	for _, h := range g.momentary.find(p) {
		if h.start > 0 {
			_, lasts := g.lasting.any(p)
			return !lasts
		}
	}
	return false
}

// strongest reports whether a weak phrase is not what the clause begins with.
func (g *grammar) strongest(p piece) bool {
	return g.weakSelf.prefix(p) == 0 || g.strongSelf.prefix(p) > 0
}

// hearsayZH reports whether another person says something without the speaker in it.
func hearsayZH(g *grammar, p piece) bool {
	if strings.HasPrefix(p.norm, "据") || strings.HasPrefix(p.norm, "听说") || strings.HasPrefix(p.norm, "新闻") ||
		strings.HasPrefix(p.norm, "有人") || strings.HasPrefix(p.norm, "网上") || strings.HasPrefix(p.norm, "大家都") || strings.HasPrefix(p.norm, "我听说") {
		return !p.from(len("我")).has("我")
	}
	for _, h := range g.speech.find(p) {
		before, after := p.norm[:h.start], p.norm[h.end:]
		if h.start == 0 || strings.HasSuffix(before, "我") || strings.Contains(after, "我") || strings.HasSuffix(before, "小") ||
			strings.HasSuffix(before, "听") || strings.HasSuffix(before, "来") {
			continue
		}
		if strings.HasSuffix(before, "我也") || strings.HasSuffix(before, "我一直") || strings.HasSuffix(before, "会") ||
			strings.HasPrefix(after, "话") || strings.HasPrefix(after, "服") || strings.HasPrefix(after, "好") || strings.HasPrefix(after, "明") {
			continue
		}
		return true
	}
	return false
}

func (g *grammar) classifyEN(p piece, asked bool) class {
	first, second := p.word(0), p.word(1)
	switch {
	case first == "if" || first == "imagine" || first == "suppose" || first == "unless" || first == "assuming" || first == "hypothetically",
		first == "i" && second == "wish" && p.word(2) != "to", first == "were" && second == "i",
		p.hasWord("would", "could") && p.hasWord("if") && !p.hasWord("mind"):
		return hypothetical
	case !asked && treatEN.MatchString(p.norm) && standingEN.MatchString(p.norm),
		!asked && first == "i" && p.hasWord("you") && standingEN.MatchString(p.norm) && p.hasWord("want", "prefer", "like"):
		return treatment
	case g.momentary.prefix(p) > 0:
		if _, lasts := g.lasting.any(p); !lasts && !hasTime(p) {
			return smallTalk
		}
	}
	if g.command.prefix(p) > 0 {
		return command
	}
	if c, ok := g.aside(p, english); ok && !asked {
		return c
	}
	switch {
	case asked, questionStart(p.words) && first != "when" && first != "what" || set1(first, "what") &&
		set1(second, "is", "are", "do", "should", "can", "about"):
		return question
	case hearsayEN(g, p):
		return hearsay
	}
	return statement
}

// hearsayEN reports whether another person says something without the speaker in it.
func hearsayEN(g *grammar, p piece) bool {
	if set1(p.word(0), "apparently", "reportedly", "allegedly") {
		return !p.hasWord("i", "my", "me")
	}
	for _, h := range g.speech.find(p) {
		self := false
		previous := ""
		for _, w := range p.words {
			if w.start < h.start {
				previous = w.norm
			} else if w.start >= h.end && set1(w.norm, "i", "my", "me", "we", "our", "us") {
				self = true
			}
		}
		if !self && h.start > 0 && previous != "i" && previous != "we" && previous != "have" && previous != "'s" {
			return true
		}
		if h.start == 0 && h.phrase == "according to" {
			return true
		}
	}
	return false
}
