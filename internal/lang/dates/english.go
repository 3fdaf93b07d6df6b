package dates

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

const (
	monthsEN = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|` +
		`dec(?:ember)?`
	weekdaysEN = `monday|tuesday|wednesday|thursday|friday|saturday|sunday`
	countEN    = `\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|twenty`
)

var (
	isoDate    = lazyregexp.New(`\b(\d{4})([-/.])(\d{1,2})([-/.])(\d{1,2})\b`)
	monthDay   = lazyregexp.New(`(?i)\b(` + monthsEN + `)\b\.? +(?:the )?(\d{1,2})(?:st|nd|rd|th)?\b(?:,? +(\d{4})\b)?`)
	dayMonth   = lazyregexp.New(`(?i)\b(?:the )?(\d{1,2})(?:st|nd|rd|th)?(?: of)? +(` + monthsEN + `)\b(?:\.?,? +(\d{4})\b)?`)
	monthYear  = lazyregexp.New(`(?i)\b(` + monthsEN + `)\b\.?,? +(?:of )?(\d{4})\b`)
	monthAlone = lazyregexp.New(`(?i)\b(?:in|by|until|till|since|during|of|early|late|mid|around|(last|next|this))[ -](` + monthsEN + `)\b`)
	nearDays   = lazyregexp.New(`(?i)\b(the day after tomorrow|day after tomorrow|the day before yesterday|day before yesterday|today|` +
		`tonight|tomorrow|tmrw|tmr|yesterday|last night|yesterday night|tomorrow night|this (?:morning|afternoon|evening))\b`)
	inUnits    = lazyregexp.New(`(?i)\bin (` + countEN + `) (day|week|month|year)s?(?:'? time)?\b`)
	unitsAgo   = lazyregexp.New(`(?i)\b(` + countEN + `) (day|week|month|year)s? (ago|from (?:now|today))\b`)
	weekday    = lazyregexp.New(`(?i)\b(?:(last|next|this coming|this past|this|coming|past) )?(` + weekdaysEN + `)\b`)
	weekdayAbb = lazyregexp.New(`\b(?:((?i:last|next|this coming|this|on|by|until|till)) )?(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun|mon|` +
		`tues?|wed|thu(?:rs?)?|fri|sat|sun)\b`)
	weekend = lazyregexp.New(`(?i)\b(?:(last|next|this coming|this past|this|coming|past|the) )weekend\b`)
	periods = lazyregexp.New(`(?i)\b(last|next|this) (week|month|year)\b`)
	partEN  = lazyregexp.New(`(?i)\b(?:in the )?(morning|afternoon|evening)\b|\b(?:at )?(night)\b`)

	clock12  = lazyregexp.New(`(?i)\b(\d{1,2})(?:[:.](\d{2}))? ?(a\.m\.|p\.m\.|am|pm)`)
	clock24  = lazyregexp.New(`\b(\d{1,2})[:：](\d{2})\b`)
	oclock   = lazyregexp.New(`(?i)\b(\d{1,2}|` + countEN + `) o['’]clock\b`)
	atHour   = lazyregexp.New(`(?i)\bat (\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b`)
	pastHour = lazyregexp.New(`(?i)\b(half|(?:a )?quarter|five|ten|twenty|twenty[- ]five) (past|to) (\d{1,2}|one|two|three|four|five|` +
		`six|seven|eight|nine|ten|eleven|twelve)\b`)
	namedHour = lazyregexp.New(`(?i)\b(noon|midday|midnight)\b`)
)

// number parses half-width and full-width digits, English words and Chinese numerals. It returns -1 if the text is not a number.
func number(text string) int {
	n, ok := numbers.ParseInt(strings.Map(func(r rune) rune {
		switch {
		case r >= '０' && r <= '９':
			return r - '０' + '0'
		case r == '兩':
			return '两'
		}
		return unicode.ToLower(r)
	}, text))
	if !ok {
		return -1
	}
	return n
}

// monthEN returns the month, 1 to 12, of a name or an abbreviation that monthsEN matches.
func monthEN(name string) int {
	return strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(name)[:3])/3 + 1
}

func weekdayEN(name string) time.Weekday {
	return time.Weekday(strings.Index("sunmontuewedthufrisat", strings.ToLower(name)[:3]) / 3)
}

