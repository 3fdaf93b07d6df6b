package manage

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// SettingsStore keeps the settings of users; settingstest is its conformance suite. Packages that use a part of it declare that
// part. All methods are safe for concurrent use; what writes is durable when it returns, and no later call sees what was before.
// Errors wrap memory.ErrUnavailable when storage is down.
type SettingsStore interface {
	// Get returns a user's settings, the zero value when there are none.
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
	// Update lets change modify the user's settings, stores the result and returns it. change must leave UpdatedAt
	// set. It may be called again when the write has to be repeated.
	Update(ctx context.Context, user memory.User, change func(*memory.Settings)) (memory.Settings, error)
	// Forget deletes a user's settings and reports whether there were any.
	Forget(ctx context.Context, user memory.User) (bool, error)
}
