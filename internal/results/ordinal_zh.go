package results

import (
	"slices"
	"strings"
)

// simplified maps the traditional characters that occur in ordinals.
var simplified = strings.NewReplacer("個", "个", "條", "条", "項", "项", "後", "后", "數", "数", "號", "号", "張", "张", "種", "种",
	"選", "选", "請", "请", "幫", "帮", "給", "给", "這", "这", "電", "电", "結", "结", "鏈", "链", "論", "论", "視", "视", "頻", "频",
	"頭", "头", "開", "开", "買", "买", "聽", "听", "讀", "读", "載", "载", "點", "点", "謝", "谢", "間", "间", "聞", "闻", "臺", "台", "則", "则",
	"場", "场", "雙", "双", "萬", "万", "貳", "二", "叁", "三", "參", "三", "陸", "六", "壹", "一", "贰", "二", "肆", "四", "伍", "五",
	"陆", "六", "柒", "七", "捌", "八", "玖", "九", "拾", "十", "佰", "百", "仟", "千", "兩", "两")

// What people say around an ordinal. Longer ones come before what they begin with.
var (
	politeBefore = []string{
		"我想要", "我想看", "我想听", "我想读", "我想买", "我想", "我要看", "我要", "我选择", "我选", "我就要", "我看", "我",
		"请帮我", "请给我", "请", "麻烦你", "麻烦", "帮我", "帮忙", "给我", "就要", "就是", "就", "那就", "那么", "那", "想要", "想看", "要",
		"选择", "选", "看看", "看一下", "看", "下载", "打开", "播放", "查看", "查一下", "点开", "点", "听", "读", "买", "来", "是", "列表里的", "列表中的", "里面的",
		"好的", "好", "嗯", "行", "对", "可以", "还是", "换成", "换", "改成", "再看",
	}
	politeAfter = []string{
		"谢谢你", "谢谢", "多谢", "就行了", "就行", "就好了", "就好", "好了", "也可以", "就可以", "可以", "即可", "可以吗", "行吗", "好吗", "吧", "呢", "呀", "啊", "哦", "哈", "喽", "呗", "了", "的",
	}
	measures = []string{
		"个", "部", "条", "项", "款", "号", "本", "首", "篇", "集", "种", "位", "名", "家", "只", "张", "件", "份", "支", "场", "道", "则", "样", "行",
		"台", "辆", "间", "套", "双", "片", "段", "期",
	}
	// What stands for the last and the first: alone, and before a measure word, which may have 一 or 那 before it.
	lastOnes  = []string{"最后", "最末", "末尾", "最后面", "最下面", "最底下"}
	lastOf    = []string{"最后", "最末", "末尾", "最后面", "最下面", "最底下", "末"}
	firstOnes = []string{"最前面", "最上面"}
	firstOf   = []string{"头", "首", "最前面", "最上面"}
	those     = []string{"那一", "那", "一", "1"}
	things    = []string{
		"方案", "电视剧", "电影", "影片", "片子", "剧", "结果", "选项", "链接", "论文", "文章", "新闻", "歌曲", "歌", "书", "视频", "商品", "条目", "项目", "东西", "答案",
	}
)

// chineseOrdinal reads what holds Chinese characters.
func chineseOrdinal(text string) (Ordinal, bool) {
	text = simplified.Replace(strings.Join(strings.Fields(text), ""))
	for {
		if n, ok := bareChineseOrdinal(text); ok {
			return n, true
		}
		rest := cutAny(strings.Trim(text, ",。、!"), politeBefore, strings.CutPrefix)
		if rest == text || rest == "" {
			break
		}
		text = rest
	}
	return 0, false
}

// cutAny removes the first of the words that is there.
func cutAny(text string, words []string, cut func(string, string) (string, bool)) string {
	for _, word := range words {
		if rest, ok := cut(text, word); ok {
			return rest
		}
	}
	return text
}

