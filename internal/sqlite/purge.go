package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// purging is the state of purges.
type purging struct {
	turn chan struct{} // holds a token during a purge, which serves all earlier requests

	mu          sync.Mutex
	asked, done int64     // numbers of purges requested and completed
	since       time.Time // time of the oldest pending request; zero for none
	begun       int64     // number of attempts started
	ended       attempt   // last attempt
}

// attempt is one attempt to purge, with its result.
type attempt struct {
	number int64
	done   bool
	err    error
	took   time.Duration
}

// ask records a request for a purge.
func (p *purging) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == p.done {
		p.since = time.Now()
	}
	p.asked++
}

// attempts returns how many attempts were started.
func (p *purging) attempts() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// last returns the attempt that ended last.
func (p *purging) last() attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// begin starts an attempt, which serves all requests until now.
func (p *purging) begin() (number, serves int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	return p.begun, p.asked
}

// end records the result of an attempt.
func (p *purging) end(a attempt, serves int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = a
	if !a.done {
		return
	}
	if p.done = max(p.done, serves); p.asked == p.done {
		p.since = time.Time{}
	}
}

// purgeTimeout is how long Purge tries: a few short pauses, because reads take milliseconds. Scanning a large file takes longer. At
// least leastTries attempts are made, however long they take: on an overloaded machine the reader that blocked the first one may have
// been stopped for all of that time.
const (
	purgeTimeout = 2 * time.Second
	leastTries   = 8
)

// Purge implements sqldb.Access. One caller purges, and retries, for all; each of the others takes the result of an attempt that started
// after its request.
func (s *Storage) Purge(ctx context.Context) (done bool, err error) {
	s.due.ask()
	if done, err = s.purgeWithin(ctx, purgeTimeout, leastTries); !done {
		s.purge.Notify()
	}
	return done, err
}

// purgeWithin retries for a while, and makes at least so many attempts.
func (s *Storage) purgeWithin(ctx context.Context, d time.Duration, least int) (done bool, err error) {
	asked, since := time.Now(), s.due.attempts()
	select {
	case s.due.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-s.due.turn }()
	left := d - time.Since(asked)
	if last := s.due.last(); last.number > since && (last.done || last.err != nil || left <= 0) {
		return last.done, last.err
	}
	pauses := &retryPauses{BackOff: shortPauses(), least: least, until: time.Now().Add(left)}
	done, err = backoff.Retry(ctx, func() (bool, error) {
		done, err := s.purgeOnce(ctx)
		switch {
		case err != nil:
			return false, backoff.Permanent(err)
		case !done:
			return false, errLogInUse
		}
		return true, nil
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0)) // tries knows when it is enough
	if errors.Is(err, errLogInUse) {
		err = nil
	}
	return done, err
}

func shortPauses() backoff.BackOff {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 5*time.Millisecond, 200*time.Millisecond
	return pauses
}

// retryPauses are the pauses between attempts: until a time, and at least so many.
type retryPauses struct {
	backoff.BackOff
	least int
	until time.Time
	made  int
}

// NextBackOff implements backoff.BackOff.
func (t *retryPauses) NextBackOff() time.Duration {
	t.made++
	pause := t.BackOff.NextBackOff()
	if t.made >= t.least && time.Now().Add(pause).After(t.until) {
		return backoff.Stop
	}
	return pause
}

// PurgeLater implements sqldb.Access.
func (s *Storage) PurgeLater() {
	s.due.ask()
	s.purge.Notify()
}

// PurgePendingSince returns since when deleted bytes are waiting to be removed from the files, or zero.
func (s *Storage) PurgePendingSince() time.Time {
	s.due.mu.Lock()
	defer s.due.mu.Unlock()
	return s.due.since
}

var errLogInUse = errors.New("a reader uses the write-ahead log")

// purgeOnce makes one attempt. The caller must hold the turn.
func (s *Storage) purgeOnce(ctx context.Context) (done bool, err error) {
	number, serves := s.due.begin()
	begun := time.Now()
	err = s.write(func(db *database) (err error) {
		done, err = db.purge(ctx)
		return err
	})
	if err == nil || ctx.Err() == nil { // the cancellation of one caller is not a result for others
		s.due.end(attempt{number, done, err, time.Since(begun)}, serves)
	}
	return done, err
}

// purgeLater completes purges that no caller waits for, or that a reader or an outage prevented. After a long purge it makes a longer
// pause.
func (s *Storage) purgeLater(ctx context.Context) {
	rest := s.options.RetryMin
	for {
		select {
		case <-s.purge:
		case <-ctx.Done():
			return
		}
		for done := false; !done; {
			if !background.Sleep(ctx, rest) {
				return
			}
			select {
			case <-s.purge: // requested in the meantime; this attempt serves that as well
			default:
			}
			if s.PurgePendingSince().IsZero() { // a waiting caller purged first
				break
			}
			done, _ = s.purgeWithin(ctx, 0, 1) // an outage has its own log line
			rest = max(s.options.RetryMin, 20*s.due.last().took)
			if done {
				s.options.Log.Info("deleted data is purged from the files")
			}
		}
	}
}

// The file records whether a purge was started and not completed, so that the next process can complete it. The record is user_version,
// a number in the file's header that SQLite reserves for applications and that nothing else uses here.

func isUnpurged(ctx context.Context, q sqldb.Querier) (unpurged bool, err error) {
	var version int
	err = q.QueryRow(ctx, "PRAGMA user_version").Scan(&version)
	return version != 0, err
}

// markUnpurged writes even if the value stays the same.
func markUnpurged(ctx context.Context, tx sqldb.Tx, unpurged bool) error {
	statement := "PRAGMA user_version = 0"
	if unpurged {
		statement = "PRAGMA user_version = 1"
	}
	_, err := tx.Exec(ctx, statement)
	return err
}

// testWrite writes to a newly opened file, because opening it reads little, and a full disk or a read-only file shows only on a write.
// It also empties the log, which may hold data deleted by a killed process, and reports whether a purge is still needed.
func (d *database) testWrite(ctx context.Context) (unpurged bool, err error) {
	if d.readOnly != nil {
		return false, d.readOnly
	}
	emptied, err := d.empty(ctx, func(tx sqldb.Tx) error {
		if unpurged, err = isUnpurged(ctx, tx); err != nil {
			return err
		}
		return markUnpurged(ctx, tx, unpurged)
	})
	return unpurged || !emptied, err
}
