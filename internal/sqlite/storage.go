package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/gofrs/flock"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// Options describes the storage.
type Options struct {
	// Dir is the data folder; it is created with mode 0700 if it is missing.
	Dir string
	Log *slog.Logger
	// Key returns the key. It is called whenever the database is opened. nil means that the database is not encrypted.
	Key func() (seal.Key, error)
	// RetryMin and RetryMax bound the time between attempts to open the database again. 0 means 1 s and 1 min.
	RetryMin, RetryMax time.Duration
	// CheckEvery is the interval at which the database's files are compared with their paths, in addition to each commit. 0 means 1 s.
	// Tests with a simulated clock choose more.
	CheckEvery time.Duration
	// OnChange is called after each change of the breaker's state. Optional; it must not call Storage.
	OnChange func(breaker.Status)
	// OnCommit is called after each commit with how many writes shared it and how long it took. Optional; it must not block.
	OnCommit func(writes int, took time.Duration)
	// OnUnreadable is called with the table of each stored row that cannot be read, once for each row. Optional; it must not block.
	OnUnreadable func(table string)
}

func (o *Options) key() (seal.Key, error) {
	if o.Key == nil {
		return seal.Key{}, nil
	}
	return o.Key()
}

// Storage is the database behind its circuit breaker. It can be used immediately, even if the database cannot be opened: then every
// call returns memory.ErrUnavailable, and opening is retried.
type Storage struct {
	options Options
	lock    *flock.Flock
	breaker *breaker.Breaker // of opening and reading
	writing *breaker.Breaker

	mu    sync.RWMutex // held for reading while a call uses db, so that it is not closed during the call
	db    *database    // nil while not open
	hooks []func()

	// opened is set once the database was open: from then on a missing file is not created.
	opened bool

	damage damage // unreadable data found so far

	wake       background.Notifier // the breaker opened
	wakeWrites background.Notifier // the breaker of writes opened
	purge      background.Notifier // a purge is pending
	due        purging
	stop       context.CancelFunc
	tasks      sync.WaitGroup
}

var _ sqldb.Access = (*Storage)(nil)

// Open locks the folder and opens the database. The only possible error is ErrLocked: if the database cannot be opened, Status reports
// it and opening is retried.
func Open(ctx context.Context, options Options) (*Storage, error) {
	if options.RetryMin <= 0 {
		options.RetryMin = time.Second
	}
	if options.RetryMax <= 0 {
		options.RetryMax = time.Minute
	}
	if options.CheckEvery <= 0 {
		options.CheckEvery = time.Second
	}
	s := &Storage{
		options:    options,
		lock:       newLock(options.Dir),
		damage:     damage{log: options.Log, onRow: options.OnUnreadable},
		wake:       background.NewNotifier(),
		wakeWrites: background.NewNotifier(),
		purge:      background.NewNotifier(),
		due:        purging{turn: make(chan struct{}, 1)},
	}
	changed := func(status breaker.Status) {
		if options.OnChange != nil {
			options.OnChange(status)
		}
	}
	config := breaker.Config{
		Name:             "storage",
		FailureThreshold: 1,                    // a broken database fails every call; retrying does not help
		OpenFor:          options.RetryMin / 4, // less than the shortest pause between probes
		IsFailure:        isOutage,
		Log:              options.Log,
		OnChange:         changed,
	}
	s.writing = s.newWriteBreaker(config)
	config.OnChange = func(status breaker.Status) {
		if status.State == breaker.Open {
			s.wake.Notify()
		}
		changed(status)
	}
	s.breaker = breaker.New(config)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = cancel
	if err := s.probe(ctx); errors.Is(err, ErrLocked) {
		cancel()
		return nil, err
	}
	s.tasks.Go(func() { s.recover(running) })
	s.tasks.Go(func() { s.recoverWrites(running) })
	s.tasks.Go(func() { s.purgeLater(running) })
	s.tasks.Go(func() { background.Every(running, options.CheckEvery, s.checkPlace) })
	return s, nil
}

// OnOpen implements sqldb.Access. It is also called when the database is opened for the first time after Open has returned.
func (s *Storage) OnOpen(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, fn)
}

// Status is the state of the breaker of opening and reading.
func (s *Storage) Status() breaker.Status { return s.breaker.Status() }

// Close completes the writes in progress, closes the file and releases the lock.
func (s *Storage) Close() error {
	s.stop()
	s.tasks.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		if _, err := s.db.leave(context.Background()); err != nil {
			s.options.Log.Warn("closing the database", "error", err)
		}
		s.db.close()
		s.db = nil
	}
	return s.lock.Close()
}

// checkPlace opens the breaker if the database is no longer where it was opened.
func (s *Storage) checkPlace() {
	_ = s.do(func(db *database) error { return db.place.check() }) // the breaker logs it
}

