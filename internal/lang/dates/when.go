// Package dates reads dates and times in English and Chinese text. Find resolves mentions such as "next Friday at 3pm" and "明天下午三点"
// against the time at which they were said; Possible lists all readings; Written, Clocks and Numeric read what is written and resolve
// nothing.
//
// Weeks begin on Monday. "下周三" and "next Wednesday" are the Wednesday of the following week; "上周五" is the Friday of the week before,
// while "last Friday" is the most recent one before today, as English speakers mean it. "This Friday" and a bare "Friday" are the coming
// one. "The weekend" is the coming one, or the current one.
//
// Find skips what is ambiguous or recurs: "soon", "最近", "a few days ago", "every Monday", "每周三", "on Sundays", "周一到周五", "today's youth".
// It also skips durations ("for two years", "两年了") and times relative to another event ("出院三天后").
package dates

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Precision is how exactly a mention tells the time.
type Precision int

// The precisions, finest first.
const (
	Minute  Precision = iota // "15:30", "half past eight"
	Hour                     // "3pm"
	DayPart                  // "tomorrow morning"
	Day
	Weekend
	Week
	Month
	Year
)

// Part is a part of the day.
type Part int

// The parts. They last from 0 to 6, 6 to 12, 11 to 14, 12 to 18 and 18 to 24 o'clock; a night, too, begins at 18 o'clock,
// because "last night" is yesterday's evening more often than not.
const (
	NoPart Part = iota
	SmallHours
	Morning
	Noon
	Afternoon
	Evening
	Night
)

// hours are the first hour of a part and the one after its last.
func (p Part) hours() (from, to int) {
	switch p {
	case SmallHours:
		return 0, 6
	case Morning:
		return 6, 12
	case Noon:
		return 11, 14
	case Afternoon:
		return 12, 18
	case Evening, Night:
		return 18, 24
	default:
		return 0, 24
	}
}

// Mention is words that tell a time.
type Mention struct {
	Start, End int // byte positions in the text
	Text       string
	From, To   time.Time // the time meant, up to To, without it
	Precision  Precision
	// Relative: it takes the time of the message to understand the words. Those of a date without a year do not count.
	Relative bool
	// Open: the words do not say whether they look ahead ("on Friday", "in June"), and the coming time was taken. Past is
	// the other one.
	Open bool
	// Calendar is what of it names a day, week, month or year; its End is 0 when a clock time stands alone, which is then
	// taken for one of the day of the message.
	Calendar Calendar
	// Unsure: the hour could as well be twelve hours later, "at 3", "三点".
	Unsure bool
}

// Calendar is the part of a mention that names a day, or something longer.
type Calendar struct {
	Start, End int // byte positions in the text
	From, To   time.Time
	Precision  Precision // Day or coarser
	Weekday    bool      // a day of the week is named: "next Friday"
	Part       Part      // named in the same word: "tonight", "今晚"
	Offset     bool      // counted from the message: "in three days", "两周前"
}

// Past is what an Open mention means when it looks back.
func (m Mention) Past() Mention {
	if !m.Open {
		return m
	}
	back := func(t time.Time) time.Time {
		if m.Calendar.Weekday || m.Calendar.Precision == Weekend {
			return t.AddDate(0, 0, -7)
		}
		return t.AddDate(-1, 0, 0)
	}
	m.From, m.To = back(m.From), back(m.To)
	m.Calendar.From, m.Calendar.To = back(m.Calendar.From), back(m.Calendar.To)
	return m
}

// maxText is how many bytes of a text are read. No message about an appointment is longer.
const maxText = 64 << 10

// Find lists the mentions in a text in order; they do not overlap. said is when it was said and zone where the speaker is, nil
// for UTC.
func Find(text string, said time.Time, zone *time.Location) []Mention {
	if zone == nil {
		zone = time.UTC
	}
	text = text[:min(len(text), maxText)]
	f := &finder{text: text, said: said.In(zone), lower: strings.ToLower(text)}
	f.chinese()
	f.english()
	return f.mentions()
}

// finder collects the atoms of one text.
type finder struct {
	text  string
	lower string // for has only: positions may differ
	said  time.Time
	atoms []atom
}

// atom is a word or phrase that names a day or longer, a part of a day, or a clock time.
type atom struct {
	start, end int
	kind       atomKind
	calendar   Calendar
	relative   bool
	open       bool
	part       Part
	hour, min  int
	exact      bool // the minute is named
	unsure     bool // the hour may be 12 hours later
	needs      bool // means a time only next to a day or a part of a day: "morning", "一点"
}

type atomKind int

const (
	calendarAtom atomKind = iota
	partAtom
	clockAtom
)

// has reports whether one of the words is in the text. It spares most texts most of the patterns, which cost far more.
func (f *finder) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(f.lower, w) })
}

