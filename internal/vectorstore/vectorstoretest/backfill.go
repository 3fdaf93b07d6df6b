package vectorstoretest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/testkit/storetest"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Stores are the contracts that one implementation fulfils over the same memories.
type Stores struct {
	Store    vectorstore.Store
	Backfill vectorstore.Backfill
	Sweep    vectorstore.Sweep
	Survey   vectorstore.Survey
	Close    func() // makes the storage unavailable
}

// another is a fingerprint that is not used at first.
const another = "test/another/3"

// backfillSuite is one test of vectorstore.Backfill.
type backfillSuite struct {
	*suite

	backfill vectorstore.Backfill
	close    func()
}

// RunBackfill runs the suite of vectorstore.Backfill. Each call of open returns stores as Run needs them.
func RunBackfill(t *testing.T, open func(t *testing.T) Stores) {
	for _, c := range []struct {
		name string
		run  func(*backfillSuite)
	}{
		{"UseFingerprint", testUseFingerprint},
		{"Missing", testMissing},
		{"MissingKeepsTexts", testMissingKeepsTexts},
		{"SetEmbeddings", testSetEmbeddings},
		{"SetEmbeddingsOfChangedTexts", testSetEmbeddingsOfChangedTexts},
		{"SetEmbeddingsConcurrently", testSetEmbeddingsConcurrently},
		{"Pass", testPass},
		{"RevertedEdit", testRevertedEdit},
		{"DropOthers", testDropOthers},
		{"Unavailable", testBackfillUnavailable},
		{"Cancelled", testBackfillCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			stores := open(t)
			c.run(&backfillSuite{&suite{T: t, store: stores.Store}, stores.Backfill, stores.Close})
		})
	}
}

func (s *backfillSuite) use(fingerprint string) (complete, changed bool) {
	s.Helper()
	complete, changed, err := s.backfill.UseFingerprint(s.Context(), fingerprint)
	if err != nil {
		s.Fatal(err)
	}
	return complete, changed
}

// wantUse checks what UseFingerprint returns.
func (s *backfillSuite) wantUse(fingerprint string, wantComplete, wantChanged bool) {
	s.Helper()
	if complete, changed := s.use(fingerprint); complete != wantComplete || changed != wantChanged {
		s.Errorf("%s: complete %t, changed %t; want %t, %t", fingerprint, complete, changed, wantComplete, wantChanged)
	}
}

// wantMissing checks which memories lack vectors of the fingerprint, and their number. It reads pages of limit memories.
func (s *backfillSuite) wantMissing(fingerprint string, limit int, want ...string) {
	s.Helper()
	var got []string
	for after := int64(0); ; {
		items, next, err := s.backfill.Missing(s.Context(), fingerprint, after, limit)
		if err != nil || len(items) > limit {
			s.Fatal(len(items), err)
		}
		if len(items) == 0 {
			break
		}
		for _, item := range items {
			got = append(got, item.User.ID+" "+item.MemoryID+" "+item.Text)
		}
		if next <= after {
			s.Fatalf("the position after %d is %d", after, next)
		}
		after = next
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		s.Errorf("missing\n%s\nwant\n%s", g, w)
	}
	if n, err := s.backfill.CountMissing(s.Context(), fingerprint); err != nil || n != int64(len(want)) {
		s.Errorf("%d are missing, %v, want %d", n, err, len(want))
	}
}

// set stores the embedding of a text for the memory.
func (s *backfillSuite) set(user memory.User, id, text string, e vectorstore.Embedding) {
	s.Helper()
	err := s.backfill.SetEmbeddings(s.Context(), user, []vectorstore.TextEmbedding{{MemoryID: id, Text: text, Embedding: e}})
	if err != nil {
		s.Fatal(err)
	}
}

