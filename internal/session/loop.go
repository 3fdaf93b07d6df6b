package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
	"github.com/memsidecar/memsidecar/internal/usage"
)

const (
	// storagePoll is the retry interval for an unavailable store, without a call of Wake.
	storagePoll = 5 * time.Second
	// leastPause is the least time between two polls for due work. Every message wakes the service.
	leastPause = 10 * time.Millisecond
	// keepEvery is the interval of deletions of old messages, and the longest retry interval.
	keepEvery = time.Hour
	// expireStep is the number of messages deleted in one transaction: all other writes wait for it.
	expireStep = 500
)

// task is one piece of work for a session.
type task struct {
	namespace, session string
	kind               DueKind
}

// Start starts the background work, including work left by earlier processes.
func (k *Service) Start() {
	k.signal()
	k.loop.Go(k.run)
}

// Stop starts no more work, waits for running work until the context ends, then cancels it. Cancelled work is due again at the next
// start.
func (k *Service) Stop(ctx context.Context) {
	k.cancel()
	k.loop.Wait()
	finished := make(chan struct{})
	go func() {
		k.tasks.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		k.mu.Lock()
		for _, cancel := range k.running {
			cancel()
		}
		k.mu.Unlock()
		<-finished
	}
}

// Wake polls for due work now. Call it when storage recovered.
func (k *Service) Wake() {
	k.mu.Lock()
	k.notUntil = time.Time{}
	k.mu.Unlock()
	k.signal()
}

// signal makes the loop poll for due work, unless storage was unavailable a moment ago.
func (k *Service) signal() { k.notifier.Notify() }

// run does due work until Stop.
func (k *Service) run() {
	var looked time.Time
	background.Run(k.ctx, k.Now, k.notifier, func() time.Time {
		if !background.Sleep(k.ctx, leastPause-time.Since(looked)) {
			return time.Time{}
		}
		looked = time.Now()
		return k.begin(k.Now())
	})
}

// begin starts due work while workers are free, and returns when to poll again.
func (k *Service) begin(now time.Time) time.Time {
	k.mu.Lock()
	busy := maps.Clone(k.running) // copied before the query, because work that ends now may still be in its result
	wait := k.notUntil
	if !k.keeping && !now.Before(k.keepAt) && !now.Before(wait) {
		k.keeping = true
		k.tasks.Go(k.keep)
	}
	next := k.keepAt
	if k.keeping {
		next = now.Add(keepEvery) // its end signals
	}
	k.mu.Unlock()
	switch {
	case now.Before(wait):
		return wait
	case len(busy) >= k.options.Workers:
		return next // the end of a task signals
	}
	if err := k.markRead(now); err != nil {
		return k.down("noting who reads a session", err)
	}
	if err := k.makeDue(now); err != nil {
		return k.down("making postponed work due", err)
	}
	due, more, err := k.due(now, busy)
	if err != nil {
		return k.down("polling for due work", err)
	}
	if len(due) == 0 {
		k.options.Heartbeat.Beat(nil)
	}
	k.mu.Lock()
	listed := make(map[task]time.Time, len(due))
	var stuck []Due
	for _, d := range due {
		t := task{d.Namespace, cmp.Or(d.Ref, d.SessionID), d.Kind}
		at, again := k.handled[t]
		if again {
			listed[t] = at
		}
		switch _, runs := busy[t]; {
		case runs:
		case again && at.Equal(d.At):
			stuck = append(stuck, d)
		case len(k.running) < k.options.Workers:
			k.start(t, d)
		}
	}
	k.handled = listed
	k.mu.Unlock()
	for _, d := range stuck {
		// It is due again as before, because messages arrived during the work. Without a pause this could starve all other work.
		until := now.Add(k.options.BackoffMin)
		if err := k.Store.Postpone(k.ctx, d, until); err != nil {
			return k.down("postponing due work", err)
		}
		next = earlier(next, until)
	}
	if !more.IsZero() {
		next = earlier(next, more)
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// down pauses polling after a storage error, and returns until when.
func (k *Service) down(doing string, err error) time.Time {
	k.failed(doing, err)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notUntil = k.Now().Add(storagePoll)
	return k.notUntil
}

// failed logs an error of the store, unless storage is unavailable, which is logged elsewhere, or the service stops.
func (k *Service) failed(doing string, err error) {
	if k.ctx.Err() == nil {
		k.options.Heartbeat.Beat(err)
	}
	if k.ctx.Err() == nil && !errors.Is(err, memory.ErrUnavailable) {
		k.options.Log.Error("the storage of sessions failed", "doing", doing, "error", err)
	}
}

// markLater has the background note that the session's context was asked for.
func (k *Service) markLater(s *Session) {
	d := Due{Namespace: s.Namespace, SessionID: cmp.Or(s.Ref, s.ID)}
	k.mu.Lock()
	known := k.asked[d]
	k.asked[d] = true
	k.mu.Unlock()
	if !known {
		k.signal()
	}
}

// markRead notes which sessions' contexts were asked for.
func (k *Service) markRead(now time.Time) error {
	k.mu.Lock()
	asked := maps.Clone(k.asked)
	k.mu.Unlock()
	for d := range asked {
		if err := k.Store.MarkRead(k.ctx, d.Namespace, d.SessionID, k.Extract.Name(), now); err != nil {
			return err
		}
		k.mu.Lock()
		delete(k.asked, d)
		k.mu.Unlock()
	}
	return nil
}

// start starts a task in the background. The service must be locked.
func (k *Service) start(t task, d Due) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.ctx))
	k.running[t] = cancel
	k.tasks.Go(func() {
		defer cancel()
		available := k.attempt(ctx, t, d)
		k.mu.Lock()
		delete(k.running, t)
		k.handled[t] = d.At
		if !available {
			delete(k.handled, t)
			k.notUntil = k.Now().Add(storagePoll)
		}
		k.mu.Unlock()
		k.signal()
	})
}

