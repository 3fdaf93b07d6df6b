//go:build !linux && !darwin

package sqlite

import "os"

// lockDatabase does nothing: on Windows an open lock file cannot be removed, and other systems have no lock per open file.
func lockDatabase(*os.File) error { return nil }

// closeDatabase closes a file that lockDatabase locked.
func closeDatabase(f *os.File) error { return f.Close() }