// testUseFingerprint: A fingerprint is complete while every memory has vectors of it. After another one was used, a new pass has to check
// it.
func testUseFingerprint(s *backfillSuite) {
	s.wantUse(Fingerprint, true, false) // there is nothing to embed
	s.wantUse(Fingerprint, true, false)
	s.add(ann, s.memory("likes green tea"), 1, 0, 0)
	s.wantUse(Fingerprint, true, false)
	s.wantUse(another, false, true)
	s.wantUse(another, false, false)
	e := s.entry(s.memory("plays the cello"))
	e.Embedding = vectorstore.Embedding{Fingerprint: another, Chunks: [][]float32{{0, 1, 0}}}
	s.apply(ben, e)
	s.wantUse(Fingerprint, false, true) // ben's memory lacks vectors of it
	s.wantUse(Fingerprint, false, false)
}

// testMissing: Memories of all users and of any status are returned, except withdrawn ones.
func testMissing(s *backfillSuite) {
	s.wantMissing(Fingerprint, 10)
	var want []string
	add := func(user memory.User, text string, missing bool, change func(*vectorstore.Entry)) {
		e := s.entry(s.memory(text))
		e.Restore = true
		change(&e)
		s.apply(user, e)
		if missing {
			want = append(want, user.ID+" "+e.Memory.ID+" "+text)
		}
	}
	add(ben, "active", true, func(*vectorstore.Entry) {})
	add(ann, "has a vector", false, func(e *vectorstore.Entry) { e.Embedding = embedding([]float32{1, 0, 0}) })
	add(ann, "has another's", true, func(e *vectorstore.Entry) {
		e.Embedding = vectorstore.Embedding{Fingerprint: another, Chunks: [][]float32{{1, 0, 0}}}
	})
	add(ann, "withdrawn", false, func(e *vectorstore.Entry) { e.Memory.WithdrawnAt = t0 })
	add(ann, "superseded", true, func(e *vectorstore.Entry) { e.Memory.SupersededBy = "mem_1" })
	add(memory.User{Namespace: "elsewhere", ID: "eve"}, "quarantined", true, func(e *vectorstore.Entry) { e.Memory.Quarantine = "no" })
	add(ann, "expired", true, func(e *vectorstore.Entry) { e.Memory.ValidTo = t0 })
	deleted := s.add(ann, s.memory("deleted"))
	s.remove(ann, deleted.ID)
	for _, limit := range []int{1, 2, len(want), 100} {
		s.wantMissing(Fingerprint, limit, want...)
	}
	if n, err := s.backfill.CountMissing(s.Context(), "unknown"); n != int64(len(want)+1) || err != nil {
		s.Errorf("of an unknown fingerprint %d are missing, %v", n, err)
	}
	s.forget(ben)
	s.wantMissing(Fingerprint, 10, want[1:]...)
}

func testMissingKeepsTexts(s *backfillSuite) {
	var want []string
	for _, text := range storetest.Texts()[1:] { // no memory has the first one, which is empty
		m := s.add(ann, s.memory(text))
		want = append(want, "ann "+m.ID+" "+text)
	}
	s.wantMissing(Fingerprint, 3, want...)
}

// testSetEmbeddings: New vectors replace earlier ones of the same fingerprint, and searches use them.
func testSetEmbeddings(s *backfillSuite) {
	tea := s.add(ann, s.memory("likes green tea"))
	cello := s.add(ann, s.memory("plays the cello"))
	s.warm(ann)
	s.is("at first", idsOf(s.byVector(ann, everything(), 1, 0, 0)))
	s.set(ann, tea.ID, tea.Text, embedding([]float32{0, 1, 0}))
	s.set(ann, tea.ID, tea.Text, embedding([]float32{1, 0, 0}, []float32{0, 0, 1}))
	s.is("with vectors", idsOf(s.byVector(ann, everything(), 1, 0, 0)), tea.ID)
	for _, test := range []struct {
		vector []float32
		score  float64
	}{{[]float32{1, 0, 0}, 1}, {[]float32{0, 1, 0}, 0}, {[]float32{0, 0, 1}, 1}} {
		hits := s.byVector(ann, everything(), test.vector...)
		if len(hits) != 1 || hits[0].Score < test.score-1e-6 || hits[0].Score > test.score+1e-6 {
			s.Errorf("%v finds %+v, want the score %v", test.vector, hits, test.score)
		}
	}
	s.wantMissing(Fingerprint, 10, "ann "+cello.ID+" "+cello.Text)
	s.set(ann, cello.ID, cello.Text, vectorstore.Embedding{Fingerprint: another, Chunks: [][]float32{{1, 0, 0}}})
	s.wantMissing(Fingerprint, 10, "ann "+cello.ID+" "+cello.Text)
	s.wantMissing(another, 10, "ann "+tea.ID+" "+tea.Text)
	if got := s.get(ann, tea.ID); diffOne(got, tea) != "" {
		s.Errorf("the memory changed: %s", diffOne(got, tea))
	}
}

