//go:build !unix

package sqlite

import "os"

// keepOwner has nothing to do where files inherit from their folder who may use them.
func keepOwner(_, _ string) error { return nil }

// linked reports whether an open file has a name: one that is open cannot be removed.
func linked(*os.File) bool { return true }
