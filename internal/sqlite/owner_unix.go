//go:build unix

package sqlite

import (
	"fmt"
	"os"
	"syscall"
)

// keepOwner gives a file the owner of the file that it replaces. The operator who runs a command is often another user than the sidecar's.
func keepOwner(part, path string) error {
	old, err := os.Stat(path)
	if err != nil {
		return err
	}
	made, err := os.Stat(part)
	if err != nil {
		return err
	}
	was, ok := old.Sys().(*syscall.Stat_t)
	is, both := made.Sys().(*syscall.Stat_t)
	if ok && both && (was.Uid != is.Uid || was.Gid != is.Gid) {
		if err := os.Chown(part, int(was.Uid), int(was.Gid)); err != nil {
			return fmt.Errorf("%w: run this as the user whom %s belongs to, or as root", err, path)
		}
	}
	return os.Chmod(part, old.Mode().Perm())
}

// linked reports whether an open file still has a name somewhere.
func linked(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	return ok && is.Nlink > 0
}