// Read implements sqldb.Access.
func (s *Storage) Read(ctx context.Context, fn func(sqldb.Querier) error) error {
	return s.do(func(db *database) error { return db.read(fn) })
}

// Write implements sqldb.Access.
func (s *Storage) Write(ctx context.Context, fn func(sqldb.Tx) error) error {
	return s.write(func(db *database) error { return db.submit(ctx, &writeRequest{fn: fn}) })
}

// do calls fn behind the breaker and turns an outage into memory.ErrUnavailable. Callers never probe, recover does, so that a call during
// an outage costs nothing.
func (s *Storage) do(fn func(*database) error) error {
	if status := s.breaker.Status(); status.State != breaker.Closed {
		return fmt.Errorf("%w: %s", memory.ErrUnavailable, status.Reason)
	}
	return s.classify(s.breaker.Do(func() error { return s.use(fn) }))
}

// use calls fn with the database, and keeps it from being closed during the call.
func (s *Storage) use(fn func(*database) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return errClosed
	}
	err := fn(s.db)
	if brokenPage(err) {
		if failure := s.db.filesUnreadable(s.options.Dir); failure != nil {
			return &openError{fmt.Errorf("%w: %w", failure, err)}
		}
	}
	return err
}

// classify records damage, and turns an outage into memory.ErrUnavailable.
func (s *Storage) classify(err error) error {
	err = classify(err)
	s.damage.note(err)
	return err
}

// recover opens the database again whenever the breaker is open, with growing pauses.
func (s *Storage) recover(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		pauses := backoff.NewExponentialBackOff()
		pauses.InitialInterval, pauses.MaxInterval = s.options.RetryMin, s.options.RetryMax
		for s.Status().State != breaker.Closed {
			if !background.Sleep(ctx, pauses.NextBackOff()) {
				return
			}
			if err := s.probe(ctx); err != nil {
				s.options.Log.Debug("storage is still unavailable", "error", err)
				if errors.Is(err, ErrGone) {
					pauses.Reset() // looking for a file is cheap
				}
			}
		}
	}
}

// probe opens the database if it is not open, or reopens it if it broke.
func (s *Storage) probe(ctx context.Context) error {
	return s.breaker.Do(func() error {
		if err := s.reopen(ctx); err != nil {
			return &openError{err}
		}
		return nil
	})
}

func (s *Storage) reopen(ctx context.Context) error {
	s.mu.Lock()
	err := s.replace(ctx)
	hooks := s.hooks // none yet when Open calls
	s.mu.Unlock()
	if err == nil {
		for _, hook := range hooks {
			hook()
		}
	}
	return err
}

// replace closes the database if it is open, and opens the one in the folder.
func (s *Storage) replace(ctx context.Context) error {
	if s.db != nil {
		elsewhere, err := s.db.leave(ctx)
		if err != nil {
			return err
		}
		s.db.close()
		s.db = nil
		if elsewhere { // then the lock file has moved, too, or a command that needs the lock may restore a database
			if err := s.lock.Close(); err != nil {
				return err
			}
		}
	}
	var err error
	if s.opened { // a folder or a lock file created here could block the return of the old one
		err = checkReturned(DatabasePath(s.options.Dir))
	} else {
		err = makeFolder(s.options.Dir)
	}
	if err != nil {
		return err
	}
	if err := s.lockFolder(); err != nil {
		return err
	}
	db, err := s.openSound(ctx)
	if err != nil {
		return err
	}
	s.db, s.opened = db, true
	return nil
}

// lockFolder locks the folder unless it is locked. A lock file that was removed or replaced is locked again.
func (s *Storage) lockFolder() error {
	if filesWithText(s.lock) {
		return nil
	}
	if err := s.lock.Close(); err != nil {
		return err
	}
	got, err := s.lock.TryLock()
	if err == nil && !got {
		err = ErrLocked
	}
	return err
}

// openSound opens the database and tests whether it is writable. Otherwise it is used for reading.
func (s *Storage) openSound(ctx context.Context) (_ *database, err error) {
	s.damage.forget()
	db, err := openDatabase(ctx, s.options.Dir, s.options, !s.opened)
	if isWriteFailure(err) || cannotOpen(err) {
		db, err = openUnwritable(ctx, s.options.Dir, s.options, err)
	}
	if corrupt(err) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	db.readers.damage, db.tx.damage = &s.damage, &s.damage
	unpurged, err := db.testWrite(ctx)
	switch {
	case err == nil && unpurged:
		s.PurgeLater()
	case err != nil && !isOutage(err):
		db.close()
		return nil, err
	}
	s.recordWritable(err)
	return db, nil
}

// Sizes returns the sizes of the database file and of its write-ahead log in bytes; 0 for a missing file.
func (s *Storage) Sizes() (database, log int64) {
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(s.options.Dir, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	return size(fileName), size(fileName + "-wal")
}
