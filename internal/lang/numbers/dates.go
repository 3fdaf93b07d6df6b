package numbers

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Date is a date of which some parts are named; the others are 0.
type Date struct {
	Year, Month, Day int
	Weekday          int // 1 is Monday
}

const (
	monthsEN = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`
	hanDay   = `(\d{1,2}|[一二三四五六七八九十廿]{1,4})`
)

// written are the ways to write a date, the longest first. A function reads what the groups hold.
var written = []struct {
	cue  cue // all of them are where the pattern is
	re   *regexp.Regexp
	read func(m []string) Date
}{
	{centuryCue, regexp.MustCompile(`\b((?:19|20)\d\d)\s?[-/.年]\s?(1[0-2]|0?[1-9])\s?[-/.月]\s?(3[01]|[12]\d|0?[1-9])\s?[日号]?`), func(m []string) Date {
		return Date{Year: atoi(m[1]), Month: atoi(m[2]), Day: atoi(m[3])}
	}},
	{yearCue, regexp.MustCompile(`\b((?:19|20)\d\d)\s?年\s?` + hanDay + `\s?月(?:份)?(?:\s?` + hanDay + `\s?[日号])?`), func(m []string) Date {
		return Date{Year: atoi(m[1]), Month: atoi(m[2]), Day: atoi(m[3])}
	}},
	{centuryCue, regexp.MustCompile(`\b((?:19|20)\d\d)[-/](1[0-2]|0[1-9])\b`), func(m []string) Date { return Date{Year: atoi(m[1]), Month: atoi(m[2])} }},
	{nameCue | digitCue, regexp.MustCompile(`\b` + monthsEN + `\.? (?:the )?(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?\b(?:,? ((?:19|20)\d\d)\b)?`), func(m []string) Date {
		return Date{Month: monthOf(m[1]), Day: atoi(m[2]), Year: atoi(m[3])}
	}},
	{nameCue | digitCue, regexp.MustCompile(`\b(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)? (?:of )?` + monthsEN + `\b(?:,? ((?:19|20)\d\d)\b)?`), func(m []string) Date {
		return Date{Day: atoi(m[1]), Month: monthOf(m[2]), Year: atoi(m[3])}
	}},
	{slashCue, regexp.MustCompile(`\b(1[0-2]|0?[1-9])/(3[01]|[12]\d|0?[1-9])(?:/((?:19|20)\d\d))?\b`), func(m []string) Date {
		return Date{Month: atoi(m[1]), Day: atoi(m[2]), Year: atoi(m[3])}
	}},
	{yearCue, regexp.MustCompile(`\b([0-4]\d)年` + hanDay + `月(?:份)?(?:` + hanDay + `[日号])?`), func(m []string) Date {
		return Date{Year: 2000 + atoi(m[1]), Month: atoi(m[2]), Day: atoi(m[3])}
	}},
	{monthCue, regexp.MustCompile(hanDay + `月(?:份)?(?:` + hanDay + `[日号])?`), func(m []string) Date { return Date{Month: atoi(m[1]), Day: atoi(m[2])} }},
	{dayCue, regexp.MustCompile(hanDay + `[日号](?:[^楼线房]|$)`), func(m []string) Date { return Date{Day: atoi(m[1])} }},
	{digitCue, regexp.MustCompile(`\b(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)\b`), func(m []string) Date { return Date{Day: atoi(m[1])} }},
	{nameCue, regexp.MustCompile(`\b(january|february|april|june|july|august|september|october|november|december|(?:in|of|by|since|until|early|late|mid|next|last|this|every) (?:march|may))\b(?:,? (?:of )?((?:19|20)\d\d)\b)?`), func(m []string) Date {
		fields := strings.Fields(m[1])
		return Date{Month: monthOf(fields[len(fields)-1]), Year: atoi(m[2])}
	}},
	{weekCue, regexp.MustCompile(`(?:周|星期|礼拜)([一二三四五六日天])`), func(m []string) Date { return Date{Weekday: HanWeekday(m[1])} }},
	{weekNameCue, regexp.MustCompile(`\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b`), func(m []string) Date { return Date{Weekday: WeekdayOf(m[1])} }},
	{centuryCue, regexp.MustCompile(`\b((?:19|20)\d\d)(?:年代?|s\b|\b)`), func(m []string) Date { return Date{Year: atoi(m[1])} }},
	{yearCue, regexp.MustCompile(`([一二][〇零九][〇零一二三四五六七八九]{2})年`), func(m []string) Date { return Date{Year: atoi(m[1])} }},
}

// Mention is a date found in a text.
type Mention struct {
	Date
	Start, End int
}

// Dates finds the dates that are written in a folded text, and returns the text with blanks in their place.
func Dates(text string) (list []Mention, rest string) {
	left, cues := []byte(text), cuesOf(text)
	for _, w := range written {
		if cues&w.cue != w.cue {
			continue
		}
		for _, at := range w.re.FindAllSubmatchIndex(left, -1) {
			groups := make([]string, len(at)/2)
			for i := range groups {
				if at[2*i] >= 0 {
					groups[i] = string(left[at[2*i]:at[2*i+1]])
				}
			}
			p := w.read(groups)
			if p.Day > 31 || p.Month > 12 || p == (Date{}) {
				continue
			}
			list = append(list, Mention{p, at[0], at[1]})
			blankOut(left, at[0], at[1])
		}
	}
	return list, string(left)
}

func blankOut(text []byte, start, end int) {
	for i := start; i < end; i++ {
		text[i] = ' '
	}
}

// atoi is a number in digits or in Chinese characters, or 0.
func atoi(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	if values := hanValues(s); len(values) > 0 {
		n, err := strconv.Atoi(values[0])
		if err == nil {
			return n
		}
	}
	return 0
}

func monthOf(s string) int {
	return strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", s[:3])/3 + 1
}

// WeekdayOf is the number of a day of the week whose English name begins so; 1 is Monday.
func WeekdayOf(s string) int { return strings.Index("montuewedthufrisatsun", s[:3])/3 + 1 }

// HanWeekday is the number of the day of the week that follows 周 in a text.
func HanWeekday(s string) int {
	if s == "天" {
		s = "日"
	}
	return strings.Index("一二三四五六日", s)/len("一") + 1
}

// WeekdayNumber is the number of a day's day of the week.
func WeekdayNumber(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

// Fits reports whether a day is as the date says.
func (p Date) Fits(d time.Time) bool {
	return (p.Year == 0 || p.Year == d.Year()) && (p.Month == 0 || p.Month == int(d.Month())) && (p.Day == 0 || p.Day == d.Day()) &&
		(p.Weekday == 0 || p.Weekday == WeekdayNumber(d))
}
