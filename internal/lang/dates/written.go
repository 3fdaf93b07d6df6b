package dates

import (
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

// Date is a date of which some parts are named; the others are 0.
type Date struct {
	Year, Month, Day int
	Weekday          int // 1 is Monday
}

const (
	monthNames = `(` + monthsEN + `)`
	hanDay     = `(\d{1,2}|[一二三四五六七八九十廿]{1,4})`
	century    = `((?:19|20)\d\d)`
)

const monthDayDigits = `(3[01]|[12]\d|0?[1-9])`

// patterns are the ways to write a date, the longest first. read gets the groups of a match.
var patterns = []struct {
	cues cue // what must be in the text for the pattern to match
	re   *lazyregexp.Regexp
	read func(m []string) Date
}{
	{centuryCue, lazyregexp.New(`\b` + century + `\s?[-/.年]\s?(1[0-2]|0?[1-9])\s?[-/.月]\s?` + monthDayDigits + `\s?[日号]?`), yearMonthDay},
	{yearCue, lazyregexp.New(`\b` + century + `\s?年\s?` + hanDay + `\s?月(?:份)?(?:\s?` + hanDay + `\s?[日号])?`), yearMonthDay},
	{centuryCue, lazyregexp.New(`\b` + century + `[-/](1[0-2]|0[1-9])\b`), func(m []string) Date {
		return Date{Year: numbers.Int(m[1]), Month: numbers.Int(m[2])}
	}},
	{nameCue | digitCue, lazyregexp.New(`\b` + monthNames + `\.? (?:the )?` + monthDayDigits + `(?:st|nd|rd|th)?\b(?:,? ` + century +
		`\b)?`), func(m []string) Date {
		return Date{Month: monthEN(m[1]), Day: numbers.Int(m[2]), Year: numbers.Int(m[3])}
	}},
	{nameCue | digitCue, lazyregexp.New(`\b` + monthDayDigits + `(?:st|nd|rd|th)? (?:of )?` + monthNames + `\b(?:,? ` + century +
		`\b)?`), func(m []string) Date {
		return Date{Day: numbers.Int(m[1]), Month: monthEN(m[2]), Year: numbers.Int(m[3])}
	}},
	{nameCue | centuryCue, lazyregexp.New(`\b` + monthNames + `\.?,? (?:of )?` + century + `\b`), func(m []string) Date {
		return Date{Month: monthEN(m[1]), Year: numbers.Int(m[2])}
	}},
	{slashCue, lazyregexp.New(`\b(1[0-2]|0?[1-9])/` + monthDayDigits + `(?:/` + century + `)?\b`), func(m []string) Date {
		return Date{Month: numbers.Int(m[1]), Day: numbers.Int(m[2]), Year: numbers.Int(m[3])}
	}},
	{yearCue, lazyregexp.New(`\b([0-4]\d)年` + hanDay + `月(?:份)?(?:` + hanDay + `[日号])?`), func(m []string) Date {
		return Date{Year: 2000 + numbers.Int(m[1]), Month: numbers.Int(m[2]), Day: numbers.Int(m[3])}
	}},
	{monthCue, lazyregexp.New(hanDay + `月(?:份)?(?:` + hanDay + `[日号])?`), func(m []string) Date {
		return Date{Month: numbers.Int(m[1]), Day: numbers.Int(m[2])}
	}},
	{dayCue, lazyregexp.New(hanDay + `[日号](?:[^楼线房]|$)`), func(m []string) Date { return Date{Day: numbers.Int(m[1])} }},
	{digitCue, lazyregexp.New(`\b` + monthDayDigits + `(?:st|nd|rd|th)\b`), func(m []string) Date { return Date{Day: numbers.Int(m[1])} }},
	{nameCue, lazyregexp.New(`\b(january|february|april|june|july|august|september|october|november|december` +
		`|(?:in|of|by|since|until|early|late|mid|next|last|this|every) (?:march|may))\b`), func(m []string) Date {
		fields := strings.Fields(m[1])
		return Date{Month: monthEN(fields[len(fields)-1])}
	}},
	{weekCue, lazyregexp.New(`(?:周|星期|礼拜)([一二三四五六日天])`), func(m []string) Date { return Date{Weekday: weekdayNumberZH(m[1])} }},
	{weekNameCue, lazyregexp.New(`\b(` + weekdaysEN + `)s?\b`), func(m []string) Date { return Date{Weekday: weekdayNumberEN(m[1])} }},
	{centuryCue, lazyregexp.New(`\b` + century + `(?:年代?|s\b|\b)`), func(m []string) Date { return Date{Year: numbers.Int(m[1])} }},
	{yearCue, lazyregexp.New(`([一二][〇零九][〇零一二三四五六七八九]{2})年`), func(m []string) Date { return Date{Year: numbers.Int(m[1])} }},
}

func yearMonthDay(m []string) Date {
	return Date{Year: numbers.Int(m[1]), Month: numbers.Int(m[2]), Day: numbers.Int(m[3])}
}

// WrittenDate is a date found in a text.
type WrittenDate struct {
	Date
	Start, End int
}

// Written finds the dates that are written in a folded text, and returns the text with blanks in their place.
func Written(text string) (list []WrittenDate, rest string) {
	left, cues := []byte(text), cuesOf(text)
	for _, w := range patterns {
		if cues&w.cues != w.cues {
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
			list = append(list, WrittenDate{p, at[0], at[1]})
			blankOut(left, at[0], at[1])
		}
	}
	slices.SortFunc(list, func(a, b WrittenDate) int { return a.Start - b.Start })
	return list, string(left)
}

func blankOut(text []byte, start, end int) {
	for i := start; i < end; i++ {
		text[i] = ' '
	}
}

// weekdayNumberEN is the number of the day of the week that a name begins with; 1 is Monday.
func weekdayNumberEN(name string) int { return sinceMonday(weekdayEN(name)) + 1 }

// weekdayNumberZH is the number of the day of the week that follows 周.
func weekdayNumberZH(s string) int {
	if s == "天" {
		s = "日"
	}
	return strings.Index("一二三四五六日", s)/len("一") + 1
}

// WeekdayNumber is the number of a day's day of the week; 1 is Monday.
func WeekdayNumber(t time.Time) int { return sinceMonday(t.Weekday()) + 1 }

// Fits reports whether a day is as the date says.
func (p Date) Fits(d time.Time) bool {
	return (p.Year == 0 || p.Year == d.Year()) && (p.Month == 0 || p.Month == int(d.Month())) && (p.Day == 0 || p.Day == d.Day()) &&
		(p.Weekday == 0 || p.Weekday == WeekdayNumber(d))
}

// Exists reports whether a date with year and month is in the calendar.
func (p Date) Exists() bool {
	t := time.Date(p.Year, time.Month(p.Month), max(p.Day, 1), 0, 0, 0, 0, time.UTC)
	return p.Year > 0 && t.Year() == p.Year && int(t.Month()) == p.Month
}
