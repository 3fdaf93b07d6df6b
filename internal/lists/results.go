// Package lists keeps the numbered lists that a bot shows, so that "3" means the third real item, and registries of seen items, so that
// a scheduled check reports only new ones. Store is the storage contract; liststest is its conformance suite.
package lists

import (
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits of Put.
const (
	MaxItems           = 500     // of one call
	MaxBytes           = 2 << 20 // of one call; the answer stays below the default limit of gRPC clients
	MaxKeys            = 5000
	MaxKeyBytes        = 2048
	MaxTitleRunes      = 1000
	MaxAttributesBytes = 16 << 10
	MaxTextRunes       = 200 // of the user's answer
)

// DefaultList is the name of a registry without a given name.
const DefaultList = "default"

// Kind is the kind of a registry's owner.
type Kind string

// The kinds.
const (
	KindUser      Kind = "user"
	KindChannel   Kind = "channel"
	KindNamespace Kind = "namespace"
)

// Registry names a set of seen items. A user's registry has a part for each visibility.
type Registry struct {
	Namespace string
	Kind      Kind
	Channel   memory.Channel // where it is visible; empty for a namespace's registry
	// Member is the user who owns it; "" if all who see it share it, or no user is named.
	Member string
	List   string
}

// RegistryOf returns the registry of a scope. An empty kind means the user's if the scope names a user, else the channel's, else the
// namespace's.
func RegistryOf(scope memory.Scope, kind Kind, list string) (Registry, memory.Violations) {
	var v memory.Violations
	if kind == "" {
		switch {
		case scope.UserID != "":
			kind = KindUser
		case scope.Channel.ID != "":
			kind = KindChannel
		default:
			kind = KindNamespace
		}
	}
	if list == "" {
		list = DefaultList
	}
	v.Check("list", memory.IDProblem(list))
	r := Registry{Namespace: scope.Namespace, Kind: kind, Channel: scope.Channel, List: list}
	switch kind {
	case KindUser:
		if scope.UserID == "" {
			v.Add("scope.user_id", "is required for a user's registry")
		}
		r.Member = scope.UserID
		if r.Channel.Kind != memory.ChannelGroup { // one for all direct chats
			r.Channel.ID = ""
		}
	case KindChannel:
		if scope.Channel.ID == "" {
			v.Add("scope.channel_id", "is required for a channel's registry")
		}
		if r.Channel.Kind != memory.ChannelGroup {
			r.Member = scope.UserID
		}
	case KindNamespace:
		r.Channel = memory.Channel{}
	default:
		v.Add("registry_kind", "is not a known kind")
	}
	return r, v
}

// View is a registry as a request sees it: all parts of a user's registry that the audience may see, merged.
type View struct {
	Registry
	Audience memory.Audience
	Part     bool // only the part of this visibility
}

// Keys returns the visibility keys of the visible parts; all is true if all parts are visible.
func (v View) Keys() (keys []string, all bool) {
	if v.Kind == KindUser && !v.Part {
		return v.Audience.Keys()
	}
	return []string{v.Channel.VisibilityKey()}, false
}

// PlaceKind is the kind of a place.
type PlaceKind string

// The kinds of place.
const (
	PlaceSession PlaceKind = "session"
	PlaceChannel PlaceKind = "channel"
	PlaceUser    PlaceKind = "user"
)

// Place is where lists are shown. It shows at most one list per name.
type Place struct {
	Namespace string
	Kind      PlaceKind
	ID        string // of the session or the channel
	Channel   memory.Channel
	Member    string // the user who sees it; "" for all of a group, or for no particular user
	Audience  memory.Audience
}

// PlaceOf returns where a scope shows its lists. ok is false if the scope names no session, channel or user.
func PlaceOf(scope memory.Scope, audience memory.Audience) (p Place, ok bool) {
	p = Place{Namespace: scope.Namespace, Channel: scope.Channel, Member: scope.UserID, Audience: audience}
	if p.Channel.Kind == memory.ChannelGroup {
		p.Member = ""
	}
	switch {
	case scope.SessionID != "":
		p.Kind, p.ID = PlaceSession, scope.SessionID
	case scope.Channel.ID != "":
		p.Kind, p.ID = PlaceChannel, scope.Channel.ID
	case scope.UserID != "":
		p.Kind = PlaceUser
	default:
		return p, false
	}
	return p, true
}

// String describes the place in messages to people.
func (p Place) String() string {
	switch p.Kind {
	case PlaceSession:
		return "in session \"" + p.ID + "\""
	case PlaceChannel:
		return "in channel \"" + p.ID + "\""
	case PlaceUser:
		return "to user \"" + p.Member + "\" outside of any session or channel"
	}
	return "here"
}

// Keys returns the visibility keys of the lists visible here; all is true if all are visible. Sessions and channels see only their own;
// a user in a chat without an id sees what the audience may see.
func (p Place) Keys() (keys []string, all bool) {
	if p.Kind == PlaceUser {
		return p.Audience.Keys()
	}
	return []string{p.Channel.VisibilityKey()}, false
}

// Item is something that a tool found.
type Item struct {
	Key        string // its real id or URL
	Title      string
	Attributes string // a JSON object as received, or ""
	FirstSeen  time.Time
	Notified   bool
}

// Numbered is an item of a list.
type Numbered struct {
	Item
	Number int  // from 1
	New    bool // the registry did not have it before
}

// Shown is a numbered list being shown.
type Shown struct {
	Place   Place // without audience
	List    string
	Kind    Kind // of its registry
	Items   []Numbered
	ShownAt time.Time
}

// Mode says who started the tool that found the items.
type Mode string

// The modes.
const (
	// Manual adds and updates items, and shows the list.
	Manual Mode = "manual"
	// Scheduled adds only new items, as notified.
	Scheduled Mode = "scheduled"
	// Import adds only new items, unchanged.
	Import Mode = "import"
)
