// Package digest makes the digest of a user's day: what it was about, what was liked, decided, to be done, solved and
// understood. Findings are collected in the background and kept with the time, the session and the channel they come from;
// a digest is merged from them when somebody asks. Store declares what the storage must do; digesttest is its conformance suite.
package digest

import (
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Category is what a finding is.
type Category string

// The categories.
const (
	Topic      Category = "topic"
	Preference Category = "preference"
	Decision   Category = "decision"
	Task       Category = "task"
	Issue      Category = "issue"
	Insight    Category = "insight"
)

// Limits of a finding, in characters.
const (
	MaxTextRunes = 500
	MaxKeyRunes  = 60
)

// Finding is one thing that a digest tells. Its JSON form is what the database keeps.
type Finding struct {
	Category Category `json:"category"`
	// Text is the statement; of a preference the value, of an issue the question.
	Text     string      `json:"text"`
	Key      string      `json:"key,omitempty"`      // of a preference: what it is about
	Solution string      `json:"solution,omitempty"` // of an issue, when one was found
	Language string      `json:"language,omitempty"`
	Kind     memory.Kind `json:"kind,omitempty"` // of the memory that it is, or is to become
	// Statement is what is to be remembered when it is not Text.
	Statement  string   `json:"statement,omitempty"`
	Importance float64  `json:"importance,omitempty"` // 0: not important enough to be remembered
	MessageIDs []string `json:"messages,omitempty"`
	Quote      string   `json:"quote,omitempty"`
	Reason     string   `json:"reason,omitempty"`

	// Passing findings are told in the digest and not remembered, however important they look.
	Passing bool `json:"passing,omitempty"`

	SaidAt   time.Time `json:"-"`
	AgentID  string    `json:"-"` // with whom it was said; of a consideration, the scope says it
	MemoryID string    `json:"-"` // the memory that it is; "" for none
}

// remembered is the statement that is remembered of the finding.
func (f *Finding) remembered() string {
	if f.Statement != "" {
		return f.Statement
	}
	return f.Text
}

// Contribution is what one look at messages of one session yields: a consideration's statements, or the findings of a run.
type Contribution struct {
	// ID names it for good: the same work done twice contributes once.
	ID    string
	Scope memory.Scope // whose, and where
	// ConsiderationID is set for what came of considering; nothing is stored when there is no such consideration any more.
	ConsiderationID string
	Covers          []int64 // references of the messages that need no further look, as Store.Waiting gave them
	MadeBy          string  // "rules", or the model as "provider/model"
	At              time.Time
	Findings        []Finding
}

// Entry is a finding as it is stored.
type Entry struct {
	Finding
	ID        string // of the contribution, and the finding's number
	AgentID   string
	Channel   memory.Channel
	SessionID string
	MadeBy    string
	MadeAt    time.Time
}

// Day is the digest of a user's day.
type Day struct {
	Date     string // YYYY-MM-DD, where the user is
	From     time.Time
	Before   time.Time
	Language string
	// Topics are words and phrases, the most prominent first.
	Topics      []string
	Preferences []Entry
	Decisions   []Entry
	Tasks       []Entry
	Issues      []Entry
	Insights    []Entry
	// Waiting is how many messages of the day no digest has looked at yet.
	Waiting  int64
	UpdateAt time.Time // zero when nothing is told
}

// Empty reports whether there is nothing to tell.
func (d *Day) Empty() bool {
	return len(d.Topics)+len(d.Preferences)+len(d.Decisions)+len(d.Tasks)+len(d.Issues)+len(d.Insights) == 0
}

// maxTopics is how many topics a digest names.
const maxTopics = 8

// merge puts what several contributions found into one digest, nothing twice. The entries are in the order in which it was said.
func (d *Day) merge(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		if e.MadeAt.After(d.UpdateAt) {
			d.UpdateAt = e.MadeAt
		}
		switch e.Category {
		case Topic:
			d.addTopic(e.Text)
		case Preference:
			d.Preferences = add(d.Preferences, *e, func(a, b *Entry) bool {
				return strings.EqualFold(a.Key, b.Key) && compare.Same(a.Text, b.Text) || compare.Same(a.remembered(), b.remembered())
			})
		case Decision:
			d.Decisions = add(d.Decisions, *e, sameText)
		case Task:
			d.Tasks = add(d.Tasks, *e, sameText)
		case Issue:
			d.Issues = add(d.Issues, *e, sameIssue)
		case Insight:
			d.Insights = add(d.Insights, *e, sameText)
		}
	}
}

func (d *Day) addTopic(text string) {
	if len(d.Topics) < maxTopics && !slices.ContainsFunc(d.Topics, func(t string) bool { return strings.EqualFold(t, text) }) {
		d.Topics = append(d.Topics, text)
	}
}

// add adds an entry, or lets one that says the same know what it lacks.
func add(list []Entry, e Entry, same func(a, b *Entry) bool) []Entry {
	for i := range list {
		known := &list[i]
		if !same(known, &e) {
			continue
		}
		if known.Solution == "" && e.Solution != "" { // a question is told with its answer
			e.MemoryID = firstOf(e.MemoryID, known.MemoryID)
			*known = e
		}
		known.MemoryID = firstOf(known.MemoryID, e.MemoryID)
		return list
	}
	return append(list, e)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func sameText(a, b *Entry) bool { return compare.Same(a.Text, b.Text) }

// sameIssue: a problem that was told as a statement and the question in which it was told are one.
func sameIssue(a, b *Entry) bool {
	return sameText(a, b) || (a.Solution == "") != (b.Solution == "") && (quotes(a, b) || quotes(b, a))
}

func quotes(a, b *Entry) bool {
	return a.Quote != "" && (strings.Contains(b.Quote, a.Quote) || strings.Contains(b.Text, a.Quote))
}

// dateOf reads a date such as 2026-11-20 as a day in a time zone: from its first moment to that of the next day.
func dateOf(date string, zone *time.Location) (from, before time.Time, err error) {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return from, before, err
	}
	from = memory.StartOfDay(day.Year(), day.Month(), day.Day(), zone)
	return from, nextDay(from, zone), nil
}

// nextDay is the first moment of the day after, where the user is.
func nextDay(at time.Time, zone *time.Location) time.Time {
	year, month, day := at.In(zone).Date()
	return memory.StartOfDay(year, month, day+1, zone)
}