func (f *finder) today() time.Time { return f.day(f.said.Year(), f.said.Month(), f.said.Day()) }

func (f *finder) day(year int, month time.Month, day int) time.Time {
	return memory.StartOfDay(year, month, day, f.said.Location())
}

// date is a day of the calendar; ok is false for a day that does not exist, such as February 30th.
func (f *finder) date(year, month, day int) (time.Time, bool) {
	t := f.day(year, time.Month(month), day)
	return t, year >= 1900 && year <= 2199 && month >= 1 && month <= 12 && t.Day() == day && int(t.Month()) == month
}

// monday is that of the week so many weeks from the message's.
func (f *finder) monday(weeks int) time.Time {
	return later(f.today(), -sinceMonday(f.said.Weekday())+7*weeks)
}

// later is the day so many days after another.
func later(day time.Time, days int) time.Time {
	return memory.StartOfDay(day.Year(), day.Month(), day.Day()+days, day.Location())
}

func sinceMonday(d time.Weekday) int { return (int(d) + 6) % 7 }

// coming is the next such day of the week, after today.
func (f *finder) coming(d time.Weekday) time.Time {
	ahead := (int(d) - int(f.said.Weekday()) + 7) % 7
	if ahead == 0 {
		ahead = 7
	}
	return later(f.today(), ahead)
}

// add adds an atom of the calendar that begins at from and lasts as long as its precision says.
func (f *finder) add(start, end int, from time.Time, p Precision, relative bool, change ...func(*atom)) {
	c := Calendar{Start: start, End: end, From: from, Precision: p}
	switch p {
	case Weekend:
		c.To = later(from, 2)
	case Week:
		c.To = later(from, 7)
	case Month:
		c.To = from.AddDate(0, 1, 0)
	case Year:
		c.To = from.AddDate(1, 0, 0)
	default:
		c.To = later(from, 1)
	}
	if year := from.Year(); year < 1900 || year > 2199 {
		return
	}
	a := atom{start: start, end: end, kind: calendarAtom, calendar: c, relative: relative}
	for _, do := range change {
		do(&a)
	}
	f.atoms = append(f.atoms, a)
}

func isOpen(a *atom)    { a.open = true }
func isWeekday(a *atom) { a.calendar.Weekday = true }
func isOffset(a *atom)  { a.calendar.Offset = true }

func withPart(p Part) func(*atom) { return func(a *atom) { a.calendar.Part = p } }

// offset adds the date n units after the message, or before it if n is negative. The precision is the unit: "two weeks ago" is a week.
func (f *finder) offset(start, end, n int, unit Precision) {
	switch unit {
	case Day:
		f.add(start, end, later(f.today(), n), Day, true, isOffset)
	case Week:
		f.add(start, end, f.monday(n), Week, true, isOffset)
	case Month:
		f.add(start, end, f.day(f.said.Year(), f.said.Month()+time.Month(n), 1), Month, true, isOffset)
	default:
		f.add(start, end, f.day(f.said.Year()+n, 1, 1), Year, true, isOffset)
	}
}

// annual adds a day, or a month if day is 0, whose year is not named. It takes the next such day that is not past, or month, which may be
// the present one.
func (f *finder) annual(start, end, month, day int) {
	year := f.said.Year()
	if day == 0 {
		if month < int(f.said.Month()) {
			year++
		}
		f.add(start, end, f.day(year, time.Month(month), 1), Month, false, isOpen)
		return
	}
	for range 8 { // until there is a February 29th
		if t, ok := f.date(year, month, day); ok && !t.Before(f.today()) {
			f.add(start, end, t, Day, false, isOpen)
			return
		}
		year++
	}
}

// clock adds a clock time. hour is 0 to 24; exact means that the minute is named, sure that the hour is one of 24 and not of 12, and
// needs that it means a time only next to a day or a part of a day.
func (f *finder) clock(start, end, hour, minute int, exact, sure, needs bool) {
	if hour > 24 || minute > 59 || hour == 24 && minute > 0 {
		return
	}
	unsure := !sure && hour >= 1 && hour <= 12
	f.atoms = append(f.atoms, atom{start: start, end: end, kind: clockAtom, hour: hour, min: minute, exact: exact, unsure: unsure, needs: needs})
}

// onPart returns the hour of the day, 0 to 28, for an hour from 1 to 12 in a part of the day: 3 in the afternoon is 15. More than 24 means
// the next day. It returns false if the part does not determine the hour.
func onPart(hour int, p Part) (int, bool) {
	switch p {
	case SmallHours, Morning:
		return hour % 12, hour <= 12
	case Noon:
		if hour < 5 {
			return hour + 12, true
		}
		return hour, hour > 9
	case Afternoon:
		if hour < 12 {
			return hour + 12, true
		}
		return hour, true
	case Evening, Night:
		switch {
		case hour >= 5 && hour < 12:
			return hour + 12, true
		case hour == 12:
			return 24, true
		case hour < 5: // "夜里两点": the small hours after it
			return hour + 24, true
		}
		return hour, true
	default:
		return hour, false
	}
}

