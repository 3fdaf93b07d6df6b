package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cenkalti/backoff/v5"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Reading and writing have a breaker each, so that data can be read on a full or read-only disk. The breaker of reads opens when the
// database cannot be opened or a read fails; then nothing is written either. The breaker of writes opens when a write fails.

// WriteStatus is the state of the breaker of writes. It is only meaningful while Status is closed.
func (s *Storage) WriteStatus() breaker.Status { return s.writing.Status() }

// newWriteBreaker returns the breaker of writes, which wakes recoverWrites when it opens.
func (s *Storage) newWriteBreaker(config breaker.Config) *breaker.Breaker {
	inner := config.OnChange
	config.Name = "storage writes"
	config.IsFailure = func(err error) bool { return isOutage(err) && !errors.Is(err, ErrGone) }
	config.OnChange = func(status breaker.Status) {
		if status.State == breaker.Open {
			s.wakeWrites.Notify()
		}
		inner(status)
	}
	return breaker.New(config)
}

// write calls fn behind the breaker of writes. A failure does not affect reads.
func (s *Storage) write(fn func(*database) error) error {
	for _, b := range []*breaker.Breaker{s.breaker, s.writing} {
		if status := b.Status(); status.State != breaker.Closed {
			return fmt.Errorf("%w: %s", memory.ErrUnavailable, status.Reason)
		}
	}
	err := s.writing.Do(func() error { return s.use(fn) })
	if errors.Is(err, ErrGone) {
		err = s.breaker.Do(func() error { return err }) // nothing can be read either
	}
	return s.classify(err)
}

// recoverWrites tests whether the database can be written to again, with growing pauses, whenever the breaker of writes is open.
func (s *Storage) recoverWrites(ctx context.Context) {
	for {
		select {
		case <-s.wakeWrites:
		case <-ctx.Done():
			return
		}
		pauses := backoff.NewExponentialBackOff()
		pauses.InitialInterval, pauses.MaxInterval = s.options.RetryMin, s.options.RetryMax
		for s.WriteStatus().State != breaker.Closed {
			if !background.Sleep(ctx, pauses.NextBackOff()) {
				return
			}
			if s.Status().State != breaker.Closed {
				pauses.Reset() // opening the database tests writing, too
				continue
			}
			if err := s.probeWrites(ctx); err != nil {
				s.options.Log.Debug("storage still cannot be written to", "error", err)
			}
		}
	}
}

// probeWrites tests whether the open database is writable. A database that was opened for reading only is reopened, and so is one whose
// connections a failure may have broken.
func (s *Storage) probeWrites(ctx context.Context) error {
	again := false
	err := s.writing.Do(func() error {
		if err := testRoom(s.options.Dir); err != nil {
			return &openError{err}
		}
		return s.use(func(db *database) error {
			if again = db.readOnly != nil; again {
				return db.readOnly
			}
			unpurged, err := db.testWrite(ctx)
			if again = err != nil && !full(err); err == nil && unpurged {
				s.PurgeLater()
			}
			return err
		})
	})
	if !again {
		return err
	}
	return s.probe(ctx)
}

// recordWritable records whether a newly opened database is writable. If not, it still serves reads.
func (s *Storage) recordWritable(err error) {
	_ = s.writing.Do(func() error { return err }) // an open breaker is closed by the next probe
}

// full reports whether an error means that there is no space or that another program holds a lock. Opening the database again does not
// help then.
func full(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff
	return code == sqlitelib.SQLITE_FULL || code == sqlitelib.SQLITE_BUSY || code == sqlitelib.SQLITE_LOCKED
}

// roomProbe is how much must fit on the disk before writes are tested after a failure. A single page would fit into the log even if the
// next dialogue does not.
const roomProbe = 256 << 10

// testRoom writes a file into the data folder, and removes it.
func testRoom(dir string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, roomName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, roomProbe))
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("the disk is full: %w", err)
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// roomName is the file of testRoom. If a crash left it, the next test overwrites and removes it.
const roomName = ".memsidecar-room" + partSuffix

// isWriteFailure reports whether an error means that the disk accepts no writes: it is full, read-only, or fails.
func isWriteFailure(err error) bool {
	for _, errno := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT, syscall.EIO, fs.ErrPermission} {
		if errors.Is(err, errno) {
			return true
		}
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlitelib.SQLITE_FULL, sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED:
		return e.Code() != sqlitelib.SQLITE_READONLY_DBMOVED
	}
	return false
}