// bareChineseOrdinal reads an ordinal with nothing before it.
func bareChineseOrdinal(text string) (Ordinal, bool) {
	for range 3 { // 第三个吧,谢谢
		text = strings.Trim(cutAny(text, politeAfter, strings.CutSuffix), ",。、!")
	}
	fromEnd := false
	if rest, ok := strings.CutPrefix(text, "倒数"); ok {
		fromEnd, text = true, rest
	}
	number, marked := strings.CutPrefix(text, "第")
	if !marked {
		number = cutAny(number, []string{"编号为", "编号", "序号为", "序号是", "序号", "选项", "方案", "号码", "no."}, func(s, word string) (string, bool) {
			rest, ok := strings.CutPrefix(s, word)
			marked = marked || ok
			return rest, ok
		})
	}
	if !marked && !fromEnd {
		switch {
		case slices.Contains(lastOnes, number):
			return -1, true
		case slices.Contains(firstOnes, number):
			return 1, true
		}
	}
	if n, ok := digitsOrChinese(number); ok { // alone: "三", "第3", "倒数第二"
		return ended(n, fromEnd), n >= 0 && (marked || !fromEnd)
	}
	bare, measure := counted(number)
	switch {
	case measure == "":
		return 0, false
	case marked:
	case among(lastOf, bare):
		return -1, !fromEnd
	case among(firstOf, bare):
		return 1, !fromEnd
	case measure != "号": // 三个 is how many
		return 0, false
	}
	n, ok := digitsOrChinese(bare)
	return ended(n, fromEnd), ok && (marked || !fromEnd)
}

// among reports whether a text is one of the words, with 一 or 那 after it or not.
func among(words []string, text string) bool {
	if slices.Contains(words, text) {
		return len(text) <= len("头") // 最后个 nobody says
	}
	before := strings.TrimSuffix(cutAny(text, those, strings.CutSuffix), "的")
	return before != text && slices.Contains(words, before)
}

func ended(n Ordinal, fromEnd bool) Ordinal {
	if fromEnd {
		return -n
	}
	return n
}

// counted removes what is counted: a measure word, with a thing after it or not. Without one there is no measure.
func counted(text string) (bare, measure string) {
	without := cutAny(text, things, strings.CutSuffix)
	bare = cutAny(without, measures, strings.CutSuffix)
	return bare, without[len(bare):]
}

var (
	chineseDigits = map[rune]int{'零': 0, '〇': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}
	chineseUnits  = map[rune]int{'十': 10, '百': 100, '千': 1000}
)

func digitsOrChinese(text string) (Ordinal, bool) {
	if n, ok := digits(text); ok {
		return n, true
	}
	return chineseNumber(text)
}

// chineseNumber reads a number below 10,000: 十二, 二十, 一百零五, and 一百五, which is 150.
func chineseNumber(text string) (Ordinal, bool) {
	if text == "" {
		return 0, false
	}
	total, digit, lastUnit := 0, -1, 10_000
	zero := false
	for _, r := range text {
		if d, ok := chineseDigits[r]; ok {
			switch {
			case digit > 0: // 一二: a telephone's way of saying it, or two numbers
				return 0, false
			case d == 0:
				zero = true
			}
			digit = d
			continue
		}
		unit, ok := chineseUnits[r]
		if !ok || unit >= lastUnit {
			return 0, false
		}
		switch {
		case digit > 0:
		case unit == 10 && (total == 0 || zero) && digit <= 0: // 十二, 一百零十
			digit = 1
		default:
			return 0, false
		}
		total, digit, lastUnit, zero = total+digit*unit, -1, unit, false
	}
	switch {
	case digit > 0 && !zero && lastUnit > 10 && lastUnit < 10_000:
		total += digit * lastUnit / 10
	case digit > 0:
		total += digit
	case digit == 0 && total > 0: // 二十零
		return 0, false
	}
	return Ordinal(total), true
}
