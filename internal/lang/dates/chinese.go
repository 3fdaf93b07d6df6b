package dates

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Both scripts are written out, since positions are those of the text.
const (
	digitsZH = `[0-9０１２３４５６７８９一二三四五六七八九十]`
	countZH  = `[0-9０１２３４５６７８９]{1,3}|[一二三四五六七八九十两兩]{1,3}`
	weekZH   = `(?:周|週|星期|礼拜|禮拜)`
	thisZH   = `上上个?|下下个?|上上個|下下個|上个|上個|下个|下個|这个|這個|本|这|這|上|下`
)

var (
	fullDateZH = lazyregexp.New(`([0-9]{4}|[一二][零〇一二三四五六七八九]{3})年(` + digitsZH + `{1,3})月(?:(` + digitsZH + `{1,3})[日号號])?`)
	yearZH     = lazyregexp.New(`([0-9]{4}|二[零〇][零〇一二三四五六七八九]{2})年`)
	nearYearZH = lazyregexp.New(`(大前年|前年|去年|今年|明年|后年|後年)(?:的)?(?:(` + digitsZH + `{1,3})月(?:份|(` + digitsZH + `{1,3})[日号號])?)?`)
	monthDayZH = lazyregexp.New(`(` + digitsZH + `{1,3})月(?:(` + digitsZH + `{1,3})[日号號])?`)
	nearMonth  = lazyregexp.New(`(` + thisZH + `)月(?:(` + digitsZH + `{1,3})[日号號])?`)
	nearDayZH  = lazyregexp.New(`大前天|大后天|大後天|前天|昨天|今天|明天|后天|後天|前晚|昨晚|今晚|明晚|后晚|後晚|今早|明早|今晨|昨夜|今夜|昨日|今日|明日`)
	weekdayZH  = lazyregexp.New(`(` + thisZH + `)?` + weekZH + `([一二三四五六日天末])`)
	nearWeekZH = lazyregexp.New(`(` + thisZH + `)` + weekZH)
	offsetZH   = lazyregexp.New(`(` + countZH + `)(天|日|周|週|个星期|個星期|星期|个礼拜|個禮拜|礼拜|禮拜|个月|個月|年)(?:(?:以|之)?(后|後|前))`)
	closing    = lazyregexp.New(`[月年][底末]`)
	partZH     = lazyregexp.New(`凌晨|半夜|清晨|早晨|早上|上午|中午|下午|傍晚|晚上|夜里|夜裡|夜裏|深夜|晚间|晚間`)
	clockZH    = lazyregexp.New(`(` + digitsZH + `{1,3}|[两兩])(?:点钟|點鐘|点整|點整|点|點|时|時)(?:(半)|(一刻|三刻)|(` + digitsZH + `{1,3})分?)?`)
)

var partsZH = map[string]Part{
	"凌晨": SmallHours, "半夜": SmallHours, "清晨": Morning, "早晨": Morning, "早上": Morning, "上午": Morning, "中午": Noon, "下午": Afternoon,
	"傍晚": Evening, "晚上": Evening, "夜里": Night, "夜裡": Night, "夜裏": Night, "深夜": Night, "晚间": Evening, "晚間": Evening,
}

func (f *finder) chinese() {
	if f.has("年", "月") {
		f.datesZH()
		f.monthsZH()
	}
	if f.has("今", "明", "昨", "前", "后", "後") {
		f.daysZH()
		f.offsetsZH()
	}
	if f.has("周", "週", "星期", "礼拜", "禮拜") {
		f.weeksZH()
	}
	if f.has("点", "點", "时", "時", "午", "早", "晚", "夜", "凌晨", "清晨") {
		f.clocksZH()
	}
}

// startsAfter reports whether the text in front of a position ends with one of the words; endsBefore is its counterpart.
func (f *finder) startsAfter(at int, words ...string) bool {
	head := f.before(at, 12)
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(head, w) })
}

