package local_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	"github.com/memsidecar/memsidecar/internal/vectorstore/local"
	"github.com/memsidecar/memsidecar/internal/vectorstore/vectorstoretest"
)

// tapped is a database whose reads a test can count and block.
type tapped struct {
	sqldb.Access
	reads atomic.Int64
	// read replaces each read. Nil reads normally.
	read func(read func() error) error
	// written is called after each commit, before the writer returns. Nil does nothing.
	written func()
}

func (a *tapped) Write(ctx context.Context, fn func(sqldb.Tx) error) error {
	err := a.Access.Write(ctx, fn)
	if a.written != nil {
		a.written()
	}
	return err
}

func (a *tapped) Read(ctx context.Context, fn func(sqldb.Querier) error) error {
	a.reads.Add(1)
	read := func() error { return a.Access.Read(ctx, fn) }
	if a.read != nil {
		return a.read(read)
	}
	return read()
}

func newTapped(t *testing.T) (*tapped, *local.Store) {
	t.Helper()
	db := &tapped{Access: openStorage(t, t.TempDir())}
	return db, newStore(db, roomy)
}

var user = memory.User{Namespace: "test", ID: "ann"}

func add(t *testing.T, s *local.Store, text string) {
	t.Helper()
	now := time.Now()
	_, err := s.Apply(t.Context(), user, []vectorstore.Entry{{
		Memory: memory.Memory{
			ID: text, Text: text, Kind: memory.KindFact, Mentions: 1, CreatedAt: now, UpdatedAt: now, ObservedAt: now, LastSaidAt: now,
		},
		Embedding: vectorstore.Embedding{Fingerprint: vectorstoretest.Fingerprint, Chunks: [][]float32{{1, 0, 0}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func search(ctx context.Context, s *local.Store) (found []string, err error) {
	hits, err := s.SearchVector(ctx, user, vectorstoretest.Fingerprint, []float32{1, 0, 0}, vectorstore.Filter{Audience: memory.Everything()}, 100)
	for _, h := range hits {
		found = append(found, h.Memory.Text)
	}
	slices.Sort(found)
	return found, err
}

func finds(t *testing.T, s *local.Store, want ...string) {
	t.Helper()
	if got, err := search(t.Context(), s); err != nil || !slices.Equal(got, want) {
		t.Errorf("found %q, %v, want %q", got, err, want)
	}
}

// TestIndexIsLoadedOnce: A loaded index is searched without the database and updated by writes.
func TestIndexIsLoadedOnce(t *testing.T) {
	db, s := newTapped(t)
	add(t, s, "tea")
	finds(t, s, "tea")
	add(t, s, "cello")
	finds(t, s, "cello", "tea")
	if n := db.reads.Load(); n != 1 {
		t.Errorf("%d reads, want one", n)
	}
	s.Reset()
	finds(t, s, "cello", "tea")
	if n := db.reads.Load(); n != 2 {
		t.Errorf("%d reads, want a second one after Reset", n)
	}
}

// TestFailedLoadIsRetried: The search returns the error, and the next search immediately loads again.
func TestFailedLoadIsRetried(t *testing.T) {
	db, s := newTapped(t)
	add(t, s, "tea")
	outage := errors.New("unavailable")
	for range 100 { // the race is rare
		s.Reset()
		db.read = func(func() error) error { return outage }
		if _, err := search(t.Context(), s); !errors.Is(err, outage) {
			t.Fatalf("got %v", err)
		}
		db.read = nil
		finds(t, s, "tea")
	}
	s.Reset()
	db.read = func(func() error) error { panic("oops") }
	if _, err := search(t.Context(), s); err == nil {
		t.Error("the panic was lost")
	}
	db.read = nil
	finds(t, s, "tea")
}

// TestWriteDuringLoadIsFound: A search finds writes that were committed after the load read the rows.
func TestWriteDuringLoadIsFound(t *testing.T) {
	db, s := newTapped(t)
	add(t, s, "tea")
	haveRead, goOn := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	db.read = func(read func() error) error {
		err := read()
		if held.CompareAndSwap(false, true) {
			close(haveRead)
			<-goOn
		}
		return err
	}
	early := make(chan []string)
	go func() {
		found, err := search(t.Context(), s)
		if err != nil {
			t.Error(err)
		}
		early <- found
	}()
	<-haveRead
	add(t, s, "cello")
	if err := s.Delete(t.Context(), user, "tea", memory.Everything()); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	finds(t, s, "cello")
	<-early
	finds(t, s, "cello")
	if n := db.reads.Load(); n != 2 {
		t.Errorf("%d reads, want a second one because of the writes", n)
	}
}

// TestForgetDuringLoadDiscardsTheIndex: If a user is forgotten while their index is loaded, that index is not searched.
func TestForgetDuringLoadDiscardsTheIndex(t *testing.T) {
	db, s := newTapped(t)
	add(t, s, "tea")
	haveRead, goOn := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	db.read = func(read func() error) error {
		err := read()
		if held.CompareAndSwap(false, true) {
			close(haveRead)
			<-goOn
		}
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := search(t.Context(), s); err != nil {
			t.Error(err)
		}
	}()
	<-haveRead
	if n, err := s.Forget(t.Context(), user); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	finds(t, s)
	close(goOn)
	<-ended
	finds(t, s)
}

// TestWritesReachTheIndexInOrder: A writer that is slow after its commit does not overwrite a later write in the index.
func TestWritesReachTheIndexInOrder(t *testing.T) {
	db, s := newTapped(t)
	add(t, s, "tea")
	finds(t, s, "tea")
	mention := func() {
		_, err := s.Apply(t.Context(), user, []vectorstore.Entry{{Memory: memory.Memory{ID: "tea", Text: "tea"}, Reinforce: true}})
		if err != nil {
			t.Error(err)
		}
	}
	for range 5 {
		var first, second sync.WaitGroup
		var held, secondDone atomic.Bool
		committed, goOn := make(chan struct{}), make(chan struct{})
		db.written = func() {
			if held.CompareAndSwap(false, true) {
				close(committed)
				<-goOn
			}
		}
		first.Go(mention)
		<-committed
		second.Go(func() {
			mention()
			secondDone.Store(true)
		})
		for i := 0; i < 50_000 && !secondDone.Load(); i++ { // the second waits for the first; if it did not, this would be time enough
			runtime.Gosched()
		}
		close(goOn)
		first.Wait()
		second.Wait()
		stored, err := s.Get(t.Context(), user, "tea", memory.Everything())
		if err != nil {
			t.Fatal(err)
		}
		hits, err := s.SearchKeyword(t.Context(), user, "tea", vectorstore.Filter{Audience: memory.Everything()}, 1)
		if err != nil || len(hits) != 1 || hits[0].Memory.Mentions != stored.Mentions {
			t.Fatalf("found %+v, %v, want %d mentions", hits, err, stored.Mentions)
		}
	}
}

// TestConcurrentCallersShareOneLoad: Simultaneous callers share one load, which continues when one of them gives up.
func TestConcurrentCallersShareOneLoad(t *testing.T) {
	db, s := newTapped(t)
	add(t, s, "tea")
	loading, goOn := make(chan struct{}), make(chan struct{})
	db.read = func(read func() error) error {
		close(loading)
		<-goOn
		return read()
	}
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	go func() {
		_, err := search(ctx, s)
		gaveUp <- err
	}()
	<-loading
	var tasks sync.WaitGroup
	for range 5 {
		tasks.Go(func() { finds(t, s, "tea") })
	}
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(goOn)
	tasks.Wait()
	if n := db.reads.Load(); n != 1 {
		t.Errorf("%d reads, want one", n)
	}
}

func TestInvalidPageToken(t *testing.T) {
	_, s := newTapped(t)
	add(t, s, "tea")
	for _, token := range []string{"x", "1", "1.", ".1", "1.2.3", "1.x", "99999999999999999999.1", " 1.2", "1,2"} {
		_, err := s.List(t.Context(), user, vectorstore.ListQuery{Filter: vectorstore.Filter{Audience: memory.Everything()}, After: token, Limit: 10})
		var invalid *memory.InvalidError
		if !errors.As(err, &invalid) || invalid.Violations[0].Field != "page_token" {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// TestStorageOutageIsReported: Every method reports a storage outage, and works after the recovery.
func TestStorageOutageIsReported(t *testing.T) {
	db := openStorage(t, t.TempDir())
	s := newStore(db, tiny)
	add(t, s, "tea")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for method, call := range map[string]func() error{
		"Apply": func() error {
			_, err := s.Apply(ctx, user, []vectorstore.Entry{{Memory: memory.Memory{ID: "x"}}})
			return err
		},
		"Get":  func() error { _, err := s.Get(ctx, user, "tea", memory.Everything()); return err },
		"List": func() error { _, err := s.List(ctx, user, vectorstore.ListQuery{Limit: 1}); return err },
		"Update": func() error {
			_, err := s.Update(ctx, user, "tea", memory.Everything(), vectorstore.Patch{})
			return err
		},
		"Delete": func() error { return s.Delete(ctx, user, "tea", memory.Everything()) },
		"Forget": func() error { _, err := s.Forget(ctx, user); return err },
		"SearchVector": func() error {
			_, err := search(ctx, s)
			return err
		},
		"SearchKeyword": func() error { _, err := s.SearchKeyword(ctx, user, "tea", vectorstore.Filter{}, 1); return err },
		"MarkUsed":      func() error { return s.MarkUsed(ctx, []vectorstore.Use{{User: user}}) },
	} {
		if err := call(); !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("%s: %v", method, err)
		}
	}
}
