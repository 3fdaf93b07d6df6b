package dates

import (
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

// relativeDays are words that mean a day, or one of a few: from and to count from the day of the message.
var relativeDays = []struct {
	re       *lazyregexp.Regexp
	from, to int
}{
	{lazyregexp.New(`今天|今日|今早|今晚|今夜|刚才|刚刚|现在|\btoday\b|\btonight\b|\bthis (morning|afternoon|evening)\b|\bnow\b|\bjust\b`), 0, 0},
	{lazyregexp.New(`明天|明日|明早|明晚|明儿|次日|第二天|\btomorrow\b|\btmrw?\b|\bnext day\b`), 1, 1},
	{lazyregexp.New(`后天|\bday after tomorrow\b`), 2, 2},
	{lazyregexp.New(`大后天`), 3, 3},
	{lazyregexp.New(`昨天|昨日|昨晚|昨夜|昨儿|\byesterday\b|\blast night\b`), -1, -1},
	{lazyregexp.New(`前天|\bday before yesterday\b`), -2, -2},
	{lazyregexp.New(`大前天`), -3, -3},
	{lazyregexp.New(`前几天|最近|\b(the )?other day\b|\ba few days ago\b|\brecently\b`), -7, 0},
	{lazyregexp.New(`过几天|这几天|\bin a few days\b|\bsoon\b`), 0, 7},
}

var (
	anyWeekZH  = lazyregexp.New(`(上上|上|这|本|下下|下)?(一)?个?(周|星期|礼拜)(末|[一二三四五六日天])?`)
	anyWeekEN  = lazyregexp.New(`\b(?:(last|this|next|coming|past) )?(week|weekend)\b`)
	dayOfWeek  = lazyregexp.New(`\b(mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?s?\b`)
	anyMonthZH = lazyregexp.New(`(上|这|本|下|当)个?月|月底|月初|月末`)
	anyMonthEN = lazyregexp.New(`\b(last|this|next|coming|past|end of the|beginning of the) month\b`)
	anyYearZH  = lazyregexp.New(`前年|去年|今年|明年|后年|年底|年初|年末`)
	anyYearEN  = lazyregexp.New(`\b(last|this|next) (year|spring|summer|autumn|fall|winter)\b|\b(end of the|new) year\b`)
	distance   = lazyregexp.New(`(\d{1,3}|[一二两三四五六七八九十百半]{1,4}|\b(?:an?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|` +
		`twenty|thirty|couple of|few)\b)\s?个?(天|日|周|星期|礼拜|月|年|days?|weeks?|months?|years?)`)
	holidays = map[string][2]int{
		"元旦": {1, 1}, "情人节": {2, 14}, "妇女节": {3, 8}, "愚人节": {4, 1}, "劳动节": {5, 1}, "五一": {5, 1}, "儿童节": {6, 1}, "六一": {6, 1}, "教师节": {9, 10},
		"国庆": {10, 1}, "十一": {10, 1}, "万圣": {10, 31}, "双十一": {11, 11}, "双11": {11, 11}, "平安夜": {12, 24}, "圣诞": {12, 25}, "跨年": {12, 31},
		"new year": {1, 1}, "valentine": {2, 14}, "halloween": {10, 31}, "christmas eve": {12, 24}, "christmas": {12, 25}, "xmas": {12, 25},
		"new year's eve": {12, 31},
	}
	// Holidays without a fixed date, and seasons, may be any day of the year before or after.
	moving = lazyregexp.New(`春节|过年|除夕|元宵|清明|端午|七夕|中秋|重阳|冬至|春天|夏天|秋天|冬天|暑假|寒假|\beaster|\bthanksgiving|\bramadan|\bdiwali|\bhanukkah|\blunar`)
)

// Span is a period of whole days.
type Span struct{ From, To time.Time } // both included, at midnight UTC

// Possible lists the periods that the relative words of a folded text may mean. Find chooses one reading; Possible returns all.
func Possible(text string, at time.Time) []Span {
	today := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC) // in some zones a day has no midnight
	var spans []Span
	days := func(from, to int) { spans = append(spans, Span{today.AddDate(0, 0, from), today.AddDate(0, 0, to)}) }
	for _, r := range relativeDays {
		if r.re.MatchString(text) {
			days(r.from, r.to)
		}
	}
	monday := 1 - WeekdayNumber(today)
	for _, m := range anyWeekZH.FindAllStringSubmatch(text, -1) {
		week := map[string]int{"上上": -2, "上": -1, "下": 1, "下下": 2}[m[1]]
		switch m[4] {
		case "", "末":
			days(monday+7*week, monday+7*week+6)
			if m[1] == "" {
				days(monday+7, monday+13)
			}
		default:
			n := monday + 7*week + weekdayNumberZH(m[4]) - 1
			days(n, n)
			if m[1] == "" || m[1] == "下" || m[1] == "上" { // the coming one; or the speaker's week begins on Sunday
				days(n+7, n+7)
				days(n-7, n-7)
			}
		}
	}
	for _, m := range anyWeekEN.FindAllStringSubmatch(text, -1) {
		week := map[string]int{"last": -1, "past": -1, "next": 1, "coming": 1}[m[1]]
		days(monday+7*week, monday+7*week+6)
		if m[2] == "weekend" {
			days(monday, monday+13)
		}
	}
	for _, m := range dayOfWeek.FindAllStringSubmatch(text, -1) {
		for week := -1; week <= 2; week++ {
			n := monday + 7*week + weekdayNumberEN(m[1]) - 1
			days(n, n)
		}
	}
	spans = append(spans, monthsAndYears(text, today)...)
	return append(spans, distances(text, today)...)
}

