package rules

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/dates"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// date replaces "tomorrow" and the like with calendar days, because the memory will be read on another day, and sets when an arrangement
// ends. The quote keeps the original words.
func (r *Rules) date(u *unit, t decide.Transcript) {
	if u.lang != chinese && u.lang != english {
		return
	}
	said := t.Dialogue.Messages[u.messages[0]].Time
	u.text = withoutHead(u.text, u.lang)
	masked := newSource(0, u.text).norm
	quoted := quotedText(u.text)
	text, pos, inQuote := "", 0, false
	var over time.Time
	for _, m := range dates.Find(u.text, said, t.Location) {
		if !quoted && strings.ContainsRune(masked[m.Start:m.End], maskedRune) {
			continue // a title, or another's words
		}
		if again(u.text, m, u.lang) {
			continue
		}
		if looksBack(clauseAround(u.text, m.Start, m.End), u.lang) {
			if m.Calendar.Offset && !m.Calendar.From.Before(said) {
				continue // "I finished it in three days": how long it took
			}
			m = m.Past()
		}
		if end := m.Calendar.To; end.After(said) && end.After(over) && !begins(u.text, m) {
			over = end
		}
		switch {
		case !m.Relative || m.Calendar.End == 0:
		case quoted:
			inQuote = true
		default:
			start, end, words := day(u.text, m, u.lang)
			text += u.text[pos:start] + words
			pos = end
		}
	}
	text += u.text[pos:]
	if inQuote {
		text = saidOn(text, said.In(zoneOf(t)))
	}
	if r.arranged(u) {
		u.validTo = over
	}
	if pos == 0 && !inQuote || utf8.RuneCountInString(text) > r.maxRunes {
		return
	}
	u.text = text
}

// day is what to put in place of a mention's day, and from where to where.
func day(text string, m dates.Mention, lang string) (start, end int, words string) {
	if lang == chinese {
		words := dayZH(m)
		if ageZH.MatchString(text[m.Calendar.End:]) {
			words += "时" // 今年20岁
		}
		return m.Calendar.Start, m.Calendar.End, words
	}
	return dayEN(text, m)
}

const maskedRune = rune(masked)

// ageZH is an age after a year: 今年20岁.
var ageZH = lazyregexp.New(`^[0-9一二三四五六七八九十]{1,3}岁`)

func zoneOf(t decide.Transcript) *time.Location {
	if t.Location == nil {
		return time.UTC
	}
	return t.Location
}

// arranged reports whether a unit ends on some day.
func (r *Rules) arranged(u *unit) bool {
	return set1(string(u.kind), string(memory.KindAppointment), string(memory.KindPlan), string(memory.KindTask)) && !recurring.MatchString(u.text)
}

var (
	recurring = lazyregexp.New(`(?i)每|天天|经常|总是|\b(every|each|always|usually|often|daily|weekly|monthly|yearly|annually)\b`)
	quotes    = lazyregexp.New(`^(用户|助手|The user |Asked )(说|确认了|问|said|confirmed|")`)
)

// quotedText reports whether a statement quotes its speaker.
func quotedText(text string) bool { return quotes.MatchString(text) }

// saidOn tells in a statement that quotes its speaker when that was said.
func saidOn(text string, said time.Time) string {
	zh, en := said.Format("2006年1月2日"), " on "+said.Format(time.DateOnly)
	for _, head := range [][2]string{
		{"用户说", "用户" + zh + "说"},
		{"用户确认了", "用户" + zh + "确认了"},
		{"助手问", zh + "助手问"},
		{"The user said", "The user said" + en},
		{"The user confirmed", "The user confirmed" + en},
		{"Asked ", "Asked" + en + ", "},
	} {
		if rest, ok := strings.CutPrefix(text, head[0]); ok {
			return head[1] + rest
		}
	}
	return text
}

