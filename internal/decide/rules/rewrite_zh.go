package rules

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// kinZH are the kin whose one-character name people double when they speak of others': 我妈 is 用户的妈妈.
const kinZH = "妈爸哥姐弟妹爷奶叔舅姑"

// ownedZH follow 我 without 的 and belong to the speaker.
var ownedZH = indexOf(strings.Fields(`妈妈 爸爸 妈 爸 父亲 母亲 父母 爹 娘 老婆 老公 妻子 丈夫 太太 先生 媳妇 爱人 对象 男朋友 女朋友 男友 女友 未婚夫 未婚妻 前任 前男友 前女友 前妻 前夫 儿子 女儿 闺女 孩子 宝宝 娃 小孩
	哥哥 哥 姐姐 姐 弟弟 弟 妹妹 妹 表弟 表妹 表哥 表姐 堂弟 堂妹 堂哥 堂姐 爷爷 奶奶 爷 奶 外公 外婆 姥姥 姥爷 叔叔 叔 舅舅 舅 阿姨 姑姑 姑 姨妈 大姨 二姨 小姨 姨 大伯 伯父 伯母 伯 大舅 小舅 舅妈 婶婶 婶 姑父 姨父 小舅子 大舅子
	小姨子 大姑子 小姑子 姐夫 妹夫 嫂子 弟媳 儿媳 女婿 干妈 干爸 外孙 外孙女 师傅 师父 徒弟 侄子 侄女 外甥 孙子 孙女 岳父 岳母 公公 婆婆 家人 亲戚 朋友 好朋友 最好的朋友 闺蜜 哥们 兄弟 死党 发小
	大学室友 高中室友 大学老师 高中老师 初中老师 小学老师 大学导师 老同学 前同事 前老板 前女朋友 前男朋友 合伙人 搭档 队友 战友 教练 大学同学 高中同学 初中同学 小学同学 同学 室友 舍友 同事 老板 领导 上司 老师 导师 学生 邻居 房东 公司 单位
	学校 部门 团队 小组 班 班级 宿舍 小区 老家 家乡 生日 名字 网名 昵称 邮箱 手机 手机号 电话 电脑 微信 车 猫 狗 英文名 宠物 偶像 爱好 梦想 城市 地区 社区 球队 舞蹈队 乐队`)...)

// keptZH hold 我 without meaning the speaker.
var keptZH = indexOf("自我", "我国", "忘我", "大我", "小我", "我行我素", "敌我", "唯我独尊", "你我", "我的世界")

var (
	reciprocalZH = lazyregexp.New(`^(们|们俩|俩|们两个)[^，,]{0,4}(认识|相识|互相|彼此|在一起|吵架|分手|约好|一见|同居|恋爱)|^们(?:俩|两个)?[^，,]{0,6}(见面|联系|相处|和好)`)
	yearsZH      = lazyregexp.New(`^[0-9一二两三四五六七八九十几半]+(多)?(岁|个月|年)`)
	ownSubject   = lazyregexp.New(`^(我|俺|他|她|它|你|您|大家|咱)`)
	trailingZH   = lazyregexp.New(`(哈哈+|呵呵|嘿嘿|嘻嘻|呜呜+|哎|啦|呀|哦|噢|哈|嘛|喔|哟|lol|hh+|233+)+$`)
)

// rewriteZH retells a Chinese piece: 我 becomes 用户. It reports false when the speaker is not named in it, or when
// replacing would be doubtful.
func rewriteZH(p piece) (string, bool) {
	p = withoutThinkingZH(dropRequestZH(p))
	if doubtfulZH(p) {
		return "", false
	}
	var b strings.Builder
	named := false
	kept := slices.DeleteFunc(keptZH.find(p), func(h hit) bool { // "告诉你我…" is no "you and I"
		switch h.phrase {
		case "你我":
			return endsWithAny(p.norm[:h.start], "告诉", "跟", "给", "向", "问", "让", "对", "和")
		case "自我": // 来自我的家乡
			return endsWithAny(p.norm[:h.start], "来", "出")
		case "大我", "小我": // 弟弟小我五岁
			return yearsZH.MatchString(p.norm[h.end:])
		}
		return false
	})
	others := p.has("他们", "她们") // so "they" would be taken for them
	clauseHasUser := false      // 用户 stands earlier in this clause
	for i := 0; i < len(p.norm); {
		c, n := utf8.DecodeRuneInString(p.norm[i:])
		rest := p.norm[i+n:]
		switch {
		case strings.ContainsRune("，,。；", c):
			clauseHasUser = false
			b.WriteString(p.raw[i : i+n])
		case c == '我' && within(hit{start: i, end: i + n}, kept):
			b.WriteString(p.raw[i : i+n])
		case c == '俺' || c == '咱' || c == '我':
			if reciprocalZH.MatchString(rest) {
				return "", false
			}
			named = true
			word, skip := userZH(p.src.piece(p.start+i+n, p.end), clauseHasUser && !others, strings.HasSuffix(p.norm[:i], "自己的") ||
				clauseHasUser && endsWithAny(p.norm[:i], "觉得", "发现", "感觉", "认为", "希望", "知道", "以为", "怕", "相信"), endsWithAny(p.norm[:i], "叫", "称呼", "喊"))
			b.WriteString(word)
			n += skip
			clauseHasUser = true
		case strings.HasPrefix(p.norm[i:], "本人") || strings.HasPrefix(p.norm[i:], "鄙人"):
			named = true
			b.WriteString("用户")
			n = len("本人")
			clauseHasUser = true
		case c == '你' || c == '您':
			b.WriteString("助手")
		default:
			b.WriteString(p.raw[i : i+n])
		}
		i += n
	}
	if !named || strings.ContainsAny(p.raw, "?？") {
		return "", false
	}
	return tidyZH(b.String()), true
}