// between matches the text that may be between the parts of one mention.
var between = lazyregexp.New(`^(?i)[\s,，(（]*(at|on|@|around|about|by|from|in the|of|的|大概|大约|约|差不多)?[\s]*$`)

// mentions joins the atoms that belong together.
func (f *finder) mentions() []Mention {
	slices.SortStableFunc(f.atoms, func(a, b atom) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var out []Mention
	end := 0
	for i := 0; i < len(f.atoms); {
		group := []atom{f.atoms[i]}
		if f.atoms[i].start < end { // inside the previous group
			i++
			continue
		}
		end = f.atoms[i].end
		for i++; i < len(f.atoms); i++ {
			next := f.atoms[i]
			if next.start < end {
				continue
			}
			if next.start-end > 24 || !between.MatchString(f.text[end:next.start]) || !f.belongs(group, next) {
				break
			}
			group = append(group, next)
			end = next.end
		}
		if m, ok := f.join(group); ok {
			out = append(out, m)
		}
	}
	return out
}

// belongs reports whether an atom tells more about the time of a group.
func (f *finder) belongs(group []atom, next atom) bool {
	for _, a := range group {
		switch {
		case a.kind != next.kind:
			if a.kind == calendarAtom && a.calendar.Precision > Day || next.kind == calendarAtom && next.calendar.Precision > Day {
				return false
			}
		case a.kind != calendarAtom:
			return false
		case a.calendar.Weekday == next.calendar.Weekday, a.calendar.Precision != Day, next.calendar.Precision != Day,
			a.calendar.From.Weekday() != next.calendar.From.Weekday():
			return false // "Friday, November 27th" is one day, "today and tomorrow" are two
		}
	}
	return true
}

func (f *finder) join(group []atom) (Mention, bool) {
	day, clock, part, useful := parts(group)
	if !useful && len(group) < 2 {
		return Mention{}, false
	}
	m := Mention{Start: group[0].start, End: group[len(group)-1].end, Relative: day == nil || day.relative, Open: day != nil && day.open}
	m.Text = f.text[m.Start:m.End]
	base := f.today()
	m.From, m.To, m.Precision = base, later(base, 1), Day
	named := NoPart
	if day != nil {
		m.Calendar = day.calendar
		base, named = day.calendar.From, day.calendar.Part
		m.From, m.To, m.Precision = day.calendar.From, day.calendar.To, day.calendar.Precision
	}
	if part != nil {
		named = part.part
	}
	at := func(hour, minute int) time.Time {
		return time.Date(base.Year(), base.Month(), base.Day(), hour, minute, 0, 0, base.Location())
	}
	switch {
	case clock != nil:
		hour := clock.hour
		m.Unsure = clock.unsure
		if h, fixed := onPart(hour, named); fixed && clock.unsure {
			hour, m.Unsure = h, false
		}
		m.From, m.To, m.Precision = at(hour, clock.min), at(hour, clock.min+1), Minute
		if !clock.exact {
			m.To, m.Precision = at(hour+1, 0), Hour
		}
	case named != NoPart:
		from, to := named.hours()
		m.From, m.To, m.Precision = at(from, 0), at(to, 0), DayPart
	}
	return m, true
}

// parts are the day, the clock time and the part of the day in a group, nil where it has none. useful is false when none of
// them tells a time alone.
func parts(group []atom) (day, clock, part *atom, useful bool) {
	for i := range group {
		a := &group[i]
		useful = useful || !a.needs
		switch {
		case a.kind == clockAtom:
			clock = a
		case a.kind == partAtom:
			part = a
		case day == nil:
			day = a
		case day.calendar.Weekday && day.open: // "Friday, November 27th": the date says more
			a.calendar.Start = day.calendar.Start
			day = a
		default:
			day.calendar.End = a.calendar.End
		}
	}
	return day, clock, part, useful
}

// before is the text in front of a position, lower case, at most n bytes of it.
func (f *finder) before(at, n int) string {
	from := max(0, at-n)
	for from < at && !utf8.RuneStart(f.text[from]) {
		from++
	}
	return strings.ToLower(f.text[from:at])
}

// after is the text behind a position, lower case, at most n bytes of it.
func (f *finder) after(at, n int) string {
	to := min(len(f.text), at+n)
	for to > at && to < len(f.text) && !utf8.RuneStart(f.text[to]) {
		to--
	}
	return strings.ToLower(f.text[at:to])
}