// each calls do for every match of re with its byte offsets and its groups. groups[0] is the whole match; a group that matched nothing
// is "".
func (f *finder) each(re *lazyregexp.Regexp, do func(start, end int, groups []string)) {
	for _, at := range re.FindAllStringSubmatchIndex(f.text, -1) {
		groups := make([]string, len(at)/2)
		for g := range groups {
			if at[2*g] >= 0 {
				groups[g] = f.text[at[2*g]:at[2*g+1]]
			}
		}
		do(at[0], at[1], groups)
	}
}

func (f *finder) english() {
	digits := strings.ContainsAny(f.text, "0123456789")
	if digits || f.has(monthBeginnings...) {
		f.datesEN()
	}
	if f.has("today", "tom", "tm", "yesterday", "night", "this ") {
		f.daysEN()
	}
	if f.has("day", "week", "month", "year") {
		f.offsetsEN()
		f.periodsEN()
	}
	if f.has("mon", "tue", "wed", "thu", "fri", "sat", "sun") {
		f.weekdaysEN()
	}
	if digits || f.has("o'c", "o’c", "at ", "past", " to ", "noon", "midday", "night", "morning", "evening") {
		f.clocksEN()
	}
}

func (f *finder) datesEN() {
	dated := func(start, end, year, month, day int) {
		if t, ok := f.date(year, month, day); ok {
			f.add(start, end, t, Day, false)
		}
	}
	f.each(isoDate, func(start, end int, g []string) {
		if g[2] == g[4] {
			dated(start, end, number(g[1]), number(g[3]), number(g[5]))
		}
	})
	f.each(monthDay, func(start, end int, g []string) {
		if g[3] != "" {
			dated(start, end, number(g[3]), monthEN(g[1]), number(g[2]))
		} else if day := number(g[2]); day >= 1 && day <= 31 && !f.countsOn(end) {
			f.annual(start, end, monthEN(g[1]), day)
		}
	})
	f.each(dayMonth, func(start, end int, g []string) {
		if g[3] != "" {
			dated(start, end, number(g[3]), monthEN(g[2]), number(g[1]))
		} else if day := number(g[1]); day >= 1 && day <= 31 &&
			(!strings.EqualFold(g[2], "may") && !strings.EqualFold(g[2], "march") || strings.Contains(g[0], "of")) {
			f.annual(start, end, monthEN(g[2]), day)
		}
	})
	f.each(monthYear, func(start, end int, g []string) {
		if year := number(g[2]); year >= 1900 && year <= 2199 {
			f.add(start, end, f.day(year, time.Month(monthEN(g[1])), 1), Month, false)
		}
	})
	f.each(monthAlone, f.monthAlone)
}

// monthAlone adds a month whose year is not named: "in June", "last June".
func (f *finder) monthAlone(start, end int, g []string) {
	month, now := monthEN(g[2]), int(f.said.Month())
	year := f.said.Year()
	switch strings.ToLower(g[1]) {
	case "":
		f.annual(end-len(g[2]), end, month, 0)
		return
	case "next":
		if month <= now {
			year++
		}
	case "last":
		if month >= now {
			year--
		}
	}
	if !f.precededBy(start, "the", "every", "each") {
		f.add(start, end, f.day(year, time.Month(month), 1), Month, true)
	}
}

// countsOn reports whether the number before end is no day, because it counts the next word ("may 5 people") or is the hour of a clock
// time ("may 5:30").
func (f *finder) countsOn(end int) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(f.after(end, 16), " "), " ")
	return strings.HasPrefix(f.after(end, 1), ":") ||
		slices.Contains([]string{"people", "days", "times", "hours", "years", "%"}, strings.TrimRight(word, ".,!?"))
}

// lastWord returns the word before a position, or "" if more than spaces are between them.
func (f *finder) lastWord(at int) string {
	head := strings.TrimRight(f.before(at, 24), " ")
	return head[strings.LastIndexAny(head, " \n\t,.;:!?，。")+1:]
}

func (f *finder) precededBy(at int, words ...string) bool {
	return slices.Contains(words, f.lastWord(at))
}

func (f *finder) followedBy(end int, starts ...string) bool {
	rest := f.after(end, 24)
	return slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(rest, s) })
}

// nowadays matches what follows "today" where it means the present age: "today's youth", "today's day and age".
var nowadays = lazyregexp.New(`^['’]s (world|youth|society|generation|kids|young|age|economy|market|standards|children|teens)|^ ` +
	`?['’]?s? ?and age`)

