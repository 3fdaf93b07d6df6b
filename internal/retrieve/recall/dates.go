package recall

import (
	"cmp"
	"regexp"
	"time"
)

// English dates, "8 May 2023", "May 8th, 2023" and "May 2023". Those of digits, and Chinese ones, lexical knows.
const (
	month = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?`
	day   = `(\d{1,2})(?:st|nd|rd|th)?`
	year  = `,?\s+(\d{4})\b`
)

var (
	dayFirst   = regexp.MustCompile(`(?i)\b` + day + `\s+(?:of\s+)?` + month + year)
	monthFirst = regexp.MustCompile(`(?i)\b` + month + `(?:\s+` + day + `)?` + year)
)

// takeDates takes the English dates out of a question and returns them as messages are dated.
func takeDates(text string) (rest string, days []string) {
	take := func(date *regexp.Regexp, parts func([]string) (year, month, day string)) {
		text = date.ReplaceAllStringFunc(text, func(found string) string {
			year, month, day := parts(date.FindStringSubmatch(found))
			t, err := time.Parse("2006 Jan 2", year+" "+month[:3]+" "+cmp.Or(day, "1"))
			if err != nil {
				return found
			}
			days = append(days, t.Format("2006-01"))
			if day != "" {
				days = append(days, t.Format(time.DateOnly))
			}
			return " "
		})
	}
	take(dayFirst, func(m []string) (string, string, string) { return m[3], m[2], m[1] })
	take(monthFirst, func(m []string) (string, string, string) { return m[3], m[1], m[2] })
	return text, days
}
