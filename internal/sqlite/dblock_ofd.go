//go:build linux || darwin

package sqlite

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
)

// lockedByte is far beyond the end of any database, and so beyond all bytes that SQLite locks or reads.
const lockedByte = 1 << 62

// lockDatabase locks an open database against other sidecars until the file is closed. The lock belongs to the open file
// (F_OFD_SETLK), so it neither conflicts with SQLite's locks, which belong to the process, nor is lost when SQLite closes a file. Where
// the file system has no such locks, only the lock file keeps others out.
func lockDatabase(f *os.File) error {
	command := 37 // F_OFD_SETLK, which package syscall does not have
	if runtime.GOOS == "darwin" {
		command = 90
	}
	err := syscall.FcntlFlock(f.Fd(), command, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: lockedByte, Len: 1})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return ErrLocked
	}
	return nil // any other error means that the system has no such locks
}
