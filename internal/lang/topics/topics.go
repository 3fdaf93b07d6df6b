// Package topics says what people talk about: the words and phrases that many messages of a period have in common, and
// more of them than in the period before. It needs no dictionary and no model. docs/design/conversations.md describes the method.
package topics

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits of what is counted, for each of the two periods.
const (
	// MaxMessages is how many messages are counted: the newest.
	MaxMessages = 10_000
	// MaxMessageRunes is how many characters of one message are: its first.
	MaxMessageRunes = 1_000
	// MaxRunes is how many characters are in all.
	MaxRunes = 1_000_000
)

// DefaultPeriod and DefaultTopics are the period and the number of topics of a query that names none.
const (
	DefaultPeriod = 7 * 24 * time.Hour
	DefaultTopics = 10
	MaxTopics     = 100
)

// Topic is a word or phrase that several messages have.
type Topic struct {
	Text     string // as most people wrote it
	Messages int    // of the period that have it
	Previous int    // of the period of the same length before that have it
	Score    float64
}

// Message is what a person said.
type Message struct {
	// Speaker distinguishes people and has no other meaning. Messages without an author have one speaker for each session.
	Speaker string
	Text    string // at most MaxMessageRunes characters
}

// Query says whose messages are meant: those of a session when SessionID is set, else of a user when UserID is, else of
// the namespace; only those that the audience sees, said at or after After and before Before.
type Query struct {
	Namespace     string
	SessionID     string // session.Session.Ref, or an id that one session has
	UserID        string
	AgentID       *string // only what was said with this agent; nil: with any
	Audience      memory.Audience
	After, Before time.Time
	// Once includes topics that occur only once, as Report.Once. It is ignored for a whole namespace.
	Once bool
}

// Source reads what people said.
type Source interface {
	// Messages returns the newest messages of people that the query means, in an order that is the same each time, without
	// those that were withheld from windows and considerations. There may be more than the limits of this package let
	// through: then truncated is true.
	Messages(ctx context.Context, q Query) (messages []Message, truncated bool, err error)
}

// Report is what was talked about.
type Report struct {
	Topics    []Topic // the most prominent first
	Messages  int     // that were counted
	Truncated bool    // the period has more
	// Once are phrases that name something and that no topic has, the most specific first.
	Once []string
}

// Counter counts topics.
type Counter struct{ source Source }

// NewCounter returns a counter of what the source has.
func NewCounter(source Source) *Counter { return &Counter{source} }

// Count returns at most limit topics of what the query means. Whether a session may be seen at all is for the caller to
// check before. Without After the period is DefaultPeriod long. Errors are those of the source, and an
// *memory.InvalidError about "before_time", "after_time" or "max_topics".
func (c *Counter) Count(ctx context.Context, q Query, limit int) (Report, error) {
	if q.After.IsZero() {
		q.After = q.Before.Add(-DefaultPeriod)
	}
	if err := validate(q, limit); err != nil {
		return Report{}, err
	}
	messages, truncated, err := c.source.Messages(ctx, q)
	if err != nil {
		return Report{}, err
	}
	before := q
	before.After, before.Before = q.After.Add(-q.Before.Sub(q.After)), q.After
	previous, _, err := c.source.Messages(ctx, before)
	if err != nil {
		return Report{}, err
	}
	found, err := Of(ctx, messages, previous, q.rule(), limit)
	if err != nil {
		return Report{}, err
	}
	report := Report{Topics: found, Messages: len(messages), Truncated: truncated}
	if q.Once && q.rule() == Own {
		report.Once = slices.DeleteFunc(once(messages, 2*limit), func(phrase string) bool {
			return slices.ContainsFunc(found, func(t Topic) bool {
				a, b := strings.ToLower(t.Text), strings.ToLower(phrase)
				return strings.Contains(a, b) || strings.Contains(b, a)
			})
		})
	}
	return report, nil
}

// maxPeriod keeps the period before within what a database's times can say.
const maxPeriod = 100 * 366 * 24 * time.Hour

func validate(q Query, limit int) error {
	var v memory.Violations
	if limit < 1 || limit > MaxTopics {
		v.Add("max_topics", "is %d: ask for 1 to %d", limit, MaxTopics)
	}
	v.Check("after_time", memory.TimeProblem(q.After))
	v.Check("before_time", memory.TimeProblem(q.Before))
	switch {
	case !q.After.Before(q.Before):
		v.Add("after_time", "is not before before_time: the period is empty")
	case q.Before.Sub(q.After) > maxPeriod:
		v.Add("after_time", "is more than 100 years before before_time: ask for a shorter period")
	}
	return v.Err()
}

// Rule is how many people must have used a word before it is reported.
type Rule struct {
	Messages int // that have it, in the period
	Speakers int // of those messages
}

// The rules. A word that occurs once is no topic, however small the session. Readers of a whole namespace need not know the people in
// it, so that words of a single person are not reported.
var (
	Own    = Rule{Messages: 2, Speakers: 1}
	Shared = Rule{Messages: 3, Speakers: 2}
)

func (q Query) rule() Rule {
	if q.SessionID == "" && q.UserID == "" {
		return Shared
	}
	return Own
}