// clauseAround is the part between punctuation that holds a span.
func clauseAround(text string, start, end int) string {
	const marks = "，。；！？,;!?\n“”\""
	from, to := 0, len(text)
	if at := strings.LastIndexAny(text[:start], marks); at >= 0 {
		_, n := utf8.DecodeRuneInString(text[at:])
		from = at + n
	}
	if at := strings.IndexAny(text[end:], marks); at >= 0 {
		to = end + at
	}
	return text[from:to]
}

var (
	doneZH  = lazyregexp.New(`[^为]了|过[^敏来去]|过$|刚`)
	aheadZH = lazyregexp.New(`要|会[^议]|将|打算|准备|计划|得去|约了|约好|定了|订了|预约|改到|改成|推迟|推到|提前到|报名|想去|安排|快.*了`)
	aheadEN = lazyregexp.New(`(?i)\b(will|'ll|going to|have to|has to|need to|needs to|must|should|is|are|booked|scheduled|arranged|` +
		`moved to|postponed|due|plan|plans|planning|` +
		`(?:decides?|decided|agrees?|agreed|promised?|promises|offer|offered|volunteered|intends?|intended|hopes?|hoping) to|signed up|` +
		`registered|asked the assistant to)\b`)
	pastWords = lazyregexp.New(`(?i)[a-z']+`)
)

// looksBack reports whether a clause is about the past.
func looksBack(clause, lang string) bool {
	if lang == chinese {
		return doneZH.MatchString(clause) && !aheadZH.MatchString(clause)
	}
	if aheadEN.MatchString(clause) {
		return false
	}
	for _, w := range pastWords.FindAllString(strings.ToLower(clause), -1) {
		if pastForms[w] || strings.HasSuffix(w, "ed") && len(w) > 4 && !eedVerbs[w] {
			return true
		}
	}
	return false
}

var (
	startsEN = lazyregexp.New(`(?i)\b(from|since|starting|beginning|starting on|beginning on|as of)( on)? $`)
	startsZH = lazyregexp.New(`(从|從|自|自从)$`)
	onwards  = lazyregexp.New(`^([^，,。]{0,4})?(起|开始|開始)|(?i)^ (on|onwards?)\b`)
)

// begins reports whether a time is the beginning of a lasting state: "from Monday", "明天起".
func begins(text string, m dates.Mention) bool {
	return startsEN.MatchString(text[:m.Start]) || startsZH.MatchString(text[:m.Start]) || onwards.MatchString(text[m.End:])
}

// dayZH names a mention's day, month or year in Chinese.
func dayZH(m dates.Mention) string {
	c := m.Calendar
	switch c.Precision {
	case dates.Year:
		return c.From.Format("2006年")
	case dates.Month:
		return c.From.Format("2006年1月")
	case dates.Week:
		return c.From.Format("2006年1月2日那周")
	case dates.Weekend:
		return c.From.Format("2006年1月2日那个周末")
	default:
	}
	day := c.From.Format("2006年1月2日")
	if c.Weekday {
		day += "（周" + string([]rune("日一二三四五六")[c.From.Weekday()]) + "）"
	}
	switch c.Part {
	case dates.Morning:
		day += "早上"
	case dates.Evening:
		day += "晚上"
	case dates.Night:
		day += "夜里"
	default:
	}
	return day
}

// partsEN name the parts of a day.
var partsEN = map[dates.Part]string{dates.Morning: "morning", dates.Afternoon: "afternoon", dates.Evening: "evening", dates.Night: "night"}

