// Package trace records what the sidecar did for a call: what was asked, what was found and why it ranked so. Recording
// is asynchronous and never on a caller's path; a crash may lose the last records.
package trace

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/memsidecar/memsidecar/internal/batch"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Kind is what kind of call a trace records.
type Kind string

// KindRetrieve is a call of Retrieve.
const KindRetrieve Kind = "retrieve"

// Record is the trace of one call.
type Record struct {
	ID   string
	User memory.User
	Kind Kind
	At   time.Time
	Data []byte // what happened, as JSON
}

// NewID returns an id for a record.
func NewID() string { return "trc_" + uuid.Must(uuid.NewV7()).String() }

// Store keeps records.
type Store interface {
	// Append stores records.
	Append(ctx context.Context, records []Record) error
	// Prune deletes records older than the time.
	Prune(ctx context.Context, before time.Time) error
	// Forget deletes a user's records and returns how many there were.
	Forget(ctx context.Context, user memory.User) (int64, error)
}

// Options describes a recorder.
type Options struct {
	Retention time.Duration // how long records are kept; 0 records nothing
	Log       *slog.Logger
}

const pruneEvery = time.Hour

// Recorder writes records to a store in the background.
type Recorder struct {
	store   Store
	options Options
	writer  *batch.Writer[Record]
	stop    context.CancelFunc
	tasks   sync.WaitGroup
}

// NewRecorder returns a recorder that works until Close.
func NewRecorder(store Store, options Options) *Recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{store: store, options: options, stop: stop, writer: batch.NewWriter(store.Append, batch.Options{
		Name: "traces", Every: time.Second, Max: 10_000, Log: options.Log,
	})}
	r.tasks.Go(func() { r.prune(ctx) })
	return r
}

// Enabled reports whether records are kept at all.
func (r *Recorder) Enabled() bool { return r.options.Retention > 0 }

// Record takes a record. It never blocks.
func (r *Recorder) Record(record Record) {
	if r.Enabled() {
		r.writer.Add(record)
	}
}

// Forget deletes a user's records, those that wait included, and returns how many there were.
func (r *Recorder) Forget(ctx context.Context, user memory.User) (int64, error) {
	r.writer.Flush(ctx) // so that none is written after the deletion
	return r.store.Forget(ctx, user)
}

// Close writes what waits and stops.
func (r *Recorder) Close() {
	r.stop()
	r.tasks.Wait()
	r.writer.Close()
}

func (r *Recorder) prune(ctx context.Context) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			if err := r.store.Prune(ctx, now.Add(-r.options.Retention)); err != nil {
				r.options.Log.Debug("pruning traces", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
