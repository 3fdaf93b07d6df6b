package rules

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// "I feel lost", "I hope to find something interesting", 我想让自己变得更好: the signals are there, but each word could be said by
// anybody of anything. What tells that is not one construction but that every word is of a closed class (pronouns, auxiliaries,
// prepositions, adverbs), a verb of doing, feeling or thinking in general, a shell noun ("thing", "problem", "experience"), or an
// adjective of praise or mood. One word of content more, and it is about something.

// thinEN are such words; "~" stands for all forms of a verb.
var thinEN = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(thinWordsEN) {
		if verb, ok := strings.CutSuffix(w, "~"); ok {
			for _, form := range verbForms(verb) {
				out[form] = true
			}
			continue
		}
		out[w] = true
	}
	return out
}()

const thinWordsEN = `
i we you me us it its itself he she they them him his her their my our your myself yourself ourselves mine ours yours oneself one ones ` +
	`someone somebody anyone anybody
everyone everybody nobody something anything everything nothing this that these those there here who what which where when why how whether whose
a an the some any no every each all both either neither another other others such same own else more most much many few several little less ` +
	`least enough lot lots bit couple
am is are was were be been being do does did doing done have has had having will would shall should can could may might must need~ ought ` +
	`used not never
and or but so because if than then as while though although since until unless yet both nor also too just only even still already again ` +
	`always often sometimes usually ever almost
of in on at to for from with without by about into onto over under through between during before after against around up down out off away ` +
	`back along together across toward towards within
today tonight weekend now yesterday morning afternoon evening night hour hours minute minutes day days week weeks time times favorite ` +
	`favourite favorites favourites moment moments while recent recently lately soon later future past life lives world first currently
very really quite pretty so too totally completely truly actually definitely certainly probably maybe perhaps especially particularly simply ` +
	`mostly mainly absolutely incredibly extremely fully deeply better best well badly hard
's yes oh
go~ come~ get~ make~ take~ try~ want~ hope~ wish~ like~ love~ enjoy~ feel~ think~ know~ understand~ believe~ find~ found see~ look~ seem~ ` +
	`learn~ improve~ become~ change~ keep~ start~ begin~ stop~
continue~ happen~ help~ let~ mean~ say~ tell~ talk~ hear~ experience~ relax~ rest~ appreciate~ face~ overcome~ handle~ deal~ solve~ achieve~ ` +
	`choose~ decide~ plan~ prepare~ grow~ gain~ give~ use~ put~ bring~ turn~
share~ show~ sound~ fill~ reduce~ relieve~ ease~ allow~ inspire~ challenge~ recharge~ unwind~ slow~ remain~ stay~  expect~ worry~ realize~ ` +
	`realise~ notice~ figure~ manage~ express~ explore~ discover~ reflect~ focus~ succeed~ fail~ miss~ cause~ affect~ spend~ pass~ look ` +
	`forward leave~ consider~ care~ deserve~ imagine~ wait~ add~ follow~ accept~ set~
watch~ read~ listen~ meet~ visit~ encounter~ receive~ live~ study~ practice~ practise~ pursue~
thing things way ways people person others stuff part parts kind kinds sort type types side place places spot point points case
feeling feelings emotion emotions mood moods mind heart spirit spirits self soul state situation situations condition problem problems issue ` +
	`issues question questions matter matters challenge challenges
difficulty difficulties trouble troubles obstacle obstacles mistake mistakes goal goals plan plans dream dreams idea ideas thought thoughts ` +
	`opportunity opportunities chance chances possibility possibilities direction directions
meaning value values purpose progress ability abilities skill skills knowledge information experience experiences story stories scenery air ` +
	`note reflections reflection view views atmosphere activity activities fun excitement happiness joy energy confidence
courage strength motivation inspiration creativity effort efforts success failure result results benefit benefits insight insights ` +
	`perspective perspectives horizon horizons suggestion suggestions advice method methods step steps
movie movies film films show shows book books song songs music game games article articles itinerary
good great nice bad worse worst new newly old different beautiful wonderful amazing interesting fascinating exciting excited happy happier ` +
	`sad tired awesome fantastic excellent lovely important difficult easy easier simple special
sure unsure clear real true whole full able unable possible impossible lost confused confusing nervous calm useful helpful valuable ` +
	`meaningful positive negative fresh comfortable uncomfortable enjoyable pleasant unpleasant
challenging beneficial relaxing rewarding refreshing thoughtful newest touching moving inspiring inspired motivated impressive impressed ` +
	`memorable unforgettable peaceful perfect right wrong okay ok fine proud grateful thankful glad lucky curious eager ready free busy short ` +
	`long big small large high low deep wide open
afraid worried anxious stressed overwhelmed helpless frustrated disappointed embarrassed upset angry lonely empty bored boring down blue ` +
	`strange weird awkward embarrassing released popular famous rich`