func (f *finder) daysEN() {
	f.each(nearDays, func(start, end int, g []string) {
		word := strings.ToLower(g[1])
		if nowadays.MatchString(f.after(end, 16)) || f.precededBy(start, "people", "of", "society", "world") && word == "today" {
			return
		}
		days, part := 0, NoPart
		switch {
		case strings.Contains(word, "after tomorrow"):
			days = 2
		case strings.Contains(word, "before yesterday"):
			days = -2
		case strings.HasPrefix(word, "tom"), strings.HasPrefix(word, "tm"):
			days = 1
		case strings.HasPrefix(word, "yest"), word == "last night":
			days = -1
		}
		switch {
		case word == "tonight":
			part = Evening
		case strings.HasSuffix(word, "night"):
			part = Night
		case strings.HasSuffix(word, "morning"):
			part = Morning
		case strings.HasSuffix(word, "afternoon"):
			part = Afternoon
		case strings.HasSuffix(word, "evening"):
			part = Evening
		}
		f.add(start, end, later(f.today(), days), Day, true, withPart(part))
	})
}

func (f *finder) offsetsEN() {
	f.each(inUnits, func(start, end int, g []string) {
		if !f.followedBy(end, " of", " after", " before", "-") && !f.precededBy(start, "once", "twice", "times") {
			f.offset(start, end, number(g[1]), unitOf(strings.ToLower(g[2])))
		}
	})
	f.each(unitsAgo, func(start, end int, g []string) {
		n := number(g[1])
		if strings.EqualFold(g[3], "ago") {
			n = -n
		}
		if !f.precededBy(start, "than", "half", "and", "or", "over", "almost", "nearly") {
			f.offset(start, end, n, unitOf(strings.ToLower(g[2])))
		}
	})
}

// recurs are the words before a weekday that then is no single date: "every Monday", "a busy Monday", "Black Friday".
var recurs = []string{
	"every", "each", "any", "all", "some", "most", "one", "a", "an", "the", "my", "our", "your", "his", "her", "their", "its", "that", "other",
	"great", "nice", "bad", "rough", "long", "busy", "lovely", "lazy", "typical", "normal", "terrible", "awful", "perfect", "wonderful",
	"black", "good", "cyber", "easter", "ash", "palm", "super", "fat", "from", "after", "before",
}

func (f *finder) weekdaysEN() {
	f.each(weekday, func(start, end int, g []string) { f.weekday(start, end, g[1], g[2]) })
	f.each(weekdayAbb, func(start, end int, g []string) {
		which := strings.ToLower(g[1])
		plain := slices.Contains([]string{"Tue", "Tues", "Thu", "Thur", "Thurs", "Fri"}, g[2])
		if which == "" && !plain || which != "next" && which != "last" && g[2][0] >= 'a' {
			return // "I sat in the sun"
		}
		if which == "on" || which == "by" || which == "until" || which == "till" {
			start, which = end-len(g[2]), ""
		}
		f.weekday(start, end, which, g[2])
	})
}

var rangeEN = lazyregexp.New(`^ ?(to|through|thru|till|until|-|–|—|&|and|or) ?(mon|tue|wed|thu|fri|sat|sun)`)

