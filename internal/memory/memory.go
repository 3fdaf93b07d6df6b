package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is what a memory is about.
type Kind string

// The kinds.
const (
	KindFact         Kind = "fact"
	KindPreference   Kind = "preference"
	KindRelationship Kind = "relationship"
	KindPlan         Kind = "plan"
	KindAppointment  Kind = "appointment"
	KindDecision     Kind = "decision"
	KindExperience   Kind = "experience"
	KindTask         Kind = "task"
	KindProblem      Kind = "problem"
	KindRequest      Kind = "request"
)

// Kinds lists every kind, in the order in which people want to read them.
func Kinds() []Kind {
	return []Kind{
		KindFact, KindPreference, KindRelationship, KindPlan, KindAppointment, KindDecision, KindExperience,
		KindTask, KindProblem, KindRequest,
	}
}

// Valid reports whether the kind is one of Kinds.
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// StandingClass says why a memory belongs in every answer, whatever the question: no search finds an allergy for "explain tides".
type StandingClass string

// The classes of standing memories. Others have none, the empty string.
const (
	StandingAddress StandingClass = "address" // the user's name, and how to address the user
	StandingStyle   StandingClass = "style"   // how to answer: language, length, tone, format, topics to avoid
	StandingSafety  StandingClass = "safety"  // allergies and other facts that concern the user's safety
)

// StandingClasses lists the classes, the most important one first.
func StandingClasses() []StandingClass {
	return []StandingClass{StandingSafety, StandingAddress, StandingStyle}
}

// Valid reports whether the class is one of StandingClasses, or none.
func (s StandingClass) Valid() bool { return s == "" || slices.Contains(StandingClasses(), s) }

// MaxTextRunes is the longest text of a memory, in characters.
const MaxTextRunes = 4000

// Source is how a memory entered.
type Source string

// The sources.
const (
	SourceDialogue Source = "dialogue"
	SourceAPI      Source = "api"
	SourceImport   Source = "import"
)

// Memory is one statement about a user, in the language of its dialogue.
type Memory struct {
	ID         string
	User       User
	AgentID    string
	Channel    Channel
	SessionID  string
	Text       string
	Language   string // BCP 47 base language, "und" when it cannot be told
	Kind       Kind
	Standing   StandingClass
	Importance float64 // 0 to 1
	Explicit   bool    // the user or the bot asked for it to be remembered
	Provenance Provenance
	CreatedAt  time.Time // stored
	UpdatedAt  time.Time // text, kind, standing or importance changed
	ObservedAt time.Time // said
	Mentions   int       // how often it was said, at least 1
	LastSaidAt time.Time
	UseCount   int64 // how often Retrieve returned it; may lag
	LastUsedAt time.Time

	ValidFrom    time.Time // since when it holds; zero: ObservedAt
	ValidTo      time.Time // until when; may be in the future; zero: no end is known
	SupersededBy string    // the memory that took its place
	Quarantine   string    // why it is not trusted, in words; empty: it is
	WithdrawnAt  time.Time // when the user asked for it to be forgotten
}

// Status is whether a memory holds.
type Status string

// The statuses.
const (
	StatusActive      Status = "active"
	StatusSuperseded  Status = "superseded"  // something said later took its place
	StatusExpired     Status = "expired"     // what was arranged or planned is over
	StatusQuarantined Status = "quarantined" // a model stated what its messages do not bear out
	StatusWithdrawn   Status = "withdrawn"   // the user asked for it to be forgotten
)

// Statuses lists every status.
func Statuses() []Status {
	return []Status{StatusActive, StatusSuperseded, StatusExpired, StatusQuarantined, StatusWithdrawn}
}

// StatusAt is whether the memory holds at a time.
func (m *Memory) StatusAt(t time.Time) Status {
	switch {
	case !m.WithdrawnAt.IsZero():
		return StatusWithdrawn
	case m.SupersededBy != "":
		return StatusSuperseded
	case m.Quarantine != "":
		return StatusQuarantined
	case !m.ValidTo.IsZero() && !t.Before(m.ValidTo):
		return StatusExpired
	}
	return StatusActive
}

