package compare

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
)

// insignificant words may be there or not. Degrees ("very") are among them, frequencies ("always", "sometimes") are not.
var insignificant = lang.Set(`
	a an the is are am was be been being to of that this it its their his her own so very really quite just do does did
	has have had and then please also too
	的 了 着 过 地 得 也 都 就 还 又 很 挺 蛮 太 真 是 在 吧 呢 吗 啊 呀 哦 嗯 之 其 自 己 个 那 这 和 与 并 且 而`)

// markWords tell statements apart, however similar the rest is: negations, numbers, days and months, and qualifiers.
var markWords = lang.Set(`
	not no never none neither nor without nothing nobody nowhere hardly unless except
	one two three four five six seven eight nine ten eleven twelve dozen hundred thousand million half quarter double
	first second third fourth fifth last next once twice
	monday tuesday wednesday thursday friday saturday sunday
	january february march april may june july august september october november december
	today tomorrow yesterday tonight morning noon afternoon evening night daily weekly monthly yearly
	before after until since during early late earlier later
	left right up down upper lower top bottom front back inside outside north south east west
	all some any every each only most few many more less least always often sometimes rarely seldom
	old new older newer elder younger big small large little high low hot cold former ex male female
	can could may might must should would will want wants stopped quit used
	不 没 無 无 非 未 别 莫 勿 否 禁 戒
	零 一 二 两 三 四 五 六 七 八 九 十 百 千 万 亿 半 双 单 几 第
	左 右 上 下 前 后 里 外 内 东 西 南 北 中
	大 小 多 少 高 低 长 短 新 旧 老 早 晚 冷 热 男 女 前 现 曾 已 将 想
	今 明 昨 年 月 日 号 周 天 时 点 分 秒 春 夏 秋 冬
	全 每 只 仅 最 更 偶 常 总`)

// synonyms are written as the first of each group.
var englishGroups = []string{
	"likes like loves love enjoys enjoy", "dislikes dislike hates hate", "plans plan intends intend", "lives live resides reside",
	"purchased bought", "started began", "works work", "user person", "color colour", "favorite favourite", "gray grey",
	"neighbor neighbour", "theater theatre",
}

var chineseGroups = []string{
	"打算 计划 准备", "喜欢 喜爱 热爱 爱好", "讨厌 厌恶 反感", "居住 住", "购买 买", "开始 着手", "很 非常 特别 十分 超级",
	"妈妈 母亲", "爸爸 父亲", "妻子 老婆 太太", "丈夫 老公", "因为 由于", "但是 不过 可是",
}

var englishSynonyms = func() map[string]string {
	all := map[string]string{}
	for _, group := range englishGroups {
		members := strings.Fields(group)
		for _, w := range members[1:] {
			all[w] = members[0]
		}
	}
	return all
}()

// The pairs of equal words protect these words: "不过敏" does not contain 不过.
var chineseSynonyms = func() *strings.Replacer {
	pairs := []string{"不过敏", "不过敏", "居住", "居住", "购买", "购买"}
	for _, group := range chineseGroups {
		members := strings.Fields(group)
		for _, w := range members[1:] {
			pairs = append(pairs, w, members[0])
		}
	}
	return strings.NewReplacer(pairs...)
}()
