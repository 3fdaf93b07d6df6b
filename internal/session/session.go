// Package session keeps conversations: messages are appended to a session, the window for the next prompt is cut from
// its end, older messages are summarised, and pending messages are considered for the long-term memory. Store
// declares what the storage must do; sessiontest holds what every implementation must keep to.
package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits of a session's own fields.
const (
	MaxTitleRunes    = 1000
	MaxMetadataBytes = memory.MaxContentBytes
	// MaxNamed is how many participants, and how many agents, a Session names.
	MaxNamed = 1000
)

// Session is one running conversation.
type Session struct {
	Namespace string
	ID        string // unique for the user who began it, or for its group
	Ref       string // unique in the namespace; it is the storage's own, and never shown
	// Channel is where it happens; it never changes.
	Channel       memory.Channel
	Participants  []string // user ids, in the order in which they came in, at most MaxNamed
	Agents        []string // likewise
	Title         string
	Metadata      string // a JSON object as it was sent, or ""
	MemorizeEvery *int   // nil: as the user or the configuration says

	Messages     int64
	UserMessages int64
	Unconsidered int64 // of people, not withheld
	FirstSaidAt  time.Time
	LastSaidAt   time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	ActiveAt     time.Time // when the last message was received; the zero time before the first

	WindowStart int64 // position of the first message since the window last expired
	Last        int64 // position of the last message ever appended; 0 before the first
}

// Message is a message with its place in a session.
type Message struct {
	memory.Message
	SessionID       string
	SessionRef      string         // Session.Ref, in what a search finds
	Channel         memory.Channel // of the session
	Position        int64          // from 1, rising; places of deleted messages stay empty
	ReceivedAt      time.Time
	ConsiderationID string   // that took it, or ""
	Withheld        Withheld // kept out of windows and considerations, and why
}

// Summary stands for the older messages of a window.
type Summary struct {
	// AgentID is set when it covers only the messages with that agent.
	AgentID  string
	Text     string
	Last     int64 // it covers the messages up to this position
	Messages int64 // how many it covers
	MadeBy   string
	At       time.Time
}

// Viewer is the user who asks, and the channel. Without a user only sessions without named participants are seen.
type Viewer struct {
	Namespace string
	UserID    string
	Channel   memory.Channel
	Audience  memory.Audience
}

// ViewerOf returns who asks with the scope, where the visibility rules hold.
func ViewerOf(scope memory.Scope, visibility memory.Visibility) Viewer {
	return Viewer{Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel, Audience: visibility.AudienceOf(scope)}
}

// Sees reports whether the session may be shown. All members of a group see its sessions; other sessions belong to
// those who take part in them, also when asked for from elsewhere.
func (v Viewer) Sees(s *Session) bool {
	switch {
	case v.Namespace != s.Namespace || !v.Audience.Sees(s.Channel):
		return false
	case v.inItsGroup(s):
		return true
	case v.UserID == "":
		return len(s.Participants) == 0 && s.Channel.Kind != memory.ChannelGroup
	}
	return slices.Contains(s.Participants, v.UserID)
}

// Refusal is why a viewer may not add to a session, in words; "" is no refusal.
type Refusal string

// The refusals.
const (
	OtherChannel Refusal = "it was begun in another channel: use a session of its own for each channel"
	UserNeeded   Refusal = "people take part in it by name: name the user"
	OtherUsers   Refusal = "it was begun by somebody else: use another session_id, or say that the channel is a group"
)

// RefusedError says that a session may not be added to. It is a memory.ErrPrecondition.
type RefusedError struct {
	SessionID string
	Refusal   Refusal
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: session %q cannot be written to from here: %s", memory.ErrPrecondition, e.SessionID, e.Refusal)
}

// Unwrap makes it a memory.ErrPrecondition.
func (e *RefusedError) Unwrap() error { return memory.ErrPrecondition }

// MayWrite says why the viewer may not add to a session, or "".
func (v Viewer) MayWrite(s *Session) Refusal {
	switch {
	case v.Channel.VisibilityKey() != s.Channel.VisibilityKey():
		return OtherChannel
	case v.inItsGroup(s):
		return ""
	case v.UserID == "" && len(s.Participants) > 0:
		return UserNeeded
	case v.UserID != "" && !slices.Contains(s.Participants, v.UserID) && (s.Last > 0 || len(s.Participants) > 0):
		// Also while it is empty: the user who created it would read what others say in it.
		return OtherUsers
	}
	return ""
}

func (v Viewer) inItsGroup(s *Session) bool {
	return s.Channel.Kind == memory.ChannelGroup && v.Channel.VisibilityKey() == s.Channel.VisibilityKey()
}

// Owner returns the user to whom a message belongs: the one who said it, or the user of the scope, whom the bot answered.
// Messages without an owner are found in their session only.
func Owner(m *memory.Message, scopeUser string) string {
	if m.Role == memory.RoleUser {
		return m.Speaker
	}
	return scopeUser
}
