package sqlite

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// removedMessage is a message of a session whose row is being deleted.
type removedMessage struct {
	row      int64
	ownerRow int64 // 0: nobody's
	withheld bool
	message  memory.Message
}

// unindexMessages removes what was derived from messages that are being deleted, in the same transaction.
func unindexMessages(_ context.Context, _ *Tx, _ []removedMessage) error { return nil }

// forgetIndex removes all that was derived from a user's messages.
func forgetIndex(_ context.Context, _ *Tx, _ int64) error { return nil }
