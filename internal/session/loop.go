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
	// storagePoll is how often an unavailable store is asked again without a call of Wake.
	storagePoll = 5 * time.Second
	// leastPause is the pause between two looks for due work, however often the keeper is woken: every message wakes it.
	leastPause = 10 * time.Millisecond
	// keepEvery is how often messages that are too old are looked for, and what is not worth another try before.
	keepEvery = time.Hour
	// expireStep is how many messages are deleted in one transaction: all other writes wait for it.
	expireStep = 500
)

// task is one thing to be done for a session.
type task struct {
	namespace, session string
	kind               DueKind
}

// Start starts the background work, including what earlier processes left.
func (k *Keeper) Start() {
	k.signal()
	k.loop.Go(k.run)
}

// Stop starts no more work, waits for running work until the context ends, then cancels it. Cancelled work is due again at the next
// start.
func (k *Keeper) Stop(ctx context.Context) {
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

// Wake looks for due work now. Call it when storage recovered.
func (k *Keeper) Wake() {
	k.mu.Lock()
	k.notUntil = time.Time{}
	k.mu.Unlock()
	k.signal()
}

// signal makes the loop look for due work, unless storage was unavailable a moment ago.
func (k *Keeper) signal() { k.notifier.Notify() }

// run does due work until Stop.
func (k *Keeper) run() {
	var looked time.Time
	background.Run(k.ctx, k.notifier, func() time.Time {
		if !background.Sleep(k.ctx, leastPause-time.Since(looked)) {
			return time.Time{}
		}
		looked = time.Now()
		return k.begin(looked)
	})
}

// begin starts due work, as far as there are workers, and returns when to look again.
func (k *Keeper) begin(now time.Time) time.Time {
	k.mu.Lock()
	busy := maps.Clone(k.running) // before asking what is due: what ends meanwhile was due and is not
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
	if err := k.makeDue(now); err != nil {
		return k.down("making due what is postponed", err)
	}
	due, more, err := k.due(now, busy)
	if err != nil {
		return k.down("looking for what is due", err)
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
		// It is due as before it was done: something came in meanwhile. Without a pause the keeper could do nothing else.
		until := now.Add(k.options.BackoffMin)
		if err := k.Store.Postpone(k.ctx, d, until); err != nil {
			return k.down("putting off what is due", err)
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

// down leaves storage alone for a while, after an error of it, and returns until when.
func (k *Keeper) down(doing string, err error) time.Time {
	k.failed(doing, err)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notUntil = time.Now().Add(storagePoll)
	return k.notUntil
}

// failed logs an error of the store, unless it only says that storage is down, which has a log line of its own, or that the
// keeper stops.
func (k *Keeper) failed(doing string, err error) {
	if k.ctx.Err() == nil {
		k.options.Heartbeat.Beat(err)
	}
	if k.ctx.Err() == nil && !errors.Is(err, memory.ErrUnavailable) {
		k.options.Log.Error("the storage of sessions failed", "doing", doing, "error", err)
	}
}

// start does a task in the background. The keeper must be locked.
func (k *Keeper) start(t task, d Due) {
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
			k.notUntil = time.Now().Add(storagePoll)
		}
		k.mu.Unlock()
		k.signal()
	})
}

// attempt does a task once, or puts it off, and reports whether storage was available: otherwise it is due as before.
func (k *Keeper) attempt(ctx context.Context, t task, d Due) (available bool) {
	err := k.do(usage.WithNamespace(ctx, t.namespace), t)
	switch {
	case ctx.Err() != nil: // stopping: it is due at the next start
		return true
	case err == nil, errors.Is(err, memory.ErrNotFound): // deleted meanwhile
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
		k.options.Log.Log(ctx, retry.LogLevel(err), "a session's background work is put off", "doing", t.kind, "namespace", t.namespace, "session", d.SessionID,
			"error", err, "for", pause)
	}
	if err = k.Store.Postpone(ctx, d, time.Now().Add(pause)); err != nil {
		k.failed("putting off what is due", err)
	}
	return err == nil
}

// errOff puts work off because sessions are switched off for the namespace.
var errOff = errors.New("sessions are switched off")

// do does a task. A panic is a bug, and must not take the sidecar down.
func (k *Keeper) do(ctx context.Context, t task) (err error) {
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

// keep completes interrupted deletions and deletes what is too old.
func (k *Keeper) keep() {
	err := k.expire()
	k.mu.Lock()
	k.keeping, k.keepAt = false, time.Now().Add(keepEvery)
	if errors.Is(err, memory.ErrUnavailable) {
		k.keepAt = time.Time{}
		k.notUntil = time.Now().Add(storagePoll)
	}
	k.mu.Unlock()
	if err != nil {
		k.failed("deleting what is too old", err)
	}
	k.signal()
}

func (k *Keeper) expire() error {
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
		n, err := k.Store.Expire(k.ctx, Expiry{Namespace: namespace, Before: time.Now().Add(-retention), Limit: expireStep})
		if err != nil {
			return err
		}
		if n > 0 {
			k.options.Log.Info("deleted messages that were too old", "namespace", namespace, "messages", n)
		}
	}
	return nil
}
