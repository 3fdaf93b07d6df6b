package session

import (
	"context"
	"errors"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// When the background work on a session is done.

// Resume makes postponed summaries due. Call it when their model recovered.
func (k *Service) Resume() {
	k.postponed.Resume()
	k.signal()
}

func (k *Service) makeDue(now time.Time) error {
	return k.postponed.Run(now, func(all bool) error {
		after := now.Add(keepEvery + k.failures.Pauses.Longest())
		if err := k.Store.ResetClock(k.ctx, after, now); err != nil {
			return err
		}
		if all {
			after = now
		}
		return k.Store.MakeDue(k.ctx, after, now)
	})
}

// due returns due work that can be done now. While the model is unavailable it returns at most one summary, to find out whether the
// model recovered.
func (k *Service) due(now time.Time, busy map[task]context.CancelFunc) (due []Due, next time.Time, err error) {
	summaries := 0
	for t := range busy {
		if t.kind == DueSummarize {
			summaries++
		}
	}
	allowed, wait := k.options.Unavailable.Now(k.options.Workers, summaries)
	if allowed == k.options.Workers {
		return k.Store.Due(k.ctx, now, k.options.Workers)
	}
	due, next, err = k.Store.Due(k.ctx, now, k.options.Workers, DueConsider)
	if err != nil {
		return nil, next, err
	}
	if wait > 0 {
		return due, soonest(next, now.Add(wait)), nil
	}
	if allowed == 0 {
		return due, next, nil // the end of the summary signals
	}
	probe, more, err := k.Store.Due(k.ctx, now, allowed, DueSummarize)
	if more.Before(now) {
		more = time.Time{} // other due work waits for the end of the probe
	}
	return append(probe, due...), soonest(next, more), err
}

// soonest returns the earlier of two times; zero means none.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// pause returns how long a failed task is postponed. It grows with consecutive failures and respects the delay that a full queue asks
// for. Permanent errors are retried, too, since an operator may fix the cause.
func (k *Service) pause(t task, err error) time.Duration {
	_, transient := errors.AsType[*memory.TransientError](err)
	overload, full := errors.AsType[*memory.OverloadError](err)
	var least time.Duration
	switch {
	case full:
		least = overload.RetryAfter
	case !transient:
		least = keepEvery
	}
	return max(least, k.failures.Failed(t, err))
}
