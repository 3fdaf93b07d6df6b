package lists

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Store keeps registries and the lists being shown. All methods are safe for concurrent use; what writes happens at once or
// not at all, and is durable when it returns. Errors wrap memory.ErrUnavailable when storage is down.
type Store interface {
	// Put adds items to a registry, shows them if its mode is Manual, and evicts.
	Put(ctx context.Context, p Put) (PutDone, error)
	// Unseen returns those of the keys that the registry does not have, in their order, each once, and its last check. The others were last
	// seen at the time given, to the hour; that this cannot be written is no error.
	Unseen(ctx context.Context, v View, keys []string, at time.Time) (unseen []string, lastCheck time.Time, err error)
	// Items returns a page of a registry, the one seen first last; those seen at the same time in the order in which they
	// were put. A page of very long ones has fewer than the limit.
	Items(ctx context.Context, v View, after string, limit int) (Page, error)
	// Shown returns the list of that name that was shown here, or with an empty name the one shown last; ErrNotFound when
	// there is none shown after the time. Items are as the registry has them now, else as they were shown.
	Shown(ctx context.Context, p Place, list string, after time.Time) (Shown, error)
	// AllShown returns all lists of a place that were shown after the time, whatever their names, as Shown returns them.
	AllShown(ctx context.Context, p Place, after time.Time) ([]Shown, error)
	// Delete deletes a registry as the view sees it, and the list of its name shown here; nil is nothing. It returns how
	// many items it deleted, and whether there was a registry and a list.
	Delete(ctx context.Context, v *View, p *Place, list string) (items int64, registry, shown bool, err error)

	// Sweep deletes at most limit items that are too old, and lists that have expired, whosever; it returns how many.
	Sweep(ctx context.Context, l Limits, limit int) (deleted int64, err error)
	// ForgetSession deletes what was shown in a session of a channel of the same visibility.
	ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) error
	// Forget deletes a user's registries and what was shown to the user or came from those registries.
	Forget(ctx context.Context, user memory.User) (Forgotten, error)
	// Registries returns a page of a user's registries, oldest first, each part on its own.
	Registries(ctx context.Context, user memory.User, after string, limit int) (all []Exported, next string, err error)
	// Lists returns a page of what Forget would delete of lists.
	Lists(ctx context.Context, user memory.User, after string, limit int) (all []Shown, next string, err error)
}

// Limits say what is kept.
type Limits struct {
	// MaxItems of a registry; beyond it those last seen the longest ago go, but never an item of the same Put.
	MaxItems int
	// SeenAfter is when an item must have been seen last, or it goes; the zero time is whenever.
	SeenAfter time.Time
	// ShownAfter is when a list must have been shown, or it has expired; the zero time is whenever.
	ShownAfter time.Time
}

// Put is what is put into a registry.
type Put struct {
	View   View
	Mode   Mode
	Items  []Item // times and notified count in imports only
	At     time.Time
	Limits Limits
	// Place is where it is shown; nil is nowhere.
	Place *Place
	// ShownKeys are what an import shows, at ShownAt, unless a list is being shown that is as new.
	ShownKeys []string
	ShownAt   time.Time
	// LastCheck is that of an import.
	LastCheck time.Time
}

// PutDone is what Put did.
type PutDone struct {
	Items     []Numbered // as sent, with what the registry has now
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