// follows reports whether the character behind a position is one of the given.
func (f *finder) follows(end int, chars string) bool {
	r, n := utf8.DecodeRuneInString(f.text[end:])
	return n > 0 && strings.ContainsRune(chars, r)
}

// comes reports whether the character in front of a position is one of the given.
func (f *finder) comes(at int, chars string) bool {
	r, n := utf8.DecodeLastRuneInString(f.text[:at])
	return n > 0 && strings.ContainsRune(chars, r)
}

const numeralsZH = "0123456789０１２３４５６７８９一二三四五六七八九十百千万两兩几幾数數半每多第零〇"

// on adds a day, or its month when the day is 0.
func (f *finder) on(start, end, year, month, day int, relative bool) {
	if day == 0 {
		if month >= 1 && month <= 12 {
			f.add(start, end, f.day(year, time.Month(month), 1), Month, relative)
		}
		return
	}
	if t, ok := f.date(year, month, day); ok {
		f.add(start, end, t, Day, relative)
	}
}

// optional is the number of a group that may be empty: 0.
func optional(s string) int {
	if s == "" {
		return 0
	}
	return number(s)
}

// notYearZH are the characters before 明年, 去年 and 前年 that make other words of them: 说明年份, 过去年轻, 从前年轻.
var notYearZH = map[rune]string{'明': "说說证證声聲表清发發", '去': "过過失", '前': "以从從之目往", '后': "以今之", '後': "以今之"}

func (f *finder) datesZH() {
	f.each(fullDateZH, func(start, end int, g []string) {
		f.on(start, end, number(g[1]), number(g[2]), optional(g[3]), false)
	})
	f.each(yearZH, func(start, end int, g []string) {
		if year := number(g[1]); year >= 1900 && year <= 2199 && !f.comes(start, numeralsZH) && !f.follows(end, "前后後以之级級") {
			f.add(start, end, f.day(year, 1, 1), Year, false)
		}
	})
	f.each(nearYearZH, func(start, end int, g []string) {
		if f.comes(start, notYearZH[[]rune(g[1])[0]]) || len(g[0]) == len(g[1]) && f.follows(end, "轻輕龄齡级級代纪紀份货貨薪间間") {
			return
		}
		year := f.said.Year() + map[string]int{"大前年": -3, "前年": -2, "去年": -1, "明年": 1, "后年": 2, "後年": 2}[g[1]]
		if g[2] == "" {
			f.add(start, start+len(g[1]), f.day(year, 1, 1), Year, true)
			return
		}
		f.on(start, end, year, number(g[2]), optional(g[3]), true)
	})
	f.each(monthDayZH, func(start, end int, g []string) {
		month, day := number(g[1]), optional(g[2])
		if month < 1 || month > 12 || day > 31 || day < 0 || f.comes(start, numeralsZH+"年") || f.startsAfter(start, "农历", "農曆", "阴历", "陰曆", "旧历", "的个") ||
			day == 0 && f.follows(end, "之球光亮") {
			return
		}
		f.annual(start, end, month, day)
	})
}

// away is how many weeks or months a word points from now.
func away(word string) int {
	switch {
	case strings.HasPrefix(word, "上上"):
		return -2
	case strings.HasPrefix(word, "下下"):
		return 2
	case strings.HasPrefix(word, "上"):
		return -1
	case strings.HasPrefix(word, "下"):
		return 1
	}
	return 0
}

func (f *finder) monthsZH() {
	f.each(nearMonth, func(start, end int, g []string) {
		if f.comes(start, "晚早每天楼樓身") || f.follows(end, "亮球台饼餅薪光色子票经經") {
			return
		}
		first := f.day(f.said.Year(), f.said.Month()+time.Month(away(g[1])), 1)
		f.on(start, end, first.Year(), int(first.Month()), optional(g[2]), true)
	})
	f.each(closing, func(start, end int, g []string) { // "月底", "年末": of this month, of this year
		if f.comes(start, numeralsZH+"个個今明去上下这這本后後前") {
			return
		}
		from, p := f.day(f.said.Year(), f.said.Month(), 1), Month
		if strings.HasPrefix(g[0], "年") {
			from, p = f.day(f.said.Year(), 1, 1), Year
		}
		f.add(start, start+len("月"), from, p, true)
	})
}

