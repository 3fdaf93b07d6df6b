//go:build linux || darwin

package sqlite

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
)

// lockedByte is far behind the end of any database, and so behind all bytes that SQLite locks or reads.
const lockedByte = 1 << 62

// lockDatabase locks an open database against other sidecars until the file is closed. The lock belongs to the open file
// (F_OFD_SETLK), so it neither conflicts with SQLite's locks, which belong to the process, nor is lost when SQLite closes a file. Where
// the file system has no such locks, only the lock file keeps others out.
func lockDatabase(f *os.File) error {
	err := setLock(f, syscall.F_WRLCK)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return ErrLocked
	}
	return nil // any other error says that there are no such locks here
}

// closeDatabase unlocks and closes a file that lockDatabase locked. Closing alone would keep the lock while a child process that was just
// forked still has a copy of the descriptor.
func closeDatabase(f *os.File) error {
	_ = setLock(f, syscall.F_UNLCK) // closing releases the lock as well
	return f.Close()
}

func setLock(f *os.File, kind int16) error {
	command := 37 // F_OFD_SETLK, which package syscall does not have
	if runtime.GOOS == "darwin" {
		command = 90
	}
	return syscall.FcntlFlock(f.Fd(), command, &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: lockedByte, Len: 1})
}
