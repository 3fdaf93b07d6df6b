// Package backfill embeds memories: immediately while the embedder is available, otherwise in the background. After a change of the model
// it embeds all memories again in the background. Only keyword search finds a memory without vectors.
package backfill

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retry"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Options describes a Vectorizer.
type Options struct {
	ChunkSize int // characters; a longer text is embedded in parts and matches by the best of them
	// BackoffMin and BackoffMax limit the pauses while the embedder is unavailable.
	BackoffMin, BackoffMax time.Duration
	Log                    *slog.Logger
	// Heartbeat is called after each attempt of the background work, with its error. Optional.
	Heartbeat background.Heartbeat
}

const (
	batchSize = 64  // memories per batch
	dropSize  = 500 // deleted vectors of an old model per write
	// secondPass is the delay before memories whose texts the embedder refused are retried.
	secondPass = time.Hour
)

// Progress is the progress of the background work.
type Progress struct {
	Running bool
	Done    int64  // memories that got vectors in this pass
	Total   int64  // memories without vectors at the start of the pass
	Refused int64  // memories whose texts the embedder refused
	Problem string // the last error; empty after a success
}

// Vectorizer embeds texts for storage.
type Vectorizer struct {
	embedder embed.Embedder
	store    vectorstore.Backfill
	options  Options

	notifier  background.Notifier
	recovered background.Notifier
	stop      context.CancelFunc
	ctx       context.Context
	task      sync.WaitGroup

	mu       sync.Mutex
	progress Progress
}

// New returns a Vectorizer; Start starts its background work.
func New(embedder embed.Embedder, store vectorstore.Backfill, options Options) *Vectorizer {
	ctx, stop := context.WithCancel(context.Background())
	return &Vectorizer{
		embedder: embedder, store: store, options: options, notifier: background.NewNotifier(), recovered: background.NewNotifier(), ctx: ctx, stop: stop,
	}
}

// Start starts the background work, which waits for Wake.
func (v *Vectorizer) Start() { v.task.Go(v.run) }

// Stop stops the background work and waits for its end. The Vectorizer cannot be started again; a new one resumes the work.
func (v *Vectorizer) Stop() {
	v.stop()
	v.task.Wait()
}

// Wake looks for memories without vectors.
func (v *Vectorizer) Wake() { v.notifier.Notify() }

// Resume ends the pause after a failure. Call it when the embedder recovered.
func (v *Vectorizer) Resume() { v.recovered.Notify() }

// Progress returns the progress of the background work.
func (v *Vectorizer) Progress() Progress {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.progress
}