// thinZH is a Chinese statement of nothing but such words.
var thinZH = lazyregexp.New(`^(?:` + strings.Join(strings.Fields(`
	我们 我 自己 本人 你们 你 您 他们 大家 别人 他人 有人 没有人 没人 人们 人 一些 一点儿? 一下 一个 一种 一件 一次 一直 一定 一样 一切 一番 一遍 有些 有点儿? 有的 有 没有 没 几个 许多 很多 好多 不少 多 少 每个 各种 某些 某种
	某个 这些 那些 这样 那样 这种 那种 这个 那个 这里 那里 这 那 其他 另外 什么 怎么样? 怎样 如何 哪里 哪些 为什么
	的 地 得 了 着 过 吗 呢 吧 啊 呀 哦 和 与 跟 同 或者?是? 还是 而且 并且 并 但是 但 可是 不过 因为 所以 如果 虽然 即使 既 又 也 都 还 就 才 再 只 却 更加 更 最 很 太 真的是? 真 非常 特别 十分 比较 相当 挺 蛮 好
	超级? 极了 稍微 稍 越来越 越 不太 不够 不再 不 别 总是 总 常常 经常 有时候? 时常 偶尔 其实 确实 可能 也许 或许 应该 必须 大概 似乎 好像 显得 毕竟 只是 就是 不是 是 能够 能 会 可以 要 想要 想 愿意 希望 敢 需要 打算 准备 计划
	决定 努力 尽力 尽量 尝试 试着 试试 试 开始 继续 坚持 保持 停止
	在 从 到 向 对于? 把 被 让 使得? 给 为了? 由于? 以 用 通过 关于 随着 当 里 中 上 下 外 内 前 后 时候? 时 之 所 将 去 来 出来 起来 下去 上去 过来 回来 出去
	今天 今晚 现在 目前 刚才 刚刚 刚 以后 将来 未来 过去 以前 平时 早上 上午 中午 下午 晚上 今年 明天 昨天 后来 然后 终于 马上 立刻 已经 曾经 第一次 接下来 下一次 下次 这次 上次
	做到 做好 做 搞 弄 看到 看 听到 听 说 讲 谈 聊 读 玩 学到 学习 学 找到 寻找 找 得到 获得 拥有 遇到 面对 面临 克服 解决 处理 应对 改善 改变 提升 提高 提振 增强 增加 增进 培养 成长 进步 变得 变成 变 成为 达到 实现 追求 追寻
	选择 考虑 思考 反思 想想 想到 明白 理解 了解 懂得 懂 知道 认识到 认识 意识到 感受到? 感觉到? 感到 觉得 认为 以为 相信 发现 体会到? 体验到? 体验 享受 放松 休息 缓解 减轻 调整 控制 表达 分享 倾诉 交流 沟通 帮助 支持 鼓励 关心
	珍惜 期待 期望 喜欢 喜爱 热爱 爱 讨厌 害怕 怕 担心 值得 适合 充满 带来 打动 触动 吸引 发挥 发展 过 生活 活 参加 尝尝 尝 想念 迫不及待
	开心 高兴 快乐 愉快 幸福 满足 满意 激动 兴奋 感动 感人 难过 伤心 失望 沮丧 焦虑 紧张 不安 孤独 孤单 寂寞 无聊 无助 无奈 迷茫 困惑 疲惫 疲倦 累 困 烦躁 烦恼 烦 压抑 郁闷 低落 失落 生气 尴尬 复杂 奇怪 美好 美丽 美 漂亮 精彩 有趣
	有意思 有意义 好看 好听 好玩 好吃 好笑 深刻 震撼 难忘 舒服 舒适 轻松 平静 冷静 充实 温暖 丰富 丰盛 重要 困难 难 容易 简单 特殊 不同 不错 可爱 精致 优秀 厉害 棒 好 坏 差 大 小 长 短 高 低 远 近 深 浅 新 旧 老 满 强 弱 乐观
	积极 消极 自信 坚强 勇敢 成功 失败 清楚 清晰 明确 合适 足够 力不从心 不知所措 收获 启发 顺利 真正
	事情 事 东西 方面 方式 方法 办法 方向 情况 问题 困境 挑战 障碍 挫折 错误 压力 动力 能力 水平 经验 经历 知识 技能 本领 心情 情绪 感情 情感 感受 感觉 想法 看法 观点 思想 心里 内心 心 精神 状态 生活 人生 世界 社会 目标 梦想 理想
	机会 可能性 意义 价值 过程 结果 效果 好处 部分 地方 风景 景色 美景 景点 景象 气氛 氛围 画面 活动 节目 故事 内容 信息 电影 书籍? 小说 音乐 歌曲? 文章 游戏 时间 时刻 时光 日子 一天 阶段 乐趣 快感 兴趣 信心 勇气 希望 力量 能量
	灵感 缘故 原因 样子 程度 样
	周末 ， , 、 。 ！ ! ～ ~ ； …`), "|") + `| )+$`)