// bornZH follow 后天 where it means "acquired", not a day.
var bornZH = lazyregexp.New(`^(的?(努力|培养|培養|形成|养成|養成|教育)|性|不足|免疫)`)

// ageZH follow 今天 where it means nowadays, and stand before 明天 where it means the future.
var ageZH = lazyregexp.New(`^的?(社会|社會|时代|時代|年轻人|年輕人|世界|我们|我們|年代|中国|中國|孩子们)|^的(我|自己)`)

func (f *finder) daysZH() {
	f.each(nearDayZH, func(start, end int, g []string) {
		word := g[0]
		rest := f.after(end, 18)
		days := 0
		switch []rune(strings.TrimPrefix(word, "大"))[0] {
		case '前':
			days = -2
		case '昨':
			days = -1
		case '明':
			days = 1
		case '后', '後':
			days = 2
		}
		switch {
		case strings.HasPrefix(word, "大"):
			days += days / 2
		case days == 2 || days == -2:
			if f.comes(start, "明以之今先最从從往饭飯课課会會") || f.follows(end, "天") && !strings.HasPrefix(rest, "天气") &&
				!strings.HasPrefix(rest, "天氣") || bornZH.MatchString(rest) {
				return
			}
		case days == 0 && ageZH.MatchString(rest), days == 1 && (f.comes(start, "的说說") || strings.HasPrefix(rest, "会更")):
			return
		case strings.HasSuffix(word, "日") && f.follows(end, "头頭报報本"):
			return
		}
		if f.comes(start, "每") {
			return
		}
		part := NoPart
		switch {
		case strings.HasSuffix(word, "晚"):
			part = Evening
			if f.follows(end, "上") { // "今晚上"
				end += len("上")
			}
		case strings.HasSuffix(word, "夜"):
			part = Night
		case strings.HasSuffix(word, "早"), strings.HasSuffix(word, "晨"):
			part = Morning
			if f.follows(end, "上") {
				end += len("上")
			}
		}
		f.add(start, end, later(f.today(), days), Day, true, withPart(part))
	})
}

var (
	usualZH = lazyregexp.New(`^[^，,。；]{0,6}(都|一般|通常|经常|經常|总是|總是|常常|偶尔|偶爾|固定|照例)`)
	// What follows a day of the week that is a range, or a number of something: "周一到周五", "上周三次".
	rangeZH = lazyregexp.New(`^` + weekZH + `[一二三四五六日天末]|^(到|至|-|—|~|～|、|和|或)` + weekZH + `?[一二三四五六日天末](都|每|上|，|,|。|$|的|我|要|晚|早|下|` +
		`中)|^(到|至|-|—|~|～|、|和|或)` + weekZH)
	measureZH = lazyregexp.New(`^(次|天|个|個|节|節|场|場|遍|回|趟|门|門|篇|位|人|小时|小時|家|本|顿|頓|公里|共|起|直|定|样|樣|些|边|邊|圈|岁|歲|块|塊)`)
	idleZH    = lazyregexp.New(`^(会|會|喜欢|喜歡|爱|愛|休息|双休|雙休|不上班|加班|基本|也|不)`)
)

