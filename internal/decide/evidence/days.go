package evidence

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
)

func datesIn(text string) []dates.Date {
	written, _ := dates.Written(text)
	var list []dates.Date
	for _, w := range written {
		list = append(list, w.Date)
	}
	return list
}

// hasDate reports whether a message bears a date out: it is written there, or its relative words may mean it, or it is the
// day on which the message was said.
func (g *ground) hasDate(p dates.Date) bool {
	for _, q := range g.dated {
		if g.covers(q, p) {
			return true
		}
	}
	if p.Fits(g.at) || g.hasMonth(p) {
		return true
	}
	for _, s := range g.spans {
		if s.To.Sub(s.From) > 7*24*time.Hour && p.Day != 0 || s.To.Sub(s.From) > 400*24*time.Hour {
			continue
		}
		for d := s.From; !d.After(s.To); d = d.AddDate(0, 0, 1) {
			if p.Fits(d) {
				return true
			}
		}
	}
	return p.Year != 0 && p.Month == 0 && p.Day == 0 && p.Weekday == 0 && g.hasYear(p.Year)
}

// hasMonth reports whether a month or a year without a day is near the message, and the month is named. People shorten both ("since
// jan", "last yr"), and leave out the year.
func (g *ground) hasMonth(p dates.Date) bool {
	if p.Day != 0 || p.Weekday != 0 || p.Year < g.at.Year()-1 || p.Year > g.at.Year()+1 {
		return false
	}
	if p.Month == 0 {
		return p.Year != 0
	}
	short := strings.ToLower(time.Month(p.Month).String()[:3])
	return slices.ContainsFunc(g.words, func(w string) bool { return strings.HasPrefix(w, short) })
}

// hasYear reports whether a year is named, in short perhaps, or follows from an age or a number of years.
func (g *ground) hasYear(year int) bool {
	if slices.Contains(g.words, fmt.Sprintf("%02d", year%100)) {
		return true
	}
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

// covers reports whether a date that is written in a message bears another out, which may be more complete: a year is one
// near the message's.
func (g *ground) covers(said, p dates.Date) bool {
	if said.Weekday != 0 && said.Month == 0 && said.Day == 0 {
		return p.Weekday == said.Weekday && p.Day == 0 && p.Month == 0
	}
	near := p.Year - g.at.Year()
	if p.Year != 0 && p.Year != said.Year && (said.Year != 0 || near < -1 || near > 1) && !g.numbers[strconv.Itoa(p.Year)] {
		return false
	}
	if p.Month != 0 && p.Month != said.Month {
		apart := (p.Month - int(g.at.Month()) + 12) % 12
		if said.Month != 0 || apart > 1 && apart < 11 || said.Day == 0 {
			return false
		}
	}
	if p.Day != 0 && p.Day != said.Day && (said.Day != 0 || !g.numbers[strconv.Itoa(p.Day)]) {
		return false
	}
	if p.Weekday == 0 || p.Day != 0 {
		return p.Month != 0 || p.Day != 0 || p.Year != 0
	}
	return said.Month != 0 && said.Day != 0 && g.fallsOn(said, p.Weekday)
}

// fallsOn reports whether a date without a year, or with one, may be that day of the week.
func (g *ground) fallsOn(said dates.Date, day int) bool {
	first, last := said.Year, said.Year
	if said.Year == 0 {
		first, last = g.at.Year()-1, g.at.Year()+1
	}
	for y := first; y <= last; y++ {
		if dates.WeekdayNumber(time.Date(y, time.Month(said.Month), said.Day, 0, 0, 0, 0, time.UTC)) == day {
			return true
		}
	}
	return false
}
