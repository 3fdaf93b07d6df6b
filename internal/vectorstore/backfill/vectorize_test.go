package backfill_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	embedlocal "github.com/memsidecar/memsidecar/internal/embed/local"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	"github.com/memsidecar/memsidecar/internal/vectorstore/backfill"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

// flaky is an embedder that fails on demand.
type flaky struct {
	embed.Embedder
	mu     sync.Mutex
	err    error
	refuse string // a text that is always refused
	calls  int
}

func (f *flaky) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *flaky) Embed(ctx context.Context, purpose embed.Purpose, texts []string) ([][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.err != nil {
		return nil, f.err
	}
	if slices.Contains(texts, f.refuse) {
		return nil, errors.New("the text is refused")
	}
	return f.Embedder.Embed(ctx, purpose, texts)
}

func newFlaky(t *testing.T, dimensions int) *flaky {
	t.Helper()
	e, err := embedlocal.New(dimensions)
	if err != nil {
		t.Fatal(err)
	}
	return &flaky{Embedder: e}
}

var user = memory.User{Namespace: "default", ID: "u"}

func open(t *testing.T, dir string) (*sqlite.Storage, *storelocal.Store) {
	t.Helper()
	storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return storage, storelocal.New(storage, storelocal.Options{IndexBudget: 1 << 20})
}

func closed(t *testing.T, storage *sqlite.Storage) {
	t.Helper()
	if err := storage.Close(); err != nil {
		t.Error(err)
	}
}

func start(e embed.Embedder, store *storelocal.Store) *backfill.Vectorizer {
	v := backfill.New(e, store, backfill.Options{
		ChunkSize: 300, BackoffMin: time.Second, BackoffMax: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	v.Start()
	return v
}

// remember stores texts as the write path does.
func remember(t *testing.T, v *backfill.Vectorizer, store *storelocal.Store, texts ...string) {
	t.Helper()
	embeddings, err := v.Embeddings(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	var entries []vectorstore.Entry
	for i, text := range texts {
		entries = append(entries, vectorstore.Entry{Embedding: embeddings[i], Memory: memory.Memory{
			ID: "m:" + text, Text: text, Kind: memory.KindFact, Mentions: 1, CreatedAt: now, UpdatedAt: now, ObservedAt: now, LastSaidAt: now,
		}})
	}
	if _, err := store.Apply(t.Context(), user, entries); err != nil {
		t.Fatal(err)
	}
}

// similar returns the number of memories that a vector search finds.
func similar(t *testing.T, e embed.Embedder, store *storelocal.Store) int {
	t.Helper()
	query, err := e.Embed(t.Context(), embed.ForQuery, []string{"tea"})
	if err != nil {
		t.Fatal(err)
	}
	hits, err := store.SearchVector(t.Context(), user, e.Fingerprint().String(), query[0],
		vectorstore.Filter{Audience: memory.Everything()}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(hits)
}

func texts(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("The user likes tea number %d", i)
	}
	return list
}

func use(t *testing.T, store *storelocal.Store, e embed.Embedder, wantComplete, wantChanged bool) {
	t.Helper()
	complete, changed, err := store.UseFingerprint(t.Context(), e.Fingerprint().String())
	if err != nil || complete != wantComplete || changed != wantChanged {
		t.Fatalf("complete %v, changed %v, error %v; want %v, %v", complete, changed, err, wantComplete, wantChanged)
	}
}

// TestEmbedderOutageDelaysOnlyVectors: Memories stored during an embedder outage are found by keywords immediately, and by vectors after
// its recovery.
func TestEmbedderOutageDelaysOnlyVectors(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		storage, store := open(t, dir)
		defer closed(t, storage)
		e := newFlaky(t, 64)
		use(t, store, e, true, false)
		v := start(e, store)
		defer v.Stop()

		e.fail(&memory.TransientError{Err: errors.New("503"), Unavailable: true, RetryAfter: 7 * time.Second})
		remember(t, v, store, texts(3)...)
		synctest.Wait()
		hits, err := store.SearchKeyword(t.Context(), user, "tea", vectorstore.Filter{Audience: memory.Everything()}, 10)
		if err != nil || len(hits) != 3 {
			t.Fatalf("keywords find %d, %v", len(hits), err)
		}
		if p := v.Progress(); !p.Running || p.Total != 3 || p.Done != 0 || p.Problem != "503" {
			t.Errorf("progress is %+v", p)
		}
		calls := e.calls
		time.Sleep(6 * time.Second)
		if e.calls != calls {
			t.Error("called again before the breaker admits a call")
		}
		e.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := similar(t, e, store); n != 3 {
			t.Errorf("vectors find %d of 3", n)
		}
		if p := v.Progress(); p.Running || p.Problem != "" {
			t.Errorf("progress is %+v", p)
		}
		use(t, store, e, true, false)
	})
}

// TestModelChangeReplacesAllVectors: After a change of model everything is embedded again, also across a restart, and the old model's
// vectors are deleted.
func TestModelChangeReplacesAllVectors(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		storage, store := open(t, dir)
		old, next := newFlaky(t, 64), newFlaky(t, 128)
		use(t, store, old, true, false)
		v := start(old, store)
		remember(t, v, store, texts(200)...)
		v.Stop()

		use(t, store, next, false, true)
		if n := similar(t, next, store); n != 0 {
			t.Errorf("vectors of two models are compared: %d hits", n)
		}
		next.fail(&memory.TransientError{Err: errors.New("down")})
		v = start(next, store)
		v.Wake()
		synctest.Wait()
		v.Stop() // in the middle
		if err := storage.Close(); err != nil {
			t.Fatal(err)
		}

		storage, store = open(t, dir)
		defer closed(t, storage)
		next.fail(nil)
		use(t, store, next, false, false)
		v = start(next, store)
		defer v.Stop()
		v.Wake()
		synctest.Wait()
		if n := similar(t, next, store); n != 200 {
			t.Errorf("%d of 200 have new vectors", n)
		}
		use(t, store, next, true, false)
		if n, err := store.CountMissing(t.Context(), old.Fingerprint().String()); err != nil || n != 200 {
			t.Errorf("%d memories lack the old vectors, %v; want all 200", n, err)
		}
	})
}

