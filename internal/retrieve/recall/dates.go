package recall

import (
	"fmt"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
)

// takeDates removes dates with an English month and a year ("8 May 2023", "May 2023") from a question and returns them as Terms
// writes a message's date. The keyword index itself reads numeric and Chinese dates.
func takeDates(text string) (rest string, days []string) {
	folded := []byte(text) // of the same length
	for i, c := range folded {
		if c >= 'A' && c <= 'Z' {
			folded[i] = c - 'A' + 'a'
		}
	}
	lower := string(folded)
	var b strings.Builder
	end := 0
	list, _ := dates.Written(lower)
	for _, d := range list {
		if d.Year == 0 || d.Month == 0 || !strings.ContainsFunc(lower[d.Start:d.End], func(r rune) bool { return r >= 'a' && r <= 'z' }) {
			continue
		}
		b.WriteString(text[end:d.Start] + " ")
		end = d.End
		days = append(days, fmt.Sprintf("%d-%02d", d.Year, d.Month))
		if d.Day != 0 {
			days = append(days, fmt.Sprintf("%d-%02d-%02d", d.Year, d.Month, d.Day))
		}
	}
	return b.String() + text[end:], days
}
