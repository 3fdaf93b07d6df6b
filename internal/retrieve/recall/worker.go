package recall

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
)

// Options describes a Worker.
type Options struct {
	// Vectors is how many of each user's newest messages get vectors; 0 is none.
	Vectors int
	// ChunkSize is how much of a message its vector is made of, in characters: what comes first.
	ChunkSize int
	// Enabled says for which namespaces messages are embedded; nil: for all. Others are found by keywords.
	Enabled func(namespace string) bool
	// Pause is between a message's arrival and the work on it, so that messages are worked on together. 0 means 1 s.
	Pause time.Duration
	// BackoffMin and BackoffMax bound the pauses while storage or the embedder is unavailable.
	BackoffMin, BackoffMax time.Duration
	Log                    *slog.Logger
	// Heartbeat receives the result of the last attempt at each task. Optional.
	Heartbeat background.Heartbeat
}

const (
	batchSize = 64  // messages embedded and stored at once
	dropSize  = 500 // vectors of an old model deleted at once
	// noteEvery is after how many messages that get no vectors it is written down how far the work is.
	noteEvery = 1000
)

// Worker keeps the keyword index and the vectors of past messages up to date in the background. Both are derived from the
// messages: what a stop or a crash leaves undone is done after the next start.
type Worker struct {
	index    Index
	embedder embed.Embedder
	options  Options

	postings, embeddings background.Notifier // wake the two tasks
	recovered            background.Notifier // ends the pause of embedding
	indexing, embedding  sync.Mutex          // held during a pass of each
	ctx                  context.Context
	stop                 context.CancelFunc
	tasks                sync.WaitGroup
}

