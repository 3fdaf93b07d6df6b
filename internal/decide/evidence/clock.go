package evidence

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// clockTime is a time of day.
type clockTime struct {
	hour, minute int
	sure         bool // hour is one of 24, not one of 12
	start, end   int
}

var (
	clockEN  = regexp.MustCompile(`\b(\d{1,2})(?:[:.](\d{2}))?\s?(a\.?m\b|p\.?m\b)\.?`)
	clock24  = regexp.MustCompile(`\b(\d{1,2}):([0-5]\d)(?::[0-5]\d)?\b`)
	clockZH  = regexp.MustCompile(`(凌晨|早上|早晨|清晨|上午|早|中午|下午|傍晚|晚上|今晚|明晚|夜里|晚)?(\d{1,2}|[零一二两三四五六七八九十]{1,3})(?:点|时(?:[^间候常]|$))(钟|整|半|一刻|三刻|(\d{1,2}|[零一二三四五六七八九十]{1,3})分?)?`)
	clockOf  = regexp.MustCompile(`\b(half|quarter|ten|five|twenty) (past|to) (one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,2})\b`)
	oClock   = regexp.MustCompile(`\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,2}) o'?clock\b`)
	noon     = regexp.MustCompile(`\bnoon\b|中午|正午`)
	midnight = regexp.MustCompile(`\bmidnight\b|午夜|半夜`)
	hoursOff = regexp.MustCompile(`(\d{1,2}|[一二两三四五六七八九十半]{1,2}|\b(?:an?|one|two|three|four|five|six)\b)\s?个?(半)?(小时|钟头|hours?)`)
)

// clocksIn finds the times of day of a folded text.
func clocksIn(text string) []clockTime {
	var list []clockTime
	left := []byte(text)
	add := func(c clockTime, start, end int) {
		if c.hour < 0 || c.hour > 24 || c.minute > 59 {
			return
		}
		c.hour %= 24
		c.start, c.end = start, end
		c.sure = c.sure || c.hour > 12 || c.hour == 0
		list = append(list, c)
		blankOut(left, start, end)
	}
	group := func(at []int, i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return text[at[2*i]:at[2*i+1]]
	}
	for _, at := range clockEN.FindAllSubmatchIndex(left, -1) {
		hour := atoi(group(at, 1)) % 12
		if strings.HasPrefix(group(at, 3), "p") {
			hour += 12
		}
		add(clockTime{hour: hour, minute: atoi(group(at, 2)), sure: true}, at[0], at[1])
	}
	for _, at := range clock24.FindAllSubmatchIndex(left, -1) {
		add(clockTime{hour: atoi(group(at, 1)), minute: atoi(group(at, 2))}, at[0], at[1])
	}
	for _, at := range clockZH.FindAllSubmatchIndex(left, -1) {
		c := clockTime{hour: atoi(group(at, 2)), minute: minuteOf(group(at, 3), group(at, 4))}
		c.inPart(group(at, 1))
		add(c, at[0], at[1])
	}
	for _, at := range clockOf.FindAllSubmatchIndex(left, -1) {
		minute := map[string]int{"half": 30, "quarter": 15, "ten": 10, "five": 5, "twenty": 20}[group(at, 1)]
		hour := numeral(group(at, 3))
		if group(at, 2) == "to" {
			hour, minute = (hour+11)%12, 60-minute
		}
		if hour == 0 {
			hour = 12
		}
		add(clockTime{hour: hour, minute: minute % 60}, at[0], at[1])
	}
	for _, at := range oClock.FindAllSubmatchIndex(left, -1) {
		add(clockTime{hour: numeral(group(at, 1))}, at[0], at[1])
	}
	return list
}

// minuteOf are the minutes in what follows 点.
func minuteOf(words, number string) int {
	switch words {
	case "半":
		return 30
	case "一刻":
		return 15
	case "三刻":
		return 45
	}
	return atoi(number)
}

// inPart takes the part of the day into account that is named before a time.
func (c *clockTime) inPart(part string) {
	switch part {
	case "":
		return
	case "凌晨", "早上", "早晨", "清晨", "上午", "早":
	case "中午":
		if c.hour < 11 {
			c.hour += 12
		}
	default:
		if c.hour < 12 {
			c.hour += 12
		}
	}
	c.sure = true
}

// numeral is a number in digits, English words or Chinese characters.
func numeral(s string) int {
	if value, ok := wordsValue(s); ok {
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			return n
		}
	}
	if s == "a" || s == "an" {
		return 1
	}
	return atoi(s)
}

// hasClock reports whether a message names a time of day, or says so many hours from when it was said.
func (g *ground) hasClock(c clockTime) bool {
	for _, said := range g.clocks {
		if said.minute != c.minute {
			continue
		}
		if said.hour == c.hour || said.hour%12 == c.hour%12 && (!said.sure || !c.sure) {
			return true
		}
	}
	if c.hour == 12 && c.minute == 0 && noon.MatchString(g.text) || c.hour == 0 && c.minute == 0 && midnight.MatchString(g.text) {
		return true
	}
	if c.hour == g.at.Hour() && c.minute == g.at.Minute() {
		return true
	}
	// A bare number: "Friday at 3", "330".
	bareHour := g.numbers[strconv.Itoa(c.hour)] || g.numbers[strconv.Itoa((c.hour+11)%12+1)]
	if len(g.clocks) == 0 && bareHour && (c.minute == 0 || g.numbers[strconv.Itoa(c.minute)]) {
		return true
	}
	if g.numbers[strconv.Itoa((c.hour+11)%12+1)+"."+strings.TrimRight(strconv.Itoa(c.minute), "0")] || g.numbers[strconv.Itoa(c.hour*100+c.minute)] || g.numbers[strconv.Itoa(((c.hour+11)%12+1)*100+c.minute)] {
		return true
	}
	return g.hoursFrom(c)
}

// hoursFrom reports whether a time of day is so many hours from when a message was said.
func (g *ground) hoursFrom(c clockTime) bool {
	for _, m := range hoursOff.FindAllStringSubmatch(g.text, -1) {
		d := time.Duration(numeral(m[1])) * time.Hour
		if m[1] == "半" {
			d = 30 * time.Minute
		}
		if m[2] != "" {
			d += 30 * time.Minute
		}
		for _, at := range []time.Time{g.at.Add(d), g.at.Add(-d)} {
			minutes := at.Hour()*60 + at.Minute() - c.hour*60 - c.minute
			if minutes >= -30 && minutes <= 30 {
				return true
			}
		}
	}
	return false
}
