package lists

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Store keeps registries and the lists being shown. All methods are safe for concurrent use; writes are atomic, and durable when they
// return. Errors wrap memory.ErrUnavailable when storage is unavailable.
type Store interface {
	// Put adds items to a registry, shows them if its mode is Manual, and evicts.
	Put(ctx context.Context, p Put) (PutResult, error)
	// Unseen returns those of the keys that the registry does not have, in order and without duplicates, and the time of its last
	// check. It updates the time at which the other items were last seen, to the hour; a failure of that update is ignored.
	Unseen(ctx context.Context, v View, keys []string, at time.Time) (unseen []string, lastCheck time.Time, err error)
	// Items returns a page of a registry, newest first seen first; items with the same time are in the order in which they were put. A
	// page of very long items has fewer than the limit.
	Items(ctx context.Context, v View, after string, limit int) (Page, error)
	// Shown returns the list of that name shown here, or with an empty name the one shown last. It returns ErrNotFound if no such list
	// was shown after the time. Items have their current state in the registry, else the state when they were shown.
	Shown(ctx context.Context, p Place, list string, after time.Time) (Shown, error)
	// AllShown returns all lists of a place that were shown after the time, with the items as Shown returns them.
	AllShown(ctx context.Context, p Place, after time.Time) ([]Shown, error)
	// Delete deletes a registry as the view sees it, and the list of its name shown here; nil means neither. It returns how many items
	// it deleted, and whether there was a registry and a list.
	Delete(ctx context.Context, v *View, p *Place, list string) (items int64, registry, shown bool, err error)

	// Sweep deletes at most limit old items and expired lists of any owner, and returns how many.
	Sweep(ctx context.Context, l Limits, limit int) (deleted int64, err error)
	// ForgetSession deletes the lists shown in a session of a channel of the same visibility.
	ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) error
	// Forget deletes a user's registries, the lists shown to the user, and the lists from those registries.
	Forget(ctx context.Context, user memory.User) (Forgotten, error)
	// Registries returns a page of a user's registries, oldest first. Each part is listed separately.
	Registries(ctx context.Context, user memory.User, after string, limit int) (all []Exported, next string, err error)
	// Lists returns a page of the lists that Forget would delete.
	Lists(ctx context.Context, user memory.User, after string, limit int) (all []Shown, next string, err error)
}

// Limits decide which items and lists are kept.
type Limits struct {
	// MaxItems limits a registry. The items last seen longest ago are evicted, but never an item of the same Put.
	MaxItems int
	// SeenAfter: items last seen before it are deleted; the zero time keeps all.
	SeenAfter time.Time
	// ShownAfter: lists shown before it have expired; the zero time keeps all.
	ShownAfter time.Time
}

// Put is the input of Store.Put.
type Put struct {
	View   View
	Mode   Mode
	Items  []Item // times and notified count in imports only
	At     time.Time
	Limits Limits
	// Place is where the items are shown as a list; nil shows no list.
	Place *Place
	// ShownKeys are the items that an import shows, at ShownAt, unless a list that is as new is being shown.
	ShownKeys []string
	ShownAt   time.Time
	// LastCheck is the last check of an imported registry.
	LastCheck time.Time
}

// PutResult is the result of Put.
type PutResult struct {
	Items     []Numbered // as sent, completed from the registry
	LastCheck time.Time
	Evicted   int
	Shown     bool
}

// Page is a page of a registry.
type Page struct {
	Items     []Item
	Next      string
	Total     int64
	LastCheck time.Time
}

// Forgotten counts what Forget deleted.
type Forgotten struct{ Items, Lists int64 }

// Exported is a registry with its last check.
type Exported struct {
	Registry
	LastCheck time.Time
}