func monthsAndYears(text string, today time.Time) []Span {
	var spans []Span
	month := func(n int) {
		first := time.Date(today.Year(), today.Month()+time.Month(n), 1, 0, 0, 0, 0, today.Location())
		spans = append(spans, Span{first, first.AddDate(0, 1, -1)})
	}
	if anyMonthZH.MatchString(text) || anyMonthEN.MatchString(text) {
		for n := -1; n <= 1; n++ {
			month(n)
		}
	}
	year := func(n int) {
		first := time.Date(today.Year()+n, 1, 1, 0, 0, 0, 0, today.Location())
		spans = append(spans, Span{first, first.AddDate(1, 0, -1)})
	}
	for _, m := range anyYearZH.FindAllString(text, -1) {
		year(map[string]int{"前年": -2, "去年": -1, "明年": 1, "后年": 2}[m])
	}
	for _, m := range anyYearEN.FindAllStringSubmatch(text, -1) {
		n := map[string]int{"last": -1, "next": 1}[m[1]]
		year(n)
		year(0)
	}
	for word, d := range holidays {
		if strings.Contains(text, word) {
			for n := -1; n <= 1; n++ {
				at := time.Date(today.Year()+n, time.Month(d[0]), d[1], 0, 0, 0, 0, today.Location())
				spans = append(spans, Span{at.AddDate(0, 0, -1), at.AddDate(0, 0, 6)}) // with the days around it
			}
		}
	}
	if moving.MatchString(text) {
		for d := today.AddDate(-1, 0, 0); d.Before(today.AddDate(1, 0, 0)); d = d.AddDate(0, 0, 7) {
			spans = append(spans, Span{d, d.AddDate(0, 0, 6)})
		}
	}
	return spans
}

// distances lists the periods that "three days ago", "in two weeks" and the like may mean, both in the past and in the future.
func distances(text string, today time.Time) []Span {
	var spans []Span
	for _, m := range distance.FindAllStringSubmatch(text, -1) {
		var low, high int
		switch m[1] {
		case "a", "an":
			low, high = 1, 1
		case "few", "couple of":
			low, high = 2, 5
		case "半":
			continue
		default:
			low = numbers.Int(m[1])
			high = low
		}
		for n := low; n <= high; n++ {
			for _, n := range []int{-n, n} {
				switch unitOf(m[2]) {
				case Day:
					spans = append(spans, around(today.AddDate(0, 0, n), 0))
				case Week:
					spans = append(spans, around(today.AddDate(0, 0, 7*n), 1))
				case Month:
					spans = append(spans, around(today.AddDate(0, n, 0), 16), around(today.AddDate(0, n, 0), 1))
				default:
					spans = append(spans, around(today.AddDate(n, 0, 0), 190), around(today.AddDate(n, 0, 0), 1))
				}
			}
		}
	}
	return spans
}

func around(d time.Time, days int) Span { return Span{d.AddDate(0, 0, -days), d.AddDate(0, 0, days)} }

// unitOf is the unit of time that a word begins with; Year for any other word.
func unitOf(word string) Precision {
	for unit, names := range map[Precision][]string{Day: {"day", "天", "日"}, Week: {"week", "周", "週", "星期", "礼拜", "禮拜"}, Month: {"month", "月"}} {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(word, name) }) {
			return unit
		}
	}
	return Year
}