var (
	partAfterEN = lazyregexp.New(`(?i)^ (morning|afternoon|evening|night)\b`)
	// What a date follows directly: "by 2026-11-22". After any other word it takes a preposition of its own.
	takesDate = lang.Set("by until till before after since from for of to about between during through throughout than as like starting " +
		"beginning all")
	// The same before some dates only: "on Friday", but "I put it on yesterday"; "over the weekend", but "they came over yesterday".
	takesSome = map[string]func(dates.Calendar) bool{
		"on":     func(c dates.Calendar) bool { return c.Weekday || c.Precision == dates.Weekend },
		"at":     func(c dates.Calendar) bool { return c.Precision == dates.Weekend },
		"over":   func(c dates.Calendar) bool { return c.Precision > dates.Day },
		"around": func(c dates.Calendar) bool { return c.Offset },
	}
	// What makes a date an adjective, which it can hardly be: "my tomorrow meeting".
	ofNoun    = lang.Set("my our your his her their its a an the this that user's")
	joinsEN   = lang.Set("and but because since that think thinks guess so when if hope says")
	predicate = lazyregexp.New(`(?i)^ (is|was|will|are|isn't|wasn't|won't|has|marks|might|may|would|could|can)\b`)
	isAfter   = lazyregexp.New(`(?i)^['’]s (my|our|the|a|an|not|his|her|their|gonna|going|finally)\b`)
)

// dayEN is what to put in place of a mention's day, and from where to where: "tomorrow" is "on 2026-11-22 (Sunday)", or
// without "on" where that would not be English.
func dayEN(text string, m dates.Mention) (start, end int, words string) {
	c := m.Calendar
	start, end = c.Start, c.End
	before, rest := text[:start], text[end:]
	part := partsEN[c.Part]
	if found := partAfterEN.FindStringSubmatch(rest); found != nil && part == "" && c.Precision == dates.Day {
		part = strings.ToLower(found[1])
		end += len(found[0])
		rest = text[end:]
	}
	bare, preposition := nameEN(c, part)
	fields := strings.Fields(strings.ToLower(before))
	last := ""
	if len(fields) > 0 {
		last = fields[len(fields)-1]
	}
	leads := last == "" || strings.HasSuffix(last, ",") || joinsEN[last]
	switch {
	case isAfter.MatchString(rest):
		return start, end + len("’s") - boolLen(rest[0] == '\''), capitalIf(last == "", bare+" is")
	case strings.HasPrefix(rest, "'s") || strings.HasPrefix(rest, "’s"):
		if c.Precision == dates.Week || c.Precision == dates.Weekend || part != "" || ofNoun[last] {
			return start, end, text[start:end] + " (" + c.From.Format(time.DateOnly) + ")"
		}
		day, _ := nameEN(dates.Calendar{From: c.From, Precision: c.Precision}, "")
		day, _, _ = strings.Cut(day, " (")
		return start, end + len("’s") - boolLen(rest[0] == '\''), capitalIf(last == "", "the "+day)
	case ofNoun[last]:
		return start, end, text[start:end] + " (" + c.From.Format(time.DateOnly) + ")"
	case takesDate[last] && (last != "to" || preposition != "in"), takesSome[last] != nil && takesSome[last](c), leads && predicate.MatchString(rest):
		return start, end, capitalIf(last == "", bare)
	}
	return start, end, capitalIf(last == "" || strings.HasSuffix(last, "."), preposition+" "+bare)
}

// boolLen is how much shorter an ASCII apostrophe is than a curly one, when it is one.
func boolLen(ascii bool) int {
	if ascii {
		return len("’") - len("'")
	}
	return 0
}

func capitalIf(first bool, s string) string {
	if first {
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

// nameEN names a time in English, and the preposition that it takes.
func nameEN(c dates.Calendar, part string) (name, preposition string) {
	switch c.Precision {
	case dates.Year:
		return c.From.Format("2006"), "in"
	case dates.Month:
		return c.From.Format("January 2006"), "in"
	case dates.Week:
		return "the week of " + c.From.Format(time.DateOnly), "in"
	case dates.Weekend:
		return "the weekend of " + c.From.Format(time.DateOnly), "on"
	default:
	}
	day := c.From.Format("2006-01-02 (Monday)")
	if part != "" {
		return "the " + part + " of " + day, "on"
	}
	return day, "on"
}
