// Package lists keeps the numbered lists that a bot shows, so that "3" means the third real item, and registries of what
// was seen, so that a scheduled check tells only what is new. Store declares what the storage must do; liststest holds what
// every implementation must keep to.
package lists

import (
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits of what is put.
const (
	MaxItems           = 500     // of one call
	MaxBytes           = 2 << 20 // of one call: what it answers is taken in by gRPC clients by default
	MaxKeys            = 5000
	MaxKeyBytes        = 2048
	MaxTitleRunes      = 1000
	MaxAttributesBytes = 16 << 10
	MaxTextRunes       = 200 // of what the user said
)

// DefaultList is the name of a registry that is given none.
const DefaultList = "default"

// Kind is the kind of a registry's owner.
type Kind string

// The kinds.
const (
	KindUser      Kind = "user"
	KindChannel   Kind = "channel"
	KindNamespace Kind = "namespace"
)

// Registry is what was seen, by name. A user's has a part for each visibility.
type Registry struct {
	Namespace string
	Kind      Kind
	Channel   memory.Channel // in which it is visible; none for a namespace's
	// Member is whose it is; "" is everybody's who sees it, or where nobody is named.
	Member string
	List   string
}

// RegistryOf is the registry that a scope means. An empty kind is the user's when there is one, else the channel's, else
// the namespace's.
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

// View is a registry as a request sees it: of a user's all parts that the audience sees, as one.
type View struct {
	Registry
	Audience memory.Audience
	Part     bool // only the registry's own part
}

// Keys lists the visibility keys of the parts seen; all is true when it sees all of them.
func (v View) Keys() (keys []string, all bool) {
	if v.Kind == KindUser && !v.Part {
		return v.Audience.Keys()
	}
	return []string{v.Channel.VisibilityKey()}, false
}

// PlaceKind is where a list is shown.
type PlaceKind string

// The kinds of place.
const (
	PlaceSession PlaceKind = "session"
	PlaceChannel PlaceKind = "channel"
	PlaceUser    PlaceKind = "user"
)

// Place is where lists are shown, one for each name.
type Place struct {
	Namespace string
	Kind      PlaceKind
	ID        string // of the session or the channel
	Channel   memory.Channel
	Member    string // who sees it; "" is everybody in a group, or nobody in particular
	Audience  memory.Audience
}

// PlaceOf is where a scope shows its lists. ok is false when it names neither session nor channel nor user.
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

// String names the place in messages to people.
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

// Keys lists the visibility keys of the lists seen from here; all is true when it sees all. Sessions and channels see only
// their own; a user whose chat has no id sees what this audience sees.
func (p Place) Keys() (keys []string, all bool) {
	if p.Kind == PlaceUser {
		return p.Audience.Keys()
	}
	return []string{p.Channel.VisibilityKey()}, false
}

// Item is a thing that a tool found.
type Item struct {
	Key        string // its real id or URL
	Title      string
	Attributes string // a JSON object as it was sent, or ""
	FirstSeen  time.Time
	Notified   bool
}

// Numbered is an item of a list.
type Numbered struct {
	Item
	Number int  // from 1
	New    bool // the registry did not have it before
}

// Shown is a numbered list that is being shown.
type Shown struct {
	Place   Place // without audience
	List    string
	Kind    Kind // of its registry
	Items   []Numbered
	ShownAt time.Time
}

// Mode is on whose behalf a tool looked.
type Mode string

// The modes.
const (
	// Manual adds and updates, and shows the list.
	Manual Mode = "manual"
	// Scheduled adds only what is new, as notified.
	Scheduled Mode = "scheduled"
	// Import adds new items only, unchanged.
	Import Mode = "import"
)
