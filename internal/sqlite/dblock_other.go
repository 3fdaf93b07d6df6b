//go:build !linux && !darwin

package sqlite

import "os"

// lockDatabase does nothing: on Windows an open lock file cannot be removed, and other systems have no lock per open file.
func lockDatabase(*os.File) error { return nil }