// attempt does a task once, or postpones it, and reports whether storage was available. If not, the task stays due.
func (k *Service) attempt(ctx context.Context, t task, d Due) (available bool) {
	err := k.do(usage.WithNamespace(ctx, t.namespace), t)
	switch {
	case ctx.Err() != nil: // stopping: it is due at the next start
		return true
	case err == nil, errors.Is(err, memory.ErrNotFound): // deleted concurrently
		k.failures.Done(t)
		k.options.Heartbeat.Beat(nil)
		return true
	case errors.Is(err, memory.ErrUnavailable):
		k.options.Heartbeat.Beat(err)
		return false
	}
	pause := k.pause(t, err)
	if !errors.Is(err, errOff) {
		k.options.Heartbeat.Beat(err)
		k.options.Log.Log(ctx, retry.LogLevel(err), "a session's background work was postponed", "doing", t.kind, "namespace", t.namespace, "session", d.SessionID,
			"error", err, "for", pause)
	}
	if err = k.Store.Postpone(ctx, d, k.Now().Add(pause)); err != nil {
		k.failed("postponing due work", err)
	}
	return err == nil
}

// errOff postpones work because sessions are switched off for the namespace.
var errOff = errors.New("sessions are switched off")

// do does a task. A panic is a bug, but must not end the sidecar.
func (k *Service) do(ctx context.Context, t task) (err error) {
	defer func() {
		if v := recover(); v != nil {
			k.options.Log.Error("panic in a session's background work", "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", v)
		}
	}()
	switch {
	case !k.Policy(t.namespace).Enabled:
		return errOff
	case t.kind == DueSummarize:
		return k.summarize(ctx, t)
	}
	return k.Considerer.ConsiderPending(ctx, t.namespace, t.session)
}

// keep completes interrupted deletions and deletes old messages.
func (k *Service) keep() {
	err := k.expire()
	k.mu.Lock()
	k.keeping, k.keepAt = false, k.Now().Add(keepEvery)
	if errors.Is(err, memory.ErrUnavailable) {
		k.keepAt = time.Time{}
		k.notUntil = k.Now().Add(storagePoll)
	}
	k.mu.Unlock()
	if err != nil {
		k.failed("deleting old messages", err)
	}
	k.signal()
}

func (k *Service) expire() error {
	if err := k.Store.Sweep(k.ctx); err != nil {
		return err
	}
	namespaces, err := k.Store.Namespaces(k.ctx)
	if err != nil {
		return err
	}
	for _, namespace := range namespaces {
		retention := k.Policy(namespace).Retention
		if retention <= 0 {
			continue
		}
		n, err := k.Store.Expire(k.ctx, Expiry{Namespace: namespace, Before: k.Now().Add(-retention), Limit: expireStep})
		if err != nil {
			return err
		}
		if n > 0 {
			k.options.Log.Info("deleted old messages", "namespace", namespace, "messages", n)
		}
	}
	return nil
}
