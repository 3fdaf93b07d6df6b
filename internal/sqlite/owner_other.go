//go:build !unix

package sqlite

import "os"

// keepOwner does nothing on systems where files inherit their permissions from the folder.
func keepOwner(_, _ string) error { return nil }

// linked reports whether an open file has a name. On this system an open file cannot be removed.
func linked(*os.File) bool { return true }