// frequency is all that a habit's words may say for a statement to have nothing in it.
var frequency = lang.Set("sometimes often usually always never rarely normally typically everyday daily 每次 经常 常常 平时 通常 总是 偶尔 很少 坚持 习惯")

// thinRunes is how long a statement may be to be looked at: who says more names something.
const thinRunes = 160

// names reports whether a signal is about something whatever else is said.
func (r *Rules) names(f finding, p piece) bool {
	words := strings.ToLower(strings.Trim(f.words, `"`))
	switch r.signals[f.signal].Name {
	case SignalExperience, SignalTask, SignalOccupation, SignalLastingProblem, SignalEveryday, SignalPlace, SignalAboutUser, SignalDetail:
		return false
	case SignalPlan: // what has to be done at a time
		return duty[words] && hasTime(p)
	case SignalPreference: // "grew out of it": a turn
		return strings.HasPrefix(words, "gr") || strings.HasPrefix(words, "lost")
	case SignalHabit: // "a morning person", 午睡
		return !frequency[words]
	}
	return true
}

var duty = map[string]bool{"need to": true, "have to": true, "must": true, "supposed to": true}

// weighThin keeps statements that name nothing below the threshold. Lasting troubles and signals of health, family or identity are
// exempt.
func (r *Rules) weighThin(u *unit) {
	p := u.pieces[0]
	if u.class != statement || u.explicit || !u.self || !r.passes(u) || p.runes() > thinRunes || strings.ContainsRune(p.norm, masked) {
		return
	}
	if slices.ContainsFunc(u.findings, func(f finding) bool { return r.names(f, p) }) {
		return
	}
	g := r.grammarOf(u.lang)
	if _, lasting := g.lasting.any(p); lasting {
		return
	}
	taste := slices.ContainsFunc(u.findings, func(f finding) bool {
		return r.signals[f.signal].Name == SignalPreference && !strings.Contains(f.words, "favo") // "one of my favorite films" names none
	})
	if taste && !points.MatchString(p.norm) {
		return // who likes to be alone, or is afraid of failure, has said so
	}
	switch body := g.stripLead(p); {
	case u.lang == english && !thinWords(body, taste), u.lang == chinese && (!thinZH.MatchString(body.norm) || taste && worksZH.MatchString(body.norm)):
		return
	}
	u.thin = true
	u.score = min(u.score, r.threshold-1)
}

// "likes to read" and "likes films" name what is liked.
var (
	worksEN = lang.Set("read reads reading watch watching listen listening film films movie movies book books song songs music game games " +
		"article articles study studying learn learning")
	worksZH = lazyregexp.New(`电影|书|小说|音乐|歌|文章|游戏|读|听|看|学|吃|玩`)
)

// points is in a taste that is for nothing named: "I enjoy that feeling", "I like things that …".
var points = lazyregexp.New(`这|那|它|其|某|各种|一些|许多|东西|\b(this|that|these|those|it|them|things?|something|some|someone|people|different|` +
	`new|life|lot|lots|much|many|so|experience|experiences|moments?)\b`)

// thinWords reports whether nothing is named in an English statement, which may be one of taste.
func thinWords(p piece, taste bool) bool {
	for i, w := range p.words {
		if !thinEN[w.norm] || taste && worksEN[w.norm] {
			return false
		}
		if c := p.raw[w.start]; c >= 'A' && c <= 'Z' && i > 0 && p.words[i-1].start != w.start && w.norm != "i" && p.raw[w.start+1] != '\'' {
			return false // a name
		}
	}
	return true
}
