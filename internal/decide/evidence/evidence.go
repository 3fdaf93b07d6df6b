// Package evidence checks that the cited messages support what a model states: names, numbers, dates and codes of a statement must be in
// these messages, or follow from when they were sent.
//
// It cannot tell whether a statement is true, only whether it has a detail that no message mentions, as models' inventions do. Spelling
// does not matter (三, 3 and three; 15:00 and 3pm; traditional and simplified; width and case). What cannot be compared, such as a name
// in another script, passes, because to reject a true statement is a loss as well.
package evidence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/lang/numbers"
)

// Said is a message.
type Said struct {
	Text string // with what its tools gave
	At   time.Time
}

// maxText is how much of a message is looked at, in bytes.
const maxText = 16 << 10

// Checker checks statements about one dialogue. It is not for concurrent use.
type Checker struct {
	said    []Said
	names   []string
	grounds map[int]*ground // by message; made when they are needed
}

// NewChecker returns a Checker of statements that cite these messages. names are those of the people and bots who take part.
func NewChecker(said []Said, names []string) *Checker {
	return &Checker{said: said, names: names, grounds: map[int]*ground{}}
}

func (c *Checker) ground(message int) *ground {
	g := c.grounds[message]
	if g == nil {
		s := c.said[message]
		if len(s.Text) > maxText {
			s.Text = strings.ToValidUTF8(s.Text[:maxText], "")
		}
		g = newGround(s)
		c.grounds[message] = g
	}
	return g
}

// Check names the details of a statement that are neither in the cited messages nor follow from them, or returns "". If such a detail is
// in one of the other messages, which have the same speaker, citing that message as well supports it: more lists these. Messages are
// named by their indexes.
func (c *Checker) Check(statement string, cited, others []int) (more []int, problem string) {
	return c.check(details(statement), cited, others)
}

// CheckFigures is Check for numbers, dates, times and codes alone. Names may be written in a form that no message has ("Vegas" and Las
// Vegas).
func (c *Checker) CheckFigures(statement string, cited, others []int) (more []int, problem string) {
	figures := slices.DeleteFunc(details(statement), func(d detail) bool { return d.kind == name || d.kind == title })
	return c.check(figures, cited, others)
}

func (c *Checker) check(details []detail, cited, others []int) (more []int, problem string) {
	grounds := slices.Clone(cited)
	var missing []string
	for _, d := range details {
		in := func(message int) bool { return d.in(c.ground(message)) }
		if slices.ContainsFunc(grounds, in) || d.kind == name && isParticipant(d.text, c.names) || c.composed(d, grounds) {
			continue
		}
		found := false
		for _, i := range slices.Backward(others) { // the newest first
			if found = in(i); found {
				more, grounds = append(more, i), append(grounds, i)
				break
			}
		}
		if !found {
			missing = append(missing, fmt.Sprintf("%s %q", d.kind, d.text))
		}
	}
	if len(missing) == 0 {
		return more, ""
	}
	const shown = 5
	list := strings.Join(missing[:min(len(missing), shown)], ", ")
	if n := len(missing) - shown; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return nil, "the messages do not have the " + list
}

// composed reports whether a date follows from two messages: "March 14th" and then "no, the 24th".
func (c *Checker) composed(d detail, grounds []int) bool {
	if d.kind != date || d.day.Day == 0 || d.day.Month == 0 {
		return false
	}
	month := d.day
	month.Day, month.Weekday = 0, 0
	hasDay := func(message int) bool { return c.ground(message).numbers[strconv.Itoa(d.day.Day)] }
	hasMonth := func(message int) bool {
		g := c.ground(message)
		return slices.ContainsFunc(g.dated, func(said dates.Date) bool { return said.Month == month.Month && g.covers(said, month) })
	}
	return slices.ContainsFunc(grounds, hasDay) && slices.ContainsFunc(grounds, hasMonth)
}

func isParticipant(text string, names []string) bool {
	for _, n := range names {
		for word := range strings.FieldsFuncSeq(fold(n), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if word == fold(text) {
				return true
			}
		}
	}
	return false
}

// kind is what a detail is.
type kind string

const (
	name   kind = "name"
	number kind = "number"
	date   kind = "date"
	clock  kind = "time"
	code   kind = "code"
	title  kind = "title"
)

// detail is something in a statement that a speaker must have said.
type detail struct {
	kind kind
	text string // as written
	// What it is compared by.
	folded   string
	values   []string    // of a number: its readings
	day      dates.Date  // of a date
	clock    dates.Clock // of a time
	years    bool        // of a number: years or an age, which may follow from a date
	initials string      // of a name: of all its words
	inHan    bool        // of a name: the statement is in Chinese
}

// ground is what a message supports.
type ground struct {
	text    string // folded
	bare    string // folded, letters and digits only
	words   []string
	numbers map[string]bool
	clocks  []dates.Clock
	dated   []dates.Date
	spans   []dates.Span
	at      time.Time
	han     bool
	latin   bool
}

func newGround(s Said) *ground {
	g := &ground{text: fold(s.Text), at: s.At, numbers: map[string]bool{}}
	g.bare = bare(g.text)
	g.words = strings.FieldsFunc(g.text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.Is(unicode.Han, r) })
	for _, n := range numbers.Numbers(g.text) {
		g.numbers[n.Value] = true
	}
	for _, value := range converted(g.text) {
		g.numbers[value] = true
	}
	for _, digits := range digitRuns.FindAllString(g.text, -1) { // "ps5"
		g.numbers[numbers.Canonical(digits)] = true
	}
	g.clocks = dates.Clocks(g.text)
	g.dated = datesIn(g.text)
	g.spans = dates.Possible(g.text, s.At)
	han := 0
	for _, r := range g.text {
		if unicode.Is(unicode.Han, r) {
			han++
		}
		g.latin = g.latin || r >= 'a' && r <= 'z'
	}
	g.han = han > 1
	return g
}

var digitRuns = lazyregexp.New(`\d+`)

// fold normalizes a text for comparison: lower case, half width, simplified characters.
func fold(text string) string {
	text = strings.ToLower(norm.NFKC.String(text))
	text = strings.NewReplacer("’", "'", "‘", "'", "–", "-", "—", "-").Replace(text)
	return lexical.Simplified(text)
}

// bare is a folded text without anything but letters and digits.
func bare(folded string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, folded)
}

func (d detail) in(g *ground) bool {
	switch d.kind {
	case number:
		return g.hasNumber(d)
	case date:
		return g.hasDate(d.day)
	case clock:
		return g.hasClock(d.clock)
	case name:
		return g.hasName(d)
	default:
		b := bare(d.folded)
		return b == "" || strings.Contains(g.bare, b)
	}
}