func (f *finder) weekday(start, end int, which, name string) {
	d := weekdayEN(name)
	head := f.before(start, 24)
	switch {
	case f.precededBy(start, recurs...), rangeEN.MatchString(f.after(end, 16)),
		f.followedBy(end, "s", "-", "'s", "’s", " mornings", " nights", " evenings", " afternoons"),
		strings.HasSuffix(head, "day to ") || strings.HasSuffix(head, "day through ") || strings.HasSuffix(head, "day - ") ||
			strings.HasSuffix(head, "day-") || strings.HasSuffix(head, "day and ") || strings.HasSuffix(head, "day or "):
		return
	}
	switch strings.ToLower(which) {
	case "next":
		f.add(start, end, later(f.monday(1), sinceMonday(d)), Day, true, isWeekday)
	case "last", "past", "this past":
		f.add(start, end, later(f.coming(d), -7-7*boolInt(d == f.said.Weekday())), Day, true, isWeekday)
	case "this":
		t := f.coming(d)
		if d == f.said.Weekday() {
			t = f.today()
		}
		f.add(start, end, t, Day, true, isWeekday, isOpen)
	case "this coming", "coming":
		f.add(start, end, f.coming(d), Day, true, isWeekday)
	default:
		f.add(start, end, f.coming(d), Day, true, isWeekday, isOpen)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (f *finder) periodsEN() {
	f.each(weekend, func(start, end int, g []string) {
		if f.followedBy(end, "s", "-", "'", "’") || f.precededBy(start, "every", "each") {
			return
		}
		weeks := map[string]int{"next": 1, "last": -1, "past": -1, "this past": -1}[strings.ToLower(g[1])]
		open := func(*atom) {}
		if strings.EqualFold(g[1], "the") {
			open = isOpen
		}
		f.add(start, end, later(f.monday(weeks), 5), Weekend, true, open)
	})
	f.each(periods, func(start, end int, g []string) {
		n := map[string]int{"last": -1, "next": 1}[strings.ToLower(g[1])]
		if f.precededBy(start, "the", "my", "every", "each", "day", "time") || f.followedBy(end, "s", "-", "end") {
			return
		}
		switch strings.ToLower(g[2]) {
		case "week":
			f.add(start, end, f.monday(n), Week, true)
		case "month":
			f.add(start, end, f.day(f.said.Year(), f.said.Month()+time.Month(n), 1), Month, true)
		default:
			f.add(start, end, f.day(f.said.Year()+n, 1, 1), Year, true)
		}
	})
}

var partsEN = map[string]Part{"morning": Morning, "afternoon": Afternoon, "evening": Evening, "night": Night}

func (f *finder) clocksEN() {
	f.each(partEN, func(start, end int, g []string) {
		if !f.followedBy(end, "s", "-", "'") {
			f.atoms = append(f.atoms, atom{start: start, end: end, kind: partAtom, part: partsEN[strings.ToLower(g[1]+g[2])], needs: true})
		}
	})
	f.each(clock12, func(start, end int, g []string) {
		hour := number(g[1])
		if hour < 1 || hour > 12 || f.followedBy(end, "o", "e", "a", "i") {
			return
		}
		hour %= 12
		if strings.EqualFold(g[3][:1], "p") {
			hour += 12
		}
		f.clock(start, end, hour, max(number(g[2]), 0), g[2] != "", true, false)
	})
	f.each(clock24, func(start, end int, g []string) {
		if !strings.HasPrefix(f.after(end, 1), ":") && !strings.HasSuffix(f.before(start, 1), ":") {
			f.clock(start, end, number(g[1]), number(g[2]), true, len(g[1]) == 2 && g[1][0] == '0', false)
		}
	})
	f.each(oclock, func(start, end int, g []string) { f.clock(start, end, number(g[1]), 0, false, false, false) })
	f.each(atHour, func(start, end int, g []string) {
		if hour := number(g[1]); hour >= 1 && hour <= 12 && f.endsClause(end) {
			f.clock(end-len(g[1]), end, hour, 0, false, false, false)
		}
	})
	f.each(pastHour, f.pastHour)
	f.each(namedHour, func(start, end int, g []string) {
		hour := 12
		if strings.EqualFold(g[1], "midnight") {
			hour = 24
		}
		f.clock(start, end, hour, 0, false, true, false)
	})
}

// pastHour adds "half past eight" and "quarter to nine".
func (f *finder) pastHour(start, end int, g []string) {
	minute := map[string]int{"half": 30, "five": 5, "ten": 10, "twenty": 20}[strings.ToLower(g[1])]
	switch {
	case strings.HasSuffix(strings.ToLower(g[1]), "quarter"):
		minute = 15
	case minute == 0: // "twenty-five"
		minute = 25
	}
	hour := number(g[3])
	if hour < 1 || hour > 12 {
		return
	}
	if strings.EqualFold(g[2], "to") {
		hour, minute = (hour+10)%12+1, 60-minute
	}
	f.clock(start, end, hour, minute, true, false, false)
}

var clauseEnd = lazyregexp.New(`(?i)^\s*($|[,.;!?)，。]|(on|this|next|tomorrow|today|tonight|in|with|for|and|but|so|sharp|i|we|mon|tue|` +
	`wed|thu|fri|sat|sun)[a-z]*\b)`)

// endsClause reports whether the number before end counts nothing that follows: "at 3 on Friday", but not "at 5 places".
func (f *finder) endsClause(end int) bool { return clauseEnd.MatchString(f.after(end, 16)) }
