package rules

import (
	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Go's regular expressions run in linear time. These recognise times and quantities; all work on normalized text.
var (
	timeZH = lazyregexp.New(`[明后]天|大后天|今晚|明晚|明早|后晚|下下?个?(周|星期|礼拜|月)[一二三四五六日天末]?|(这|本)?(周|星期|礼拜)[一二三四五六日天末]` +
		`|[0-9一二三四五六七八九十]+(月[0-9一二三四五六七八九十]*[日号]?|[号日]|点|时[0-9半整])|[0-9]{1,2}[:：][0-9]{2}|[0-9]{4}[-/][0-9]{1,2}|月底|月初|年底|元旦|除夕|春节|中秋|国庆|` +
		`五一|端午|清明|圣诞|情人节|今天(上午|中午|下午|晚上)`)
	timeEN = lazyregexp.New(`\b(tomorrow|tonight|(mon|tues|wednes|thurs|fri|satur|sun)days?|weekend|noon|midnight|next (week|month|` +
		`year|spring|summer|fall|winter)` +
		`|(january|february|march|april|june|july|august|september|october|november|december)|(in|on|by|until|this|next|late|early) may|may [0-9]` +
		`|at [0-9]{1,2}|[0-9]{1,2}(:[0-9]{2})? ?(am|pm|a\.m|p\.m|o'clock)|[0-9]{1,2}(st|nd|rd|th)|[0-9]{1,2}/[0-9]{1,2}|[0-9]{4}-[0-9]{2}|` +
		`in (a|two|three|four|five|six|[0-9]+) (days?|weeks?|months?)|christmas|easter|thanksgiving|this (afternoon|evening))\b`)

	detailZH = lazyregexp.New(`[0-9][0-9.,:/%-]*[0-9%]|[0-9]|[一二两三四五六七八九十百千万半]+几?(只|条|岁|年|个月|个孩|口人|斤|公斤|块|元|号|月|小时|公里|本|台|辆|套|门|级|楼|次|` +
		`周|倍|平米|平方|胎)|《[^》]*》?|「|“`)
	detailEN = lazyregexp.New(`[$€£¥]?[0-9][0-9.,:/-]*[0-9%]|[$€£¥]?[0-9]|"[^"]*"|\b(two|three|four|five|six|seven|eight|nine|ten|` +
		`eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand)\b`)
	latinZH = lazyregexp.New(`[a-z][a-z+#.]+`)

	concreteZH = lazyregexp.New(`了|[0-9]|[a-z0-9][/_=][a-z0-9]|\.[a-z]|改成|设为|换成|改为`)
	concreteEN = lazyregexp.New(`[0-9]|[a-z][/_=]|\b(fixed|solved|resolved|set to|changed|fix was|root cause was|was caused|turned out)\b`)
)

// matchStart is where a pattern is first found in a text, or -1.
func matchStart(re *lazyregexp.Regexp, s string) int {
	if at := re.FindStringIndex(s); at != nil {
		return at[0]
	}
	return -1
}

// matchEnd is where the first match of a pattern in a text ends, or 0.
func matchEnd(re *lazyregexp.Regexp, s string) int {
	if at := re.FindStringIndex(s); at != nil {
		return at[1]
	}
	return 0
}

// hasTime reports whether a clock time, day or date is named.
func hasTime(p piece) bool { return timeZH.MatchString(p.norm) || timeEN.MatchString(p.norm) }

// detail is the first number, title or proper name of a piece, or "".
func detail(p piece, lang string) string {
	if at := detailZH.FindStringIndex(p.norm); at != nil {
		return p.raw[at[0]:at[1]]
	}
	if at := detailEN.FindStringIndex(p.norm); at != nil {
		return p.raw[at[0]:at[1]]
	}
	if lang == chinese {
		for _, at := range latinZH.FindAllStringIndex(p.norm, 4) {
			if w := p.norm[at[0]:at[1]]; !laughs[w] {
				return p.raw[at[0]:at[1]]
			}
		}
		return ""
	}
	// A capitalised word that neither begins the sentence nor is always capitalised.
	for i, w := range p.words {
		if c := p.raw[w.start]; i > 0 && w.start > p.words[0].start && c >= 'A' && c <= 'Z' && w.norm != "i" && w.end-w.start > 1 &&
			!shout(p.raw[w.start:w.end]) && p.words[i-1].start != w.start && p.raw[w.start:w.end][:2] != "I'" {
			return p.raw[w.start:w.end]
		}
	}
	return ""
}

var laughs = lang.Set("ok okay lol haha hahaha hh hhh hhhh xd emm emmm emo thx hi hello bye yes no plz pls omg wtf nb yyds xswl dbq")

// shout reports whether a word is written in capitals for emphasis: more than four letters, or a common one.
func shout(w string) bool {
	for i := range len(w) {
		if w[i] >= 'a' && w[i] <= 'z' {
			return false
		}
	}
	return len(w) > 5 || laughs[normalize(w)]
}