// withoutThinkingZH drops 我想 before what the speaker thinks of themselves: 我想我会辞职; and 可 before 我.
func withoutThinkingZH(p piece) piece {
	switch {
	case strings.HasPrefix(p.norm, "我想我"):
		return p.from(len("我想"))
	case strings.HasPrefix(p.norm, "可我"): // "but I"
		return p.from(len("可"))
	}
	return p
}

// userZH is what stands for 我 before the given rest, and how many bytes of the rest it replaces too.
func userZH(rest piece, again, reflexive, object bool) (string, int) {
	norm := rest.norm
	many := 0
	for _, plural := range []string{"们大家", "们俩", "们"} {
		if strings.HasPrefix(norm, plural) {
			many = len(plural)
			break
		}
	}
	tail := norm[many:]
	switch {
	case reflexive && many == 0 && !strings.HasPrefix(tail, "的"):
		if strings.HasPrefix(tail, "自己") {
			return "自己", len("自己")
		}
		return "自己", 0
	case strings.HasPrefix(tail, "的"), strings.HasPrefix(tail, "自己"), strings.HasPrefix(tail, "家"):
		if many > 0 && again {
			return "他们", many
		}
		return "用户", many
	}
	if object {
		return "用户", many
	}
	owned := ownedZH.prefix(rest.src.piece(rest.start+many, rest.end))
	if owned > 0 && !verbAfterZH(tail, owned) {
		first, n := utf8.DecodeRuneInString(tail)
		if owned == n && strings.ContainsRune(kinZH, first) {
			return "用户的" + string(first) + string(first), many + n
		}
		return "用户的", many
	}
	if many > 0 && again {
		return "他们", many
	}
	return "用户", many
}

// verbAfterZH: 我对象 is the speaker's partner, 我车 is colloquial, but 我姐 is kin and 我生日在… a birthday; only words that
// begin a verb are not owned, such as 我目标是 (owned) against 我学生物 (studies biology).
func verbAfterZH(tail string, owned int) bool {
	switch tail[:owned] {
	case "学生":
		return strings.HasPrefix(tail, "学生物")
	case "班":
		return strings.HasPrefix(tail, "班门")
	case "车":
		return strings.HasPrefix(tail, "车祸")
	case "娘":
		return strings.HasPrefix(tail, "娘家")
	}
	return false
}

func endsWithAny(s string, suffixes ...string) bool {
	for _, x := range suffixes {
		if strings.HasSuffix(s, x) {
			return true
		}
	}
	return false
}

// tidyZH drops what a note needs not: spaces, laughter and particles at the end.
func tidyZH(s string) string {
	s = ending(s, chinese)
	if at := matchStart(trailingZH, s); at > len("用户我") {
		s = ending(s[:at], chinese)
	}
	return s
}

var (
	politeHeadZH = lazyregexp.New(`^(请你|请您|请|麻烦你|麻烦|希望你能|希望你|你可以|你能不能|能不能|你|您|那|就)+`)
	wishesZH     = lazyregexp.New(`^我(希望|想让|想|要|更希望|需要)(你|您)`)
)

// personsZH names the two who speak where nothing else is retold.
var personsZH = strings.NewReplacer("自我", "自我", "我们", "用户和助手", "我", "用户", "你", "助手", "您", "助手")

// treatmentZH words how the bot is to treat the speaker: 以后叫我老王 is 用户希望助手以后叫用户老王.
func (r *Rules) treatmentZH(p piece) string {
	if wishesZH.MatchString(p.norm) {
		if text, ok := rewriteZH(p); ok {
			return text
		}
	}
	if end := matchEnd(politeHeadZH, p.norm); end < len(p.norm) {
		p = p.from(end)
	}
	raw := p.raw
	for _, polite := range []string{"请你", "请您", "请", "你", "您"} { // "以后请叫我": the politeness stands inside
		for _, after := range []string{"以后", "今后", "往后", "从现在起", "从现在开始", "从今以后", "以后就"} {
			raw = strings.Replace(raw, after+polite, after, 1)
		}
	}
	wants := "用户希望助手"
	if rest, ok := strings.CutPrefix(raw, "希望"); ok { // "希望每次和你聊天都…": the bot is not the subject
		wants, raw = "用户希望", rest
	}
	q := newSource(p.src.index, raw)
	text, ok := rewriteZH(q.piece(0, len(q.raw)))
	if !ok {
		text = personsZH.Replace(tidyZH(raw))
	}
	return wants + strings.TrimLeft(text, "，, ")
}

// goesZH begins an activity at a time; without a subject, in a chat, the speaker is meant.
var goesZH = lazyregexp.New(`^(去|要|得|来|有(个|一个|场|一场|节)|开会|约|见|面试|考试|体检|看牙|看病|看医生|复查|复诊|上课|出差|回老家|接|陪|(和|跟|与)[^，,。]{1,8}(见|吃|开|约|聊|去|聚))`)

// withSubjectZH is a statement that does not name the speaker; where only a time stands before its verb the speaker is meant.
func withSubjectZH(p piece) string {
	if youZH.MatchString(p.norm) {
		return "" // to be quoted: who is meant is lost
	}
	if end := matchEnd(leadTimeZH, p.norm); end > 0 && goesZH.MatchString(p.norm[end:]) {
		return "用户" + plain(p, chinese)
	}
	return plain(p, chinese)
}
