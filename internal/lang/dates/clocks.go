package dates

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

// Clock is a time of day as it is written.
type Clock struct {
	Hour, Minute int
	Sure         bool // hour is one of 24, not one of 12
	Start, End   int
}

var (
	writtenClock12 = lazyregexp.New(`\b(\d{1,2})(?:[:.](\d{2}))?\s?(a\.?m\b|p\.?m\b)\.?`)
	writtenClock24 = lazyregexp.New(`\b(\d{1,2}):([0-5]\d)(?::[0-5]\d)?\b`)
	writtenClockZH = lazyregexp.New(`(凌晨|早上|早晨|清晨|上午|早|中午|下午|傍晚|晚上|今晚|明晚|夜里|晚)?(\d{1,2}|[零一二两三四五六七八九十]{1,3})(?:点|时(?:[^间候常]|$))(钟|整|` +
		`半|一刻|三刻|(\d{1,2}|[零一二三四五六七八九十]{1,3})分?)?`)
	writtenPastHour = lazyregexp.New(`\b(half|quarter|ten|five|twenty) (past|to) (one|two|three|four|five|six|seven|eight|nine|ten|` +
		`eleven|twelve|\d{1,2})\b`)
	writtenOClock = lazyregexp.New(`\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,2}) o'?clock\b`)
)

// Clocks finds the times of day of a folded text.
func Clocks(text string) []Clock {
	var list []Clock
	left, digit := []byte(text), strings.ContainsAny(text, "0123456789")
	add := func(c Clock, start, end int) {
		if c.Hour < 0 || c.Hour > 24 || c.Minute > 59 {
			return
		}
		c.Hour %= 24
		c.Start, c.End = start, end
		c.Sure = c.Sure || c.Hour > 12 || c.Hour == 0
		list = append(list, c)
		blankOut(left, start, end)
	}
	group := func(at []int, i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return text[at[2*i]:at[2*i+1]]
	}
	for _, at := range findAll(writtenClock12, left, digit && has(text, "am", "pm", "a.m", "p.m")) {
		hour := numbers.Int(group(at, 1)) % 12
		if strings.HasPrefix(group(at, 3), "p") {
			hour += 12
		}
		add(Clock{Hour: hour, Minute: numbers.Int(group(at, 2)), Sure: true}, at[0], at[1])
	}
	for _, at := range findAll(writtenClock24, left, digit && has(text, ":")) {
		add(Clock{Hour: numbers.Int(group(at, 1)), Minute: numbers.Int(group(at, 2))}, at[0], at[1])
	}
	for _, at := range findAll(writtenClockZH, left, has(text, "点", "时")) {
		c := Clock{Hour: numbers.Int(group(at, 2)), Minute: minuteOf(group(at, 3), group(at, 4))}
		c.inPart(group(at, 1))
		add(c, at[0], at[1])
	}
	for _, at := range findAll(writtenPastHour, left, has(text, " past ", " to ")) {
		minute := map[string]int{"half": 30, "quarter": 15, "ten": 10, "five": 5, "twenty": 20}[group(at, 1)]
		hour := numbers.Int(group(at, 3))
		if group(at, 2) == "to" {
			hour, minute = (hour+11)%12, 60-minute
		}
		if hour == 0 {
			hour = 12
		}
		add(Clock{Hour: hour, Minute: minute % 60}, at[0], at[1])
	}
	for _, at := range findAll(writtenOClock, left, has(text, "clock")) {
		add(Clock{Hour: numbers.Int(group(at, 1))}, at[0], at[1])
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
	return numbers.Int(number)
}

// inPart sets the hour to that of the part of the day that is named before it.
func (c *Clock) inPart(name string) {
	if name == "" {
		return
	}
	hour, sure := onPart(c.Hour, partOfZH(name))
	c.Hour, c.Sure = hour%24, sure
}

// partOfZH is the part of the day that a word names; the short words 早 and 晚 count here, as a time of day follows them.
func partOfZH(name string) Part {
	switch name {
	case "早":
		return Morning
	case "晚", "今晚", "明晚":
		return Evening
	}
	return partsZH[name]
}
