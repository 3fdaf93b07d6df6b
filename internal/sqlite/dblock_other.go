//go:build !linux && !darwin

package sqlite

import "os"

// lockDatabase has nothing to do: on Windows a lock file that is open cannot be removed, and other systems have no lock that belongs to
// an open file.
func lockDatabase(*os.File) error { return nil }

// closeDatabase closes a file that lockDatabase locked.
func closeDatabase(f *os.File) error { return f.Close() }