// AsOf is the memory as it was known at a time at which it had been said already, as far as that can be told: it is not superseded by
// what holds since later, and not said again later. What holds for a known end and is then superseded loses that end.
func (m *Memory) AsOf(t time.Time) *Memory {
	superseded := m.SupersededBy != "" && t.Before(m.ValidTo)
	if !superseded && !m.LastSaidAt.After(t) {
		return m
	}
	then := *m
	if superseded {
		then.SupersededBy, then.ValidTo = "", time.Time{}
	}
	if m.LastSaidAt.After(t) {
		then.LastSaidAt = m.ObservedAt
	}
	return &then
}

// HoldsSince is since when the memory holds.
func (m *Memory) HoldsSince() time.Time {
	if m.ValidFrom.IsZero() {
		return m.ObservedAt
	}
	return m.ValidFrom
}

// Provenance says where a memory comes from and why it was kept.
type Provenance struct {
	Source          Source   `json:"source"`
	ConsiderationID string   `json:"consideration,omitempty"`
	SpeakerID       string   `json:"speaker,omitempty"`
	MessageIDs      []string `json:"messages,omitempty"`
	Question        string   `json:"question,omitempty"` // of the bot, that the quoted words answer
	Quote           string   `json:"quote,omitempty"`
	Slot            string   `json:"slot,omitempty"`  // what it is about, such as "home" or "job"; empty: not known
	Dates           []string `json:"dates,omitempty"` // that relative words of the quote mean: "2026-11-27", "2026-11", or "first/last"
	Reason          string   `json:"reason,omitempty"`
	DecidedBy       string   `json:"decided_by,omitempty"`
}

// CleanText makes a text one line without surrounding space.
func CleanText(text string) string { return strings.Join(strings.Fields(text), " ") }

// TextProblem says what is wrong with a memory's text, or "".
func TextProblem(text string) string {
	switch {
	case text == "":
		return "is required: give the statement to remember"
	case !utf8.ValidString(text):
		return "is not valid UTF-8"
	case utf8.RuneCountInString(text) > MaxTextRunes:
		return "is longer than 4000 characters: split it into several memories"
	}
	return ""
}

// Statement is what deciding and summarising a dialogue yields: a memory to be, before it has an id.
type Statement struct {
	Text       string        `json:"text"`
	Language   string        `json:"language"`
	Kind       Kind          `json:"kind"`
	Standing   StandingClass `json:"standing,omitempty"`
	Importance float64       `json:"importance"`
	Explicit   bool          `json:"explicit,omitempty"`
	MessageIDs []string      `json:"messages"`           // as Dialogue.MessageRef names them
	Question   string        `json:"question,omitempty"` // of the bot, that the quoted words answer
	Quote      string        `json:"quote"`
	Slot       string        `json:"slot,omitempty"`  // what it is about; empty: not known
	Dates      []string      `json:"dates,omitempty"` // as in Provenance
	Reason     string        `json:"reason"`
	ObservedAt time.Time     `json:"observed_at"`
	ValidTo    time.Time     `json:"valid_to,omitzero"` // when the appointment, plan or task is over; zero: not known, or never
	Forget     bool          `json:"forget,omitempty"`  // Text is what the user asked to forget: no memory to be
	// Everything is set with Forget when all memories are meant.
	Everything bool   `json:"everything,omitempty"`
	Quarantine string `json:"quarantine,omitempty"` // why it is not trusted, in words; empty: it is
}

// Settings are one user's settings. The zero value is the default.
type Settings struct {
	TimeZone string // IANA name; empty: the configured one
	Language string // BCP 47; empty: the memories' own
	Paused   bool   // nothing of this user is remembered
	// MemorizeEvery is after how many messages of people a conversation is considered, 0 is never; nil: as configured.
	MemorizeEvery *int
	UpdatedAt     time.Time
}

// MaxMemorizeEvery is the largest number of messages after which pending messages are considered.
const MaxMemorizeEvery = 1000

// MemorizeEveryProblem returns what is wrong with such a number, or "". nil is no number.
func MemorizeEveryProblem(every *int) string {
	if every != nil && (*every < 0 || *every > MaxMemorizeEvery) {
		return fmt.Sprintf("is not between 0 and %d; 0 means never", MaxMemorizeEvery)
	}
	return ""
}

// Location is where the user is: in the time zone of the settings, else in the configured one.
func (s *Settings) Location(configured *time.Location) *time.Location {
	if s.TimeZone != "" {
		if location, err := time.LoadLocation(s.TimeZone); err == nil {
			return location
		}
	}
	return configured
}
