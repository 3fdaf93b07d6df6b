package background

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// BatchOptions configures a BatchWriter.
type BatchOptions struct {
	// Name is used in the log, for example "traces".
	Name string
	// Every is the time between two writes. A write starts earlier when the buffer is half full.
	Every time.Duration
	// Max bounds how many items are buffered when writing is slower than adding. Further items are dropped.
	Max int
	Log *slog.Logger
}

// dropsEvery is the minimum time between two log lines about dropped items.
const dropsEvery = time.Minute

// BatchWriter collects items and writes them in batches. Items that cannot be written, and buffered items when the process dies, are lost.
type BatchWriter[T any] struct {
	write   func(context.Context, []T) error
	options BatchOptions

	mu      sync.Mutex
	waiting []T
	dropped int       // since the last log line about it
	warned  time.Time // when that line was logged

	full    chan struct{} // the buffer is half full
	writing chan struct{} // holds one token while a batch is being written, so that Flush returns after it
	stop    chan struct{}
	done    chan struct{}
}

// NewBatchWriter returns a writer that runs until Close.
func NewBatchWriter[T any](write func(context.Context, []T) error, options BatchOptions) *BatchWriter[T] {
	w := &BatchWriter[T]{
		write: write, options: options, full: make(chan struct{}, 1), writing: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go w.run()
	return w
}

// Add adds an item. It never blocks.
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

// Flush writes the items that were added before the call, unless the context ends first.
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
	// Items that have been removed from the buffer are written even if the caller of Flush has stopped waiting.
	if err := w.write(context.WithoutCancel(ctx), items); err != nil {
		w.options.Log.Debug("lost", "what", w.options.Name, "count", len(items), "error", err)
	}
}

// warn logs how many items were dropped, unless it logged this recently.
func (w *BatchWriter[T]) warn(every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dropped == 0 || time.Since(w.warned) < every {
		return
	}
	w.options.Log.Warn("dropped: storage does not keep up", "what", w.options.Name, "count", w.dropped)
	w.dropped, w.warned = 0, time.Now()
}

// Close writes the buffered items and stops.
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
