package evidence

import (
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

var (
	noon     = lazyregexp.New(`\bnoon\b|中午|正午`)
	midnight = lazyregexp.New(`\bmidnight\b|午夜|半夜`)
	hoursOff = lazyregexp.New(`(\d{1,2}|[一二两三四五六七八九十半]{1,2}|\b(?:an?|one|two|three|four|five|six)\b)\s?个?(半)?(小时|钟头|hours?)`)
)

// hasClock reports whether a message names a time of day, or says so many hours from when it was said.
func (g *ground) hasClock(c dates.Clock) bool {
	for _, said := range g.clocks {
		if said.Minute != c.Minute {
			continue
		}
		if said.Hour == c.Hour || said.Hour%12 == c.Hour%12 && (!said.Sure || !c.Sure) {
			return true
		}
	}
	if c.Hour == 12 && c.Minute == 0 && noon.MatchString(g.text) || c.Hour == 0 && c.Minute == 0 && midnight.MatchString(g.text) {
		return true
	}
	if c.Hour == g.at.Hour() && c.Minute == g.at.Minute() {
		return true
	}
	// A bare number: "Friday at 3", "330".
	bareHour := g.numbers[strconv.Itoa(c.Hour)] || g.numbers[strconv.Itoa((c.Hour+11)%12+1)]
	if len(g.clocks) == 0 && bareHour && (c.Minute == 0 || g.numbers[strconv.Itoa(c.Minute)]) {
		return true
	}
	if g.numbers[strconv.Itoa((c.Hour+11)%12+1)+"."+strings.TrimRight(strconv.Itoa(c.Minute), "0")] ||
		g.numbers[strconv.Itoa(c.Hour*100+c.Minute)] || g.numbers[strconv.Itoa(((c.Hour+11)%12+1)*100+c.Minute)] {
		return true
	}
	return g.hoursFrom(c)
}

// hoursFrom reports whether a time of day is so many hours from when a message was said.
func (g *ground) hoursFrom(c dates.Clock) bool {
	for _, m := range hoursOff.FindAllStringSubmatch(g.text, -1) {
		d := time.Duration(numbers.Int(m[1])) * time.Hour
		if m[1] == "半" {
			d = 30 * time.Minute
		}
		if m[2] != "" {
			d += 30 * time.Minute
		}
		for _, at := range []time.Time{g.at.Add(d), g.at.Add(-d)} {
			minutes := at.Hour()*60 + at.Minute() - c.Hour*60 - c.Minute
			if minutes >= -30 && minutes <= 30 {
				return true
			}
		}
	}
	return false
}
