package background

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// BatchOptions describes a writer.
type BatchOptions struct {
	// Name is used in the log, for example "traces".
	Name string
	// Every is the time between two writes; they come sooner when half of Max waits.
	Every time.Duration
	// Max bounds how many items are buffered when writing is slower than adding. Further items are dropped.
	Max int
	Log *slog.Logger
}

// dropsEvery is how often the log says that items were dropped, however many there are.
const dropsEvery = time.Minute

// BatchWriter gathers items. What could not be written, or has not been when the process dies, is lost.
type BatchWriter[T any] struct {
	write   func(context.Context, []T) error
	options BatchOptions

	mu      sync.Mutex
	waiting []T
	dropped int       // since the log said so
	warned  time.Time // when it did

	full    chan struct{} // half of Max waits
	writing chan struct{} // holds one token while a batch is being written, so that Flush returns after it
	stop    chan struct{}
	done    chan struct{}
}

// NewBatchWriter returns a writer that works until Close.
func NewBatchWriter[T any](write func(context.Context, []T) error, options BatchOptions) *BatchWriter[T] {
	w := &BatchWriter[T]{
		write: write, options: options, full: make(chan struct{}, 1), writing: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go w.run()
	return w
}

// Add takes an item. It never blocks.
func (w *BatchWriter[T]) Add(item T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= w.options.Max {
		w.dropped++
		return
	}
	w.waiting = append(w.waiting, item)
	if len(w.waiting) == (w.options.Max+1)/2 {
		select {
		case w.full <- struct{}{}:
		default:
		}
	}
}

// Flush writes what was added before it was called, unless the context ends first.
func (w *BatchWriter[T]) Flush(ctx context.Context) {
	select {
	case w.writing <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-w.writing }()
	w.mu.Lock()
	items := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	w.warn(dropsEvery)
	if len(items) == 0 {
		return
	}
	// What was taken is written also when the one who asked for it does not wait any more.
	if err := w.write(context.WithoutCancel(ctx), items); err != nil {
		w.options.Log.Debug("lost", "what", w.options.Name, "count", len(items), "error", err)
	}
}

// warn says how many items were dropped, if any were and it has not said so for a while.
func (w *BatchWriter[T]) warn(every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dropped == 0 || time.Since(w.warned) < every {
		return
	}
	w.options.Log.Warn("dropped: storage does not keep up", "what", w.options.Name, "count", w.dropped)
	w.dropped, w.warned = 0, time.Now()
}

// Close writes what is buffered and stops.
func (w *BatchWriter[T]) Close() {
	close(w.stop)
	<-w.done
	w.warn(0)
}

func (w *BatchWriter[T]) run() {
	defer close(w.done)
	ticker := time.NewTicker(w.options.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.Flush(context.Background())
		case <-w.full:
			w.Flush(context.Background())
		case <-w.stop:
			w.Flush(context.Background())
			return
		}
	}
}
