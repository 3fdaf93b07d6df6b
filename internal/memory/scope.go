package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultNamespace is the namespace of a scope that names none.
const DefaultNamespace = "default"

// Limits of a scope's parts, in bytes.
const (
	MaxNamespaceBytes    = 200
	MaxNamespaceSegments = 8
	MaxIDBytes           = 256
)

// User identifies a person: an id is unique only inside its namespace.
type User struct {
	Namespace string
	ID        string
}

// Scope says whose memory something concerns and where it is spoken.
type Scope struct {
	Namespace string
	UserID    string
	AgentID   string
	Channel   Channel
	SessionID string
}

// User is the person the scope is about.
func (s Scope) User() User { return User{Namespace: s.Namespace, ID: s.UserID} }

// WithUser is the same place seen by another person.
func (s Scope) WithUser(id string) Scope {
	s.UserID = id
	return s
}

// ChannelKind is what kind of place a dialogue happens in.
type ChannelKind string

// The kinds of channel.
const (
	ChannelUnspecified ChannelKind = ""
	ChannelDirect      ChannelKind = "direct"
	ChannelGroup       ChannelKind = "group"
)

// Channel is the place a dialogue happens in. Two memories have the same visibility when their channels are equal in
// kind and, for groups, in id.
type Channel struct {
	Kind ChannelKind
	ID   string
}

// VisibilityKey is equal for two channels exactly when what is learned in them has the same audience.
func (c Channel) VisibilityKey() string {
	if c.Kind == ChannelGroup {
		return "group:" + c.ID
	}
	return string(c.Kind)
}

// Audience is what one request may see of its own user's data. The zero value sees nothing.
type Audience struct {
	everything bool
	keys       map[string]bool
}

// Everything is the audience that sees all of the user's data.
func Everything() Audience { return Audience{everything: true} }

// VisibilityRule is how channels restrict what a request sees.
type VisibilityRule string

// The visibility rules.
const (
	// VisibilityChannel keeps a group's requests to what was learned in that group.
	VisibilityChannel VisibilityRule = "channel"
	// VisibilityUser shows every request all of its user's data.
	VisibilityUser VisibilityRule = "user"
)

// AudienceOf is what a request from the channel may see. A direct chat sees everything, a group what was learned in it,
// an unspecified channel what was stored unspecified. An unknown kind or rule sees nothing.
func (r VisibilityRule) AudienceOf(c Channel) Audience {
	switch {
	case r == VisibilityUser, r == VisibilityChannel && c.Kind == ChannelDirect:
		return Everything()
	case r == VisibilityChannel && (c.Kind == ChannelGroup || c.Kind == ChannelUnspecified):
		return Audience{keys: map[string]bool{c.VisibilityKey(): true}}
	}
	return Audience{}
}

// OnlyVisibility is the audience of exactly what was learned with the visibility of a channel, for any rule. Statements are
// compared only with memories that the same people may see.
func OnlyVisibility(c Channel) Audience {
	return Audience{keys: map[string]bool{c.VisibilityKey(): true}}
}

// Sees reports whether data learned in the channel is visible.
func (a Audience) Sees(c Channel) bool { return a.everything || a.keys[c.VisibilityKey()] }

// Keys lists the visibility keys the audience sees; all is true when it sees everything and keys is empty.
func (a Audience) Keys() (keys []string, all bool) {
	if a.everything {
		return nil, true
	}
	for k := range a.keys {
		keys = append(keys, k)
	}
	return keys, false
}

// Normalize fills in defaults.
func (s Scope) Normalize() Scope {
	if s.Namespace == "" {
		s.Namespace = DefaultNamespace
	}
	return s
}

// Validate reports what is wrong with a normalized scope; fields are named below prefix, for example "scope.user_id".
func (s Scope) Validate(prefix string, needsUser bool) Violations {
	var v Violations
	v.Check(prefix+".namespace", namespaceProblem(s.Namespace))
	switch {
	case s.UserID == "" && needsUser:
		v.Add(prefix+".user_id", "is required: say whose memory this is about")
	default:
		v.Check(prefix+".user_id", IDProblem(s.UserID))
	}
	v.Check(prefix+".agent_id", IDProblem(s.AgentID))
	v.Check(prefix+".channel_id", IDProblem(s.Channel.ID))
	v.Check(prefix+".session_id", IDProblem(s.SessionID))
	switch s.Channel.Kind {
	case ChannelUnspecified, ChannelDirect:
	case ChannelGroup:
		if s.Channel.ID == "" {
			v.Add(prefix+".channel_id", "is required for a group: it decides who may see what is learned here")
		}
	default:
		v.Add(prefix+".channel_kind", "is not a known kind: use CHANNEL_KIND_DIRECT, CHANNEL_KIND_GROUP or leave it unset")
	}
	return v
}

// IDProblem says what is wrong with an opaque identifier that a caller chose, or "". Empty is allowed.
func IDProblem(id string) string {
	switch {
	case len(id) > MaxIDBytes:
		return "is longer than 256 bytes"
	case !utf8.ValidString(id):
		return "is not valid UTF-8"
	case strings.ContainsFunc(id, unicode.IsControl):
		return "holds a control character"
	}
	return ""
}

func namespaceProblem(ns string) string {
	const allowed = "use 1 to 8 segments of letters, digits, \".\", \"_\" and \"-\", joined by \"/\""
	if len(ns) > MaxNamespaceBytes {
		return "is longer than 200 bytes"
	}
	segments := strings.Split(ns, "/")
	if len(segments) > MaxNamespaceSegments {
		return "has more than 8 segments: " + allowed
	}
	for _, seg := range segments {
		if seg == "" || seg == "." || seg == ".." {
			return "has an empty or dot segment: " + allowed
		}
		for _, r := range seg {
			ok := r == '.' || r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
			if !ok {
				return "holds a character that is not allowed: " + allowed
			}
		}
	}
	return ""
}