// NewWorker returns a worker; Start sets it going.
func NewWorker(index Index, embedder embed.Embedder, options Options) *Worker {
	if options.Pause <= 0 {
		options.Pause = time.Second
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &Worker{
		index: index, embedder: embedder, options: options, ctx: ctx, stop: stop,
		postings: background.NewNotifier(), embeddings: background.NewNotifier(), recovered: background.NewNotifier(),
	}
	w.Wake() // there may be something that was left undone
	return w
}

// Start begins the work, including what an earlier process left.
func (w *Worker) Start() {
	// The tasks are independent: keywords must not wait for an embedder that is unavailable.
	w.tasks.Go(func() { w.run(w.postings, w.indexOnce) })
	if w.options.Vectors > 0 {
		w.tasks.Go(func() { w.run(w.embeddings, w.embedOnce) })
	}
}

func (w *Worker) run(notifier background.Notifier, pass func()) {
	background.Run(w.ctx, time.Now, notifier, func() time.Time {
		pass()
		background.Sleep(w.ctx, w.options.Pause)
		return time.Time{}
	})
}

func (w *Worker) indexOnce() {
	w.indexing.Lock()
	defer w.indexing.Unlock()
	w.keywords()
}

func (w *Worker) embedOnce() {
	w.embedding.Lock()
	defer w.embedding.Unlock()
	w.vectors()
}

// CatchUp does at once what there is to do, and returns when it is done or the worker was stopped. Measurements need it:
// otherwise how much is done differs from run to run.
func (w *Worker) CatchUp() {
	w.indexOnce()
	if w.options.Vectors > 0 {
		w.embedOnce()
	}
}

// Stop ends the work.
func (w *Worker) Stop() {
	w.stop()
	w.tasks.Wait()
}

// Wake says that messages were added, or that the embedder is another one.
func (w *Worker) Wake() {
	w.postings.Notify()
	w.embeddings.Notify()
}

// Resume ends the pause after a failure: the embedder recovered.
func (w *Worker) Resume() { w.recovered.Notify() }

// keywords indexes until nothing is left to index.
func (w *Worker) keywords() {
	for more := true; more; {
		if !w.retry(nil, "indexing past messages", func() (err error) {
			more, err = w.index.IndexNext(w.ctx)
			return err
		}) {
			return
		}
	}
}

// vectors embeds until nothing is left to embed.
func (w *Worker) vectors() {
	if w.embedder.Fingerprint() == (embed.Fingerprint{}) {
		return // not chosen yet; whoever chooses wakes
	}
	fingerprint := w.embedder.Fingerprint().String()
	var after int64
	if !w.eventually("embedding past messages", func() (err error) {
		after, err = w.index.Progress(w.ctx, fingerprint)
		return err
	}) {
		return
	}
	noted := after
	for {
		var missing []Missing
		var next int64
		if !w.eventually("embedding past messages", func() (err error) {
			missing, next, err = w.index.Missing(w.ctx, after, w.options.Vectors, batchSize)
			return err
		}) {
			return
		}
		if next == after {
			break
		}
		after = next
		missing = slices.DeleteFunc(missing, func(m Missing) bool { return w.options.Enabled != nil && !w.options.Enabled(m.Namespace) })
		vectors, ok := w.embed(missing)
		if !ok {
			return
		}
		if len(vectors) == 0 && after-noted < noteEvery {
			continue // writing it down would cost more than looking at these again
		}
		if !w.eventually("embedding past messages", func() error {
			return w.index.SetVectors(w.ctx, fingerprint, vectors, after, w.options.Vectors)
		}) {
			return
		}
		noted = after
	}
	for more := true; more; {
		if !w.eventually("deleting vectors of a model that is no longer used", func() (err error) {
			more, err = w.index.DropOthers(w.ctx, fingerprint, dropSize)
			return err
		}) {
			return
		}
	}
}

// embed embeds a batch; when the embedder refuses it, each message alone. Those that it refuses are found by keywords.
func (w *Worker) embed(missing []Missing) (vectors []Vector, ok bool) {
	if len(missing) == 0 {
		return nil, true
	}
	texts := make([]string, len(missing))
	for i, m := range missing {
		texts[i] = embed.Chunks(m.Text, w.options.ChunkSize)[0]
	}
	var embedded [][]float32
	var refusal error
	ok = w.eventually("embedding past messages", func() (err error) {
		embedded, err = w.embedder.Embed(w.ctx, embed.ForDocument, texts)
		var transient *memory.TransientError
		if err != nil && !errors.As(err, &transient) {
			refusal, err = err, nil
		}
		return err
	})
	switch {
	case !ok:
		return nil, false
	case refusal != nil && len(missing) == 1:
		w.options.Log.Debug("refused by the embedder", "message_row", missing[0].Row, "error", refusal)
		return nil, true
	case refusal != nil:
		for i := range missing {
			some, ok := w.embed(missing[i : i+1])
			if !ok {
				return nil, false
			}
			vectors = append(vectors, some...)
		}
		return vectors, true
	}
	for i, v := range embedded {
		vectors = append(vectors, Vector{Row: missing[i].Row, UserRow: missing[i].UserRow, Vector: v})
	}
	return vectors, true
}

// eventually repeats what needs the embedder until it succeeds; false means that the worker was stopped first.
func (w *Worker) eventually(what string, fn func() error) bool { return w.retry(w.recovered, what, fn) }

func (w *Worker) retry(recovered background.Notifier, what string, fn func() error) bool {
	logged := false
	pauses := retry.Pauses{Min: w.options.BackoffMin, Max: w.options.BackoffMax}
	ok := retry.Until(w.ctx, pauses, recovered, fn, func(err error) {
		w.options.Heartbeat.Beat(err)
		// Outages have lines of their own.
		_, transient := errors.AsType[*memory.TransientError](err)
		if !logged && !transient && !errors.Is(err, memory.ErrUnavailable) {
			w.options.Log.Error(what, "error", err) //nolint:sloglint // one of three constants
			logged = true
		}
	})
	if ok {
		w.options.Heartbeat.Beat(nil)
	}
	return ok
}