// testSetEmbeddingsOfChangedTexts: Vectors of a text that the memory no longer has are dropped.
func testSetEmbeddingsOfChangedTexts(s *backfillSuite) {
	tea := s.add(ann, s.memory("likes green tea"))
	gone := s.add(ann, s.memory("has a dog"))
	s.remove(ann, gone.ID)
	x := embedding([]float32{1, 0, 0})
	s.set(ann, tea.ID, "likes black tea", x)
	s.set(ann, gone.ID, gone.Text, x)
	s.set(ben, tea.ID, tea.Text, x)
	s.set(memory.User{Namespace: "elsewhere", ID: "ann"}, tea.ID, tea.Text, x)
	s.is("ann", idsOf(s.byVector(ann, everything(), 1, 0, 0)))
	s.wantMissing(Fingerprint, 10, "ann "+tea.ID+" "+tea.Text)
	// The call stores the other vectors.
	err := s.backfill.SetEmbeddings(s.Context(), ann, []vectorstore.TextEmbedding{
		{MemoryID: gone.ID, Text: gone.Text, Embedding: x}, {MemoryID: tea.ID, Text: tea.Text, Embedding: x},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.is("ann", idsOf(s.byVector(ann, everything(), 1, 0, 0)), tea.ID)
	if err := s.backfill.SetEmbeddings(s.Context(), ann, nil); err != nil {
		s.Error(err)
	}
}

func testSetEmbeddingsConcurrently(s *backfillSuite) {
	var memories []memory.Memory
	var want []string
	for i := range 8 {
		m := s.add(ann, s.memory(fmt.Sprint("has number ", i)))
		memories, want = append(memories, m), append(want, m.ID)
	}
	var writers sync.WaitGroup
	for _, m := range memories {
		for range 2 {
			writers.Go(func() { s.set(ann, m.ID, m.Text, embedding([]float32{1, 0, 0})) })
		}
	}
	writers.Wait()
	s.is("found", idsOf(s.byVector(ann, everything(), 1, 0, 0)), want...)
	s.wantMissing(Fingerprint, 3)
}

// testPass: A pass completes a fingerprint unless memories without vectors were stored during it.
func testPass(s *backfillSuite) {
	tea := s.add(ann, s.memory("likes green tea"))
	s.use(Fingerprint)
	begin := func() {
		s.Helper()
		if err := s.backfill.Begin(s.Context(), Fingerprint); err != nil {
			s.Fatal(err)
		}
	}
	complete := func(want bool) {
		s.Helper()
		if done, err := s.backfill.Complete(s.Context(), Fingerprint); done != want || err != nil {
			s.Errorf("done %t, %v, want %t", done, err, want)
		}
		s.wantUse(Fingerprint, want, false)
	}
	complete(false) // no pass has begun
	begin()
	s.set(ann, tea.ID, tea.Text, embedding([]float32{1, 0, 0}))
	s.add(ann, s.memory("plays the cello"), 0, 1, 0)
	complete(true)
	for what, write := range map[string]func(){
		"a new memory": func() { s.add(ben, s.memory(fmt.Sprint("has number ", s.count))) },
		"a new text": func() {
			patch := vectorstore.Patch{Text: new("likes " + s.memory("").ID), At: t0}
			if _, err := s.store.Update(s.Context(), ann, tea.ID, memory.Everything(), patch); err != nil {
				s.Fatal(err)
			}
		},
	} {
		s.Log(what)
		begin()
		write()
		complete(false)
		begin()
		complete(true)
		write()
		s.wantUse(Fingerprint, false, false)
		begin()
		complete(true)
	}
}

// testRevertedEdit: After an edit is reverted, the memory lacks vectors of the restored text.
func testRevertedEdit(s *backfillSuite) {
	s.use(Fingerprint)
	first := s.add(ann, s.memory("lives in A"), 1, 0, 0)
	patch := vectorstore.Patch{Text: new("lives in B"), Embedding: embedding([]float32{0, 1, 0}), At: t0}
	if _, err := s.store.Update(s.Context(), ann, first.ID, memory.Everything(), patch); err != nil {
		s.Fatal(err)
	}
	s.wantUse(Fingerprint, true, false)
	if _, _, err := s.store.Revert(s.Context(), ann, first.ID, "", memory.Everything(), t0); err != nil {
		s.Fatal(err)
	}
	s.wantUse(Fingerprint, false, false)
	s.wantMissing(Fingerprint, 10, "ann "+first.ID+" lives in A")
}

// testDropOthers: Only vectors of other fingerprints are deleted, up to the limit in one call.
func testDropOthers(s *backfillSuite) {
	const memories = 5
	var want []string
	for i := range memories {
		m := s.add(ann, s.memory(fmt.Sprint("has number ", i)), 1, 0, 0)
		s.set(ann, m.ID, m.Text, vectorstore.Embedding{Fingerprint: another, Chunks: [][]float32{{1, 0, 0}}})
		want = append(want, m.ID)
	}
	count := func() int64 {
		s.Helper()
		n, err := s.backfill.CountMissing(s.Context(), another)
		if err != nil {
			s.Fatal(err)
		}
		return n
	}
	left := int64(memories)
	for more := true; more; {
		var err error
		if more, err = s.backfill.DropOthers(s.Context(), Fingerprint, 2); err != nil {
			s.Fatal(err)
		}
		now := memories - count()
		if now < left-2 || now == left && more {
			s.Fatalf("%d vectors remain of %d", now, left)
		}
		left = now
	}
	if left != 0 {
		s.Errorf("%d vectors of another fingerprint remain", left)
	}
	s.is("found", idsOf(s.byVector(ann, everything(), 1, 0, 0)), want...)
	s.wantMissing(Fingerprint, 10)
	if more, err := s.backfill.DropOthers(s.Context(), Fingerprint, 2); more || err != nil {
		s.Errorf("more %t, %v", more, err)
	}
}

func (s *backfillSuite) calls() storetest.Calls {
	b := s.backfill
	return storetest.Calls{
		"UseFingerprint": func(ctx context.Context) error { _, _, err := b.UseFingerprint(ctx, another); return err },
		"Missing":        func(ctx context.Context) error { _, _, err := b.Missing(ctx, Fingerprint, 0, 1); return err },
		"CountMissing":   func(ctx context.Context) error { _, err := b.CountMissing(ctx, Fingerprint); return err },
		"SetEmbeddings": func(ctx context.Context) error {
			return b.SetEmbeddings(ctx, ann, []vectorstore.TextEmbedding{{MemoryID: "mem_1", Text: "x", Embedding: embedding([]float32{1, 0, 0})}})
		},
		"Begin":      func(ctx context.Context) error { return b.Begin(ctx, Fingerprint) },
		"Complete":   func(ctx context.Context) error { _, err := b.Complete(ctx, Fingerprint); return err },
		"DropOthers": func(ctx context.Context) error { _, err := b.DropOthers(ctx, Fingerprint, 1); return err },
	}
}

func testBackfillUnavailable(s *backfillSuite) {
	s.add(ann, s.memory("likes green tea"))
	s.close()
	storetest.CheckUnavailable(s.T, s.calls())
}

func testBackfillCancelled(s *backfillSuite) {
	s.add(ann, s.memory("likes green tea"))
	storetest.CheckCancelled(s.T, s.calls())
	s.use(Fingerprint)
}
