// Package digest makes the digest of a user's day: topics, likes, decisions, tasks, solved problems and insights. Findings are
// collected in the background and kept with their time, session and channel; a digest is merged from them on request. Store is the
// storage contract; digesttest is its conformance suite.
package digest

import (
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Category is the kind of a finding.
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

// Finding is one item of a digest. The database keeps its JSON form.
type Finding struct {
	Category Category `json:"category"`
	// Text is the statement; for a preference the value, for an issue the question.
	Text     string      `json:"text"`
	Key      string      `json:"key,omitempty"`      // of a preference: its subject
	Solution string      `json:"solution,omitempty"` // of an issue, when one was found
	Language string      `json:"language,omitempty"`
	Kind     memory.Kind `json:"kind,omitempty"` // of the memory made of it
	// Statement is the text to remember if it differs from Text.
	Statement  string   `json:"statement,omitempty"`
	Importance float64  `json:"importance,omitempty"` // 0: not important enough to be remembered
	MessageIDs []string `json:"messages,omitempty"`
	Quote      string   `json:"quote,omitempty"`
	Reason     string   `json:"reason,omitempty"`

	// Passing findings are only part of the digest and never remembered, even if important.
	Passing bool `json:"passing,omitempty"`

	SaidAt   time.Time `json:"-"`
	AgentID  string    `json:"-"` // the agent it was said to; for a consideration see the scope
	MemoryID string    `json:"-"` // the memory made of it; "" for none
}

// remembered returns the statement to remember.
func (f *Finding) remembered() string {
	if f.Statement != "" {
		return f.Statement
	}
	return f.Text
}

// Contribution is the result of reading messages of one session once: a consideration's statements, or the findings of a run.
type Contribution struct {
	// ID makes saving idempotent: the same work done twice contributes once.
	ID    string
	Scope memory.Scope // the user and the place
	// ConsiderationID is set for the result of a consideration. Nothing is stored if that consideration no longer exists.
	ConsiderationID string
	Covers          []int64 // references (from Store.Waiting) of messages that are done
	MadeBy          string  // "rules", or the model as "provider/model"
	At              time.Time
	Findings        []Finding
}

// Entry is a stored finding.
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
	// Waiting is how many messages of the day are pending: no digest covers them yet.
	Waiting  int64
	UpdateAt time.Time // zero when the digest is empty
}

// Empty reports whether the digest has no content.
func (d *Day) Empty() bool {
	return len(d.Topics)+len(d.Preferences)+len(d.Decisions)+len(d.Tasks)+len(d.Issues)+len(d.Insights) == 0
}

// maxTopics limits the topics of a digest.
const maxTopics = 8

// merge combines the findings of several contributions without duplicates. The entries are in the order in which they were said.
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

// add appends an entry, or completes an existing one that says the same.
func add(list []Entry, e Entry, same func(a, b *Entry) bool) []Entry {
	for i := range list {
		known := &list[i]
		if !same(known, &e) {
			continue
		}
		if known.Solution == "" && e.Solution != "" { // the later entry has the answer
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

// sameIssue reports whether two entries are the same problem. One may be a statement, the other the question that contains it.
func sameIssue(a, b *Entry) bool {
	return sameText(a, b) || (a.Solution == "") != (b.Solution == "") && (quotes(a, b) || quotes(b, a))
}

func quotes(a, b *Entry) bool {
	return a.Quote != "" && (strings.Contains(b.Quote, a.Quote) || strings.Contains(b.Text, a.Quote))
}

// dateOf returns the first moment of a date such as 2026-11-20 in a time zone, and that of the next day.
func dateOf(date string, zone *time.Location) (from, before time.Time, err error) {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return from, before, err
	}
	from = memory.StartOfDay(day.Year(), day.Month(), day.Day(), zone)
	return from, nextDay(from, zone), nil
}

// nextDay returns the first moment of the next day in the user's zone.
func nextDay(at time.Time, zone *time.Location) time.Time {
	year, month, day := at.In(zone).Date()
	return memory.StartOfDay(year, month, day+1, zone)
}
