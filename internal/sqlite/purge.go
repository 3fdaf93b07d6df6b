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

// purging is how the purges stand.
type purging struct {
	turn chan struct{} // holds a token while somebody purges: that serves all who asked before it began

	mu          sync.Mutex
	asked, done int64     // how many were asked for, and how many of these are done
	since       time.Time // when the oldest that waits was asked for; zero for none
	begun       int64     // how many attempts were
	ended       attempt   // the last
}

// attempt is one that was made, and what came of it.
type attempt struct {
	number int64
	done   bool
	err    error
	took   time.Duration
}

// ask notes a purge that is to be done.
func (p *purging) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == p.done {
		p.since = time.Now()
	}
	p.asked++
}

// attempts is how many were begun.
func (p *purging) attempts() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// last is the attempt that ended last.
func (p *purging) last() attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// begin begins an attempt. What was asked for until now is served by it.
func (p *purging) begin() (number, serves int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	return p.begun, p.asked
}

// end notes what came of an attempt.
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

// patience is how long Purge tries: reads take microseconds to milliseconds, and a few short pauses outlast them. A large
// file takes longer to look through, and longer still the first time. leastTries are made however long they take: the reader who
// was in the way of the first may have stood still for all of that time, as the whole process does when the machine gives it none.
const (
	patience   = 2 * time.Second
	leastTries = 8
)

// Purge implements sqldb.Access. One who asks purges, and tries again, for all; of the others each takes an answer that was begun after
// it had asked.
func (s *Storage) Purge(ctx context.Context) (done bool, err error) {
	s.due.ask()
	if done, err = s.purgeWithin(ctx, patience, leastTries); !done {
		s.purge.Notify()
	}
	return done, err
}

// purgeWithin tries for a while, but so many times at least.
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
	pauses := &tries{BackOff: shortPauses(), least: least, until: time.Now().Add(left)}
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

// tries are the pauses between attempts until some time, and in any case between so many.
type tries struct {
	backoff.BackOff
	least int
	until time.Time
	made  int
}

// NextBackOff implements backoff.BackOff.
func (t *tries) NextBackOff() time.Duration {
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

// PurgeWaiting says since when bytes of deleted data are to be removed from the files and are still there; the zero time when
// there are none.
func (s *Storage) PurgeWaiting() time.Time {
	s.due.mu.Lock()
	defer s.due.mu.Unlock()
	return s.due.since
}

var errLogInUse = errors.New("a reader uses the write-ahead log")

// purgeOnce makes an attempt. The turn must be the caller's.
func (s *Storage) purgeOnce(ctx context.Context) (done bool, err error) {
	number, serves := s.due.begin()
	begun := time.Now()
	err = s.write(func(db *database) (err error) {
		done, err = db.purge(ctx)
		return err
	})
	if err == nil || ctx.Err() == nil { // that this caller gave up is no answer for others
		s.due.end(attempt{number, done, err, time.Since(begun)}, serves)
	}
	return done, err
}

// purgeLater goes on with purges that nobody waits for, or that a reader or an outage prevented. It rests longer after one that
// took long.
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
			case <-s.purge: // asked for meanwhile; this attempt serves that as well
			default:
			}
			if s.PurgeWaiting().IsZero() { // somebody who waited for it was faster
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

// The file says whether a purge was begun and not completed, for the next process to go on with it. Of the numbers that SQLite
// keeps for an application in the file's header user_version is the one that nothing else uses.

func isUnpurged(ctx context.Context, q sqldb.Querier) (unpurged bool, err error) {
	var version int
	err = q.QueryRow(ctx, "PRAGMA user_version").Scan(&version)
	return version != 0, err
}

// markUnpurged writes also when nothing changes.
func markUnpurged(ctx context.Context, tx sqldb.Tx, unpurged bool) error {
	statement := "PRAGMA user_version = 0"
	if unpurged {
		statement = "PRAGMA user_version = 1"
	}
	_, err := tx.Exec(ctx, statement)
	return err
}

// prove writes to a file that was opened, before anybody relies on it: opening reads little, and a full disk or a read-only file
// shows only then. It empties the log, in which there may still be what a process that was killed had deleted, and reports
// whether a purge is still to be done.
func (d *database) prove(ctx context.Context) (unpurged bool, err error) {
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