// Embeddings returns the vectors of each text, or empty ones while the embedder is unavailable; then the backfill adds them later. It
// fails only if the caller cancels.
func (v *Vectorizer) Embeddings(ctx context.Context, texts []string) ([]vectorstore.Embedding, error) {
	embeddings, err := v.embed(ctx, texts)
	if err == nil {
		return embeddings, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	v.options.Log.Log(ctx, retry.LogLevel(err), "stored without vectors; they will be added later", "error", err)
	v.Wake()
	return make([]vectorstore.Embedding, len(texts)), nil
}

// embed embeds the chunks of all texts in one call.
func (v *Vectorizer) embed(ctx context.Context, texts []string) ([]vectorstore.Embedding, error) {
	var chunks []string
	ends := make([]int, len(texts))
	for i, text := range texts {
		chunks = append(chunks, embed.Chunks(text, v.options.ChunkSize)...)
		ends[i] = len(chunks)
	}
	fingerprint := v.embedder.Fingerprint().String()
	vectors, err := v.embedder.Embed(ctx, embed.ForDocument, chunks)
	if err != nil {
		return nil, err
	}
	embeddings := make([]vectorstore.Embedding, len(texts))
	start := 0
	for i, end := range ends {
		embeddings[i] = vectorstore.Embedding{Fingerprint: fingerprint, Chunks: vectors[start:end]}
		start = end
	}
	return embeddings, nil
}

// run adds the missing vectors whenever it is woken.
func (v *Vectorizer) run() {
	background.Run(v.ctx, time.Now, v.notifier, func() (again time.Time) {
		if v.pass() {
			again = time.Now().Add(secondPass)
		}
		v.update(func(p *Progress) { p.Running = false })
		return again
	})
}

// pass processes all memories without vectors until there are none, and reports whether some were refused.
func (v *Vectorizer) pass() (refused bool) {
	if v.embedder.Fingerprint() == (embed.Fingerprint{}) {
		return false // no model is chosen yet; the Vectorizer is woken when one is
	}
	fingerprint := v.embedder.Fingerprint().String()
	for v.ctx.Err() == nil {
		if !v.eventually(func() error { return v.store.Begin(v.ctx, fingerprint) }) {
			return false
		}
		var total int64
		v.eventually(func() (err error) {
			total, err = v.store.CountMissing(v.ctx, fingerprint)
			return err
		})
		if total > 0 {
			v.options.Log.Info("embedding memories without vectors", "fingerprint", fingerprint, "memories", total)
		}
		v.update(func(p *Progress) { *p = Progress{Running: total > 0, Total: total} })
		if !v.scan(fingerprint) {
			return false
		}
		if n := v.Progress().Refused; n > 0 {
			v.options.Log.Warn("the embedder refuses some memories; only keyword search finds them", "fingerprint", fingerprint, "memories", n)
			return true
		}
		var done bool
		v.eventually(func() (err error) {
			done, err = v.store.Complete(v.ctx, fingerprint)
			return err
		})
		if done {
			if total > 0 {
				v.options.Log.Info("all memories have vectors", "fingerprint", fingerprint)
			}
			v.dropOthers(fingerprint)
			return false
		}
	}
	return false
}

// scan embeds batch after batch and reports whether it reached the end.
func (v *Vectorizer) scan(fingerprint string) bool {
	var after int64
	for {
		var items []vectorstore.MissingItem
		var next int64
		ok := v.eventually(func() (err error) {
			items, next, err = v.store.Missing(v.ctx, fingerprint, after, batchSize)
			return err
		})
		if !ok || len(items) == 0 {
			return ok
		}
		if !v.fill(items) {
			return false
		}
		after = next
	}
}

// fill embeds and stores a batch. If the embedder refuses it, each item is tried alone. It returns false if the Vectorizer was stopped.
func (v *Vectorizer) fill(items []vectorstore.MissingItem) bool {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.Text
	}
	var embeddings []vectorstore.Embedding
	var refusal error
	ok := v.eventually(func() (err error) {
		embeddings, err = v.embed(v.ctx, texts)
		var transient *memory.TransientError
		if err != nil && !errors.As(err, &transient) {
			refusal, err = err, nil
		}
		return err
	})
	switch {
	case !ok:
		return false
	case refusal != nil && len(items) == 1:
		v.options.Log.Debug("refused by the embedder", "memory", items[0].MemoryID, "error", refusal)
		v.update(func(p *Progress) { p.Refused++ })
		return true
	case refusal != nil:
		for i := range items {
			if !v.fill(items[i : i+1]) {
				return false
			}
		}
		return true
	}
	byUser := map[memory.User][]vectorstore.TextEmbedding{}
	for i, item := range items {
		byUser[item.User] = append(byUser[item.User],
			vectorstore.TextEmbedding{MemoryID: item.MemoryID, Text: item.Text, Embedding: embeddings[i]})
	}
	for user, list := range byUser {
		if !v.eventually(func() error { return v.store.SetEmbeddings(v.ctx, user, list) }) {
			return false
		}
	}
	v.update(func(p *Progress) { p.Done += int64(len(items)) })
	return true
}

// dropOthers deletes the vectors of models that are no longer used, in small steps.
func (v *Vectorizer) dropOthers(fingerprint string) {
	for more := true; more; {
		if !v.eventually(func() (err error) {
			more, err = v.store.DropOthers(v.ctx, fingerprint, dropSize)
			return err
		}) {
			return
		}
	}
}

// eventually repeats fn until it succeeds. It returns false if the Vectorizer was stopped first.
func (v *Vectorizer) eventually(fn func() error) bool {
	pauses := retry.Pauses{Min: v.options.BackoffMin, Max: v.options.BackoffMax}
	ok := retry.Until(v.ctx, pauses, v.recovered, fn, func(err error) {
		v.options.Heartbeat.Beat(err)
		v.update(func(p *Progress) { p.Problem = err.Error() })
	})
	if ok {
		v.options.Heartbeat.Beat(nil)
		v.update(func(p *Progress) { p.Problem = "" })
	}
	return ok
}

func (v *Vectorizer) update(change func(*Progress)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(&v.progress)
}
