package trace

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Options describes a recorder.
type Options struct {
	Retention  time.Duration    // how long records are kept; 0 records nothing
	MaxRecords int              // how many are kept, the newest; 0 is any number
	Redact     *redact.Redactor // takes secrets out of what callers and models wrote; optional
	Log        *slog.Logger
	// Heartbeat is called after each round of deleting old records, with its error. Optional.
	Heartbeat background.Heartbeat
}

const (
	pruneEvery = time.Minute
	// pruneStep is how many records one write deletes. It is small because other writes are blocked during it.
	pruneStep = 500
)

// Recorder writes records to a store in the background.
type Recorder struct {
	store   Store
	options Options
	writer  *background.BatchWriter[Record]
	stop    context.CancelFunc
	tasks   sync.WaitGroup

	mu        sync.Mutex
	forgotten map[memory.User]time.Time // who was forgotten lately, and when
}

// forgottenFor is how long it is remembered that a user was forgotten: longer than a call lasts.
const forgottenFor = time.Hour

// NewRecorder returns a recorder that works until Close.
func NewRecorder(store Store, options Options) *Recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{store: store, options: options, stop: stop, forgotten: map[memory.User]time.Time{}}
	r.writer = background.NewBatchWriter(store.Append, background.BatchOptions{
		Name: "traces", Every: time.Second, Max: 10_000, Log: options.Log,
	})
	r.tasks.Go(func() { r.pruneRegularly(ctx) })
	return r
}

// Enabled reports whether records are kept at all.
func (r *Recorder) Enabled() bool { return r.options.Retention > 0 }

// Record takes a record. It never blocks. The record of a call that began before its user was forgotten, and ended after it,
// is dropped.
func (r *Recorder) Record(record Record) {
	if r.Enabled() && !r.isForgotten(&record) {
		r.writer.Add(record.redacted(r.options.Redact))
	}
}

func (r *Recorder) isForgotten(record *Record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.forgotten[record.Scope.User()]
	return ok && record.At.Before(at)
}

// forget notes that the user is forgotten now, and drops what was noted long ago.
func (r *Recorder) forget(user memory.User) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for other, at := range r.forgotten {
		if now.Sub(at) > forgottenFor {
			delete(r.forgotten, other)
		}
	}
	r.forgotten[user] = now
}

// Get is Store.Get, of records that wait to be written, too.
func (r *Recorder) Get(ctx context.Context, user memory.User, id string, audience memory.Audience) (Record, error) {
	r.writer.Flush(ctx)
	return r.store.Get(ctx, user, id, audience)
}

// List is Store.List, of records that wait to be written, too.
func (r *Recorder) List(ctx context.Context, q ListQuery) (records []Record, next string, err error) {
	r.writer.Flush(ctx)
	return r.store.List(ctx, q)
}

// Flush writes the records that wait.
func (r *Recorder) Flush(ctx context.Context) { r.writer.Flush(ctx) }

// Forget deletes a user's records, those that wait included, and returns how many there were.
func (r *Recorder) Forget(ctx context.Context, user memory.User) (int64, error) {
	r.forget(user)
	r.writer.Flush(ctx) // so that none is written after the deletion
	return r.store.Forget(ctx, user)
}

// ForgetSession deletes the records of what happened in a session of the channel, those that wait included.
func (r *Recorder) ForgetSession(ctx context.Context, namespace, sessionID string, channel memory.Channel, users ...string) (int64, error) {
	r.writer.Flush(ctx)
	return r.store.ForgetSession(ctx, namespace, sessionID, channel, users...)
}

// Close writes the pending records and stops.
func (r *Recorder) Close() {
	r.stop()
	r.tasks.Wait()
	r.writer.Close()
}

func (r *Recorder) pruneRegularly(ctx context.Context) {
	background.Every(ctx, pruneEvery, func() {
		err := r.prune(ctx)
		if ctx.Err() == nil {
			r.options.Heartbeat.Beat(err)
		}
		if err != nil && !errors.Is(err, memory.ErrUnavailable) && ctx.Err() == nil {
			r.options.Log.Warn("pruning traces", "error", err)
		}
	})
}

// prune deletes what is too old, or too much, in steps. With a retention of 0 that is everything.
func (r *Recorder) prune(ctx context.Context) error {
	keep := r.options.MaxRecords
	if keep == 0 {
		keep = math.MaxInt
	}
	for {
		deleted, err := r.store.Prune(ctx, time.Now().Add(-r.options.Retention), keep, pruneStep)
		if err != nil || deleted < pruneStep {
			return err
		}
	}
}