func (f *finder) weeksZH() {
	f.each(weekdayZH, func(start, end int, g []string) {
		rest := f.after(end, 30)
		if g[1] == "" && f.comes(start, numeralsZH+"个個逢隔") ||
			f.startsAfter(start, "每", "每个", "每個", "每到", "逢", "隔", "一到", "到", "至", "晚", "从", "從") &&
				!f.startsAfter(start, "改到", "推到", "挪到", "推迟到", "延到", "等到", "提前到", "排到", "定到", "约到") ||
			dayNamed.MatchString(f.before(start, 12)) || usualZH.MatchString(rest) || rangeZH.MatchString(rest) || g[2] != "末" &&
			measureZH.MatchString(rest) {
			return
		}
		days := 6
		if at := strings.Index("一二三四五六", g[2]); at >= 0 {
			days = at / len("一")
		}
		if g[2] == "末" {
			if g[1] == "" && idleZH.MatchString(rest) {
				return
			}
			open := func(*atom) {}
			if g[1] == "" {
				open = isOpen
			}
			f.add(start, end, later(f.monday(away(g[1])), 5), Weekend, true, open)
			return
		}
		if g[1] == "" {
			f.add(start, end, f.coming(time.Weekday((days+1)%7)), Day, true, isWeekday, isOpen)
			return
		}
		f.add(start, end, later(f.monday(away(g[1])), days), Day, true, isWeekday)
	})
	f.each(nearWeekZH, func(start, end int, g []string) {
		if f.comes(start, "晚早每网網马馬身街路线線") || f.follows(end, "围圍边邊期岁歲转轉杰傑六一二三四五日天末刊身") &&
			!measureZH.MatchString(f.after(min(len(f.text), end+len("一")), 12)) {
			return
		}
		f.add(start, end, f.monday(away(g[1])), Week, true)
	})
}

// anchored: "三天后" counts from now only where no other event precedes it.
const fromNowZH = " \n\t，,。！!；;：:、我们們他她它你您咱在于於就会會要约約概是说說户戶的"

func (f *finder) offsetsZH() {
	f.each(offsetZH, func(start, end int, g []string) {
		if start > 0 && !f.comes(start, fromNowZH) || f.comes(start, numeralsZH) || f.follows(end, "的今") {
			return
		}
		n := number(g[1])
		if n < 0 {
			return
		}
		if g[3] == "前" {
			n = -n
		}
		unit := unitOf(strings.TrimPrefix(strings.TrimPrefix(g[2], "个"), "個"))
		f.offset(start, end, n, unit)
	})
}

// pointsZH follow 一点 and 两点 where they are "a bit" and "two points", and stand before them.
var (
	pointsZH = lazyregexp.New(`^(建议|建議|意见|意見|原因|想法|希望|要求|理由|都|也|儿|兒|问题|問題|不|吗|没|小)`)
	dayNamed = lazyregexp.New(weekZH + `[一二三四五六]$`)
	bitZH    = "有这這那第几幾早晚快慢多少好大小差一上下面各分以了"
)

func (f *finder) clocksZH() {
	f.each(partZH, func(start, end int, g []string) {
		if !f.startsAfter(start, "每天", "每", "天天") {
			f.atoms = append(f.atoms, atom{start: start, end: end, kind: partAtom, part: partsZH[g[0]], needs: true})
		}
	})
	f.each(clockZH, func(start, end int, g []string) {
		hour := number(g[1])
		if _, size := utf8.DecodeLastRuneInString(g[1]); size < len(g[1]) && dayNamed.MatchString(f.before(start+len(g[1])-size, 12)) {
			start += len(g[1]) - size // "周三三点": the first numeral is the day's
			g[1] = g[1][len(g[1])-size:]
			hour = number(g[1])
		} else if f.comes(start, numeralsZH+".．:：") {
			return
		}
		if hour < 0 || g[1] == "零" {
			return
		}
		minute, exact := 0, true
		switch {
		case g[2] != "":
			minute = 30
		case g[3] == "一刻":
			minute = 15
		case g[3] != "":
			minute = 45
		case g[4] != "":
			minute = number(g[4])
		default:
			exact = strings.HasSuffix(g[0], "整")
		}
		if minute < 0 {
			return
		}
		bare := !exact && !strings.HasSuffix(g[0], "钟") && !strings.HasSuffix(g[0], "鐘")
		if bare && pointsZH.MatchString(f.after(end, 12)) {
			return
		}
		needs := bare && (f.comes(start, bitZH) || hour < 3 || strings.HasSuffix(g[0], "时") || strings.HasSuffix(g[0], "時"))
		f.clock(start, end, hour, minute, exact, len(g[1]) == 2 && g[1][0] == '0', needs)
	})
}
