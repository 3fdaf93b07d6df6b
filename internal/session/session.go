// Package session keeps conversations: messages are appended to a session, the window for the next prompt is cut from its end, older
// messages are summarised, and pending messages are considered for the long-term memory. Store is the storage contract; sessiontest is
// its conformance suite.
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
	// MaxNamed limits the participants, and the agents, that a Session lists.
	MaxNamed = 1000
)

// Session is one running conversation.
type Session struct {
	Namespace string
	ID        string // unique for the user who started it, or for its group
	Ref       string // unique in the namespace; internal to the storage, never shown
	// Channel never changes.
	Channel       memory.Channel
	Participants  []string // user ids, in order of first message, at most MaxNamed
	Agents        []string // in the same order
	Title         string
	Metadata      string // a JSON object as received, or ""
	MemorizeEvery *int   // nil: the setting of the user or the configuration

	Messages     int64
	UserMessages int64
	Unconsidered int64 // messages of people, without excluded ones
	FirstSaidAt  time.Time
	LastSaidAt   time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	ActiveAt     time.Time // when the last message was received; zero before the first

	WindowStart int64 // position of the first message since the window last expired
	Last        int64 // position of the last message ever appended; 0 before the first
}

// Message is a message with its position in a session.
type Message struct {
	memory.Message
	SessionID       string
	SessionRef      string         // Session.Ref, set in search results
	Channel         memory.Channel // of the session
	Position        int64          // from 1, rising; deleted messages leave gaps
	ReceivedAt      time.Time
	ConsiderationID string    // that considers it, or ""
	Excluded        Exclusion // why it is excluded from windows and considerations
}

// Summary replaces the older messages of a window.
type Summary struct {
	// AgentID is set when it covers only the messages with that agent.
	AgentID  string
	Text     string
	Last     int64 // it covers the messages up to this position
	Messages int64 // how many it covers
	MadeBy   string
	At       time.Time
}

// Viewer is the requesting user and channel. Without a user only sessions without named participants are visible.
type Viewer struct {
	Namespace string
	UserID    string
	Channel   memory.Channel
	Audience  memory.Audience
}

// ViewerOf returns the viewer of a scope under the visibility rules.
func ViewerOf(scope memory.Scope, visibility memory.Visibility) Viewer {
	return Viewer{Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel, Audience: visibility.AudienceOf(scope)}
}

// Sees reports whether the viewer may read the session. All members of a group see its sessions; other sessions are visible to their
// participants, in every channel.
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

// Refusal is why a viewer may not add to a session, in words; "" means allowed.
type Refusal string

// The refusals.
const (
	OtherChannel Refusal = "it was started in another channel: use one session per channel"
	UserNeeded   Refusal = "people take part in it by name: name the user"
	OtherUsers   Refusal = "it was started by another user: use another session_id, or say that the channel is a group"
)

// RefusedError says that a session may not be added to. It is a memory.ErrPrecondition.
type RefusedError struct {
	SessionID string
	Refusal   Refusal
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: session %q cannot be written to by this request: %s", memory.ErrPrecondition, e.SessionID, e.Refusal)
}

// Unwrap makes it a memory.ErrPrecondition.
func (e *RefusedError) Unwrap() error { return memory.ErrPrecondition }

// MayWrite returns why the viewer may not add to a session, or "".
func (v Viewer) MayWrite(s *Session) Refusal {
	switch {
	case v.Channel.VisibilityKey() != s.Channel.VisibilityKey():
		return OtherChannel
	case v.inItsGroup(s):
		return ""
	case v.UserID == "" && len(s.Participants) > 0:
		return UserNeeded
	case v.UserID != "" && !slices.Contains(s.Participants, v.UserID) && (s.Last > 0 || len(s.Participants) > 0):
		// This applies even while it is empty: the user who created it could read what others say in it.
		return OtherUsers
	}
	return ""
}

func (v Viewer) inItsGroup(s *Session) bool {
	return s.Channel.Kind == memory.ChannelGroup && v.Channel.VisibilityKey() == s.Channel.VisibilityKey()
}

// Owner returns the user to whom a message belongs: its speaker, or for the bot's answers the user of the scope. Messages without an
// owner are found in their session only.
func Owner(m *memory.Message, scopeUser string) string {
	if m.Role == memory.RoleUser {
		return m.Speaker
	}
	return scopeUser
}
