//go:build !unix

package sqlite

// keepOwner has nothing to do where files inherit from their folder who may use them.
func keepOwner(_, _ string) error { return nil }
