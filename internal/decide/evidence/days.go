package evidence

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// partial is a date of which some parts are named; the others are 0.
type partial struct {
	year, month, day int
	weekday          int // 1 is Monday
}

const (
	monthsEN = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`
	hanDay   = `(\d{1,2}|[一二三四五六七八九十廿]{1,4})`
)

// written are the ways to write a date, the longest first. A function reads what the groups hold.
var written = []struct {
	re   *regexp.Regexp
	read func(m []string) partial
}{
	{regexp.MustCompile(`\b((?:19|20)\d\d)\s?[-/.年]\s?(1[0-2]|0?[1-9])\s?[-/.月]\s?(3[01]|[12]\d|0?[1-9])\s?[日号]?`), func(m []string) partial {
		return partial{year: atoi(m[1]), month: atoi(m[2]), day: atoi(m[3])}
	}},
	{regexp.MustCompile(`\b((?:19|20)\d\d)\s?年\s?` + hanDay + `\s?月(?:份)?(?:\s?` + hanDay + `\s?[日号])?`), func(m []string) partial {
		return partial{year: atoi(m[1]), month: atoi(m[2]), day: atoi(m[3])}
	}},
	{regexp.MustCompile(`\b((?:19|20)\d\d)[-/](1[0-2]|0[1-9])\b`), func(m []string) partial { return partial{year: atoi(m[1]), month: atoi(m[2])} }},
	{regexp.MustCompile(`\b` + monthsEN + `\.? (?:the )?(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?\b(?:,? ((?:19|20)\d\d)\b)?`), func(m []string) partial {
		return partial{month: monthOf(m[1]), day: atoi(m[2]), year: atoi(m[3])}
	}},
	{regexp.MustCompile(`\b(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)? (?:of )?` + monthsEN + `\b(?:,? ((?:19|20)\d\d)\b)?`), func(m []string) partial {
		return partial{day: atoi(m[1]), month: monthOf(m[2]), year: atoi(m[3])}
	}},
	{regexp.MustCompile(`\b(1[0-2]|0?[1-9])/(3[01]|[12]\d|0?[1-9])(?:/((?:19|20)\d\d))?\b`), func(m []string) partial {
		return partial{month: atoi(m[1]), day: atoi(m[2]), year: atoi(m[3])}
	}},
	{regexp.MustCompile(`\b([0-4]\d)年` + hanDay + `月(?:份)?(?:` + hanDay + `[日号])?`), func(m []string) partial {
		return partial{year: 2000 + atoi(m[1]), month: atoi(m[2]), day: atoi(m[3])}
	}},
	{regexp.MustCompile(hanDay + `月(?:份)?(?:` + hanDay + `[日号])?`), func(m []string) partial { return partial{month: atoi(m[1]), day: atoi(m[2])} }},
	{regexp.MustCompile(hanDay + `[日号](?:[^楼线房]|$)`), func(m []string) partial { return partial{day: atoi(m[1])} }},
	{regexp.MustCompile(`\b(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)\b`), func(m []string) partial { return partial{day: atoi(m[1])} }},
	{regexp.MustCompile(`\b(january|february|april|june|july|august|september|october|november|december|(?:in|of|by|since|until|early|late|mid|next|last|this|every) (?:march|may))\b(?:,? (?:of )?((?:19|20)\d\d)\b)?`), func(m []string) partial {
		fields := strings.Fields(m[1])
		return partial{month: monthOf(fields[len(fields)-1]), year: atoi(m[2])}
	}},
	{regexp.MustCompile(`(?:周|星期|礼拜)([一二三四五六日天])`), func(m []string) partial { return partial{weekday: hanWeekday(m[1])} }},
	{regexp.MustCompile(`\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b`), func(m []string) partial { return partial{weekday: weekdayOf(m[1])} }},
	{regexp.MustCompile(`\b((?:19|20)\d\d)(?:年代?|s\b|\b)`), func(m []string) partial { return partial{year: atoi(m[1])} }},
	{regexp.MustCompile(`([一二][〇零九][〇零一二三四五六七八九]{2})年`), func(m []string) partial { return partial{year: atoi(m[1])} }},
}

// mention is something found in a text.
type mention struct {
	partial
	start, end int
}

// mentionsIn finds the dates that are written in a folded text, and returns the text with blanks in their place.
func mentionsIn(text string) (list []mention, rest string) {
	left := []byte(text)
	for _, w := range written {
		for _, at := range w.re.FindAllSubmatchIndex(left, -1) {
			groups := make([]string, len(at)/2)
			for i := range groups {
				if at[2*i] >= 0 {
					groups[i] = string(left[at[2*i]:at[2*i+1]])
				}
			}
			p := w.read(groups)
			if p.day > 31 || p.month > 12 || p == (partial{}) {
				continue
			}
			list = append(list, mention{p, at[0], at[1]})
			blankOut(left, at[0], at[1])
		}
	}
	return list, string(left)
}

func partialsIn(text string) []partial {
	list, _ := mentionsIn(text)
	var partials []partial
	for _, m := range list {
		partials = append(partials, m.partial)
	}
	return partials
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

func weekdayOf(s string) int { return strings.Index("montuewedthufrisatsun", s[:3])/3 + 1 }

func hanWeekday(s string) int {
	if s == "天" {
		s = "日"
	}
	return strings.Index("一二三四五六日", s)/len("一") + 1
}

func weekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

// hasDate reports whether a message bears a date out: it is written there, or its relative words may mean it, or it is the
// day on which the message was said.
func (g *ground) hasDate(p partial) bool {
	for _, q := range g.partial {
		if g.covers(q, p) {
			return true
		}
	}
	if p.fits(g.at) {
		return true
	}
	for _, s := range g.spans {
		if s.To.Sub(s.From) > 7*24*time.Hour && p.day != 0 || s.To.Sub(s.From) > 400*24*time.Hour {
			continue
		}
		for d := s.From; !d.After(s.To); d = d.AddDate(0, 0, 1) {
			if p.fits(d) {
				return true
			}
		}
	}
	return p.year != 0 && p.month == 0 && p.day == 0 && p.weekday == 0 && g.hasYear(p.year)
}

// hasYear reports whether a year is named, in short perhaps, or follows from an age or a number of years.
func (g *ground) hasYear(year int) bool {
	short := strconv.Itoa(year % 100)
	if g.numbers[strconv.Itoa(year)] || g.numbers[short] && regexp.MustCompile(`(^|\D)0?`+short+`(后|年|s\b|')|'`+short).MatchString(g.text) {
		return true
	}
	for n := range 3 {
		if back := g.at.Year() - year + n - 1; back >= 0 && g.numbers[strconv.Itoa(back)] {
			return true
		}
	}
	return false
}

// fits reports whether a day is as the date says.
func (p partial) fits(d time.Time) bool {
	return (p.year == 0 || p.year == d.Year()) && (p.month == 0 || p.month == int(d.Month())) && (p.day == 0 || p.day == d.Day()) &&
		(p.weekday == 0 || p.weekday == weekday(d))
}

// covers reports whether a date that is written in a message bears another out, which may be more complete: a year is one
// near the message's.
func (g *ground) covers(said, p partial) bool {
	if said.weekday != 0 && said.month == 0 && said.day == 0 {
		return p.weekday == said.weekday && p.day == 0 && p.month == 0
	}
	near := p.year - g.at.Year()
	if p.year != 0 && p.year != said.year && (said.year != 0 || near < -1 || near > 1) && !g.numbers[strconv.Itoa(p.year)] {
		return false
	}
	if p.month != 0 && p.month != said.month {
		apart := (p.month - int(g.at.Month()) + 12) % 12
		if said.month != 0 || apart > 1 && apart < 11 || said.day == 0 {
			return false
		}
	}
	if p.day != 0 && p.day != said.day && (said.day != 0 || !g.numbers[strconv.Itoa(p.day)]) {
		return false
	}
	if p.weekday == 0 || p.day != 0 {
		return p.month != 0 || p.day != 0 || p.year != 0
	}
	return said.month != 0 && said.day != 0 && g.fallsOn(said, p.weekday)
}

// fallsOn reports whether a date without a year, or with one, may be that day of the week.
func (g *ground) fallsOn(said partial, day int) bool {
	first, last := said.year, said.year
	if said.year == 0 {
		first, last = g.at.Year()-1, g.at.Year()+1
	}
	for y := first; y <= last; y++ {
		if weekday(time.Date(y, time.Month(said.month), said.day, 0, 0, 0, 0, g.at.Location())) == day {
			return true
		}
	}
	return false
}