// TestRefusedTextDelaysNoOther: A text that the embedder refuses does not delay the others, and is embedded once it is accepted.
func TestRefusedTextDelaysNoOther(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		storage, store := open(t, dir)
		defer closed(t, storage)
		e := newFlaky(t, 64)
		use(t, store, e, true, false)
		v := start(e, store)
		defer v.Stop()
		all := texts(5)
		e.refuse = all[2]
		remember(t, v, store, all...)
		v.Wake()
		synctest.Wait()
		if p := v.Progress(); p.Refused != 1 {
			t.Errorf("progress is %+v", p)
		}
		if n := similar(t, e, store); n != 4 {
			t.Errorf("vectors find %d, want the 4 accepted", n)
		}
		e.mu.Lock()
		e.refuse = ""
		e.mu.Unlock()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := similar(t, e, store); n != 5 {
			t.Errorf("vectors find %d after the embedder accepts it", n)
		}
	})
}

// TestLongTextMatchesByItsBestChunk: A long text matches by its best chunk.
func TestLongTextMatchesByItsBestChunk(t *testing.T) {
	storage, store := open(t, t.TempDir())
	defer closed(t, storage)
	e := newFlaky(t, 256)
	use(t, store, e, true, false)
	v := backfill.New(e, store, backfill.Options{ChunkSize: 70, Log: slog.New(slog.DiscardHandler)})
	long := "The user keeps a diary of every single rainy afternoon in the city. The user likes tea."
	remember(t, v, store, long)
	query, err := e.Embed(t.Context(), embed.ForQuery, []string{"The user likes tea."})
	if err != nil {
		t.Fatal(err)
	}
	hits, err := store.SearchVector(t.Context(), user, e.Fingerprint().String(), query[0], vectorstore.Filter{Audience: memory.Everything()}, 10)
	if err != nil || len(hits) != 1 || hits[0].Score < 0.99 {
		t.Errorf("hits %+v, %v; want the memory once, with the similarity of its second sentence", hits, err)
	}
}
