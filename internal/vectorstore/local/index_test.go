package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// TestSearchIsComplete: Whatever memories' numbers of chunks and the filter, a search returns the nearest memories up to its limit. It
// would fail if too few chunks were requested of chromem.
func TestSearchIsComplete(t *testing.T) {
	ctx := t.Context()
	random := rand.New(rand.NewPCG(1, 2))
	x := newTestIndex(t)
	kindOf := map[string]memory.Kind{}
	for step := range 300 {
		id := fmt.Sprint("m", random.IntN(60))
		if random.IntN(4) == 0 {
			delete(kindOf, id)
			if err := x.remove(ctx, id); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var e *vectorstore.Embedding
		if chunks := random.IntN(4); chunks > 0 {
			e = &vectorstore.Embedding{Fingerprint: testFingerprint}
			for range chunks {
				e.Chunks = append(e.Chunks, []float32{random.Float32(), random.Float32() - 0.5, random.Float32() - 0.5})
			}
		}
		m := memory.Memory{ID: id, Text: fmt.Sprint("text ", step), Kind: []memory.Kind{memory.KindFact, memory.KindPlan}[random.IntN(2)]}
		if err := x.put(ctx, m, e); err != nil {
			t.Fatal(err)
		}
		kindOf[id] = m.Kind
		if (e == nil) != (x.active.documents[id].chunks == 0) {
			t.Fatalf("%s has %d vectors", id, x.active.documents[id].chunks)
		}
		query := []float32{1, random.Float32() - 0.5, 0}
		for _, filter := range []vectorstore.Filter{
			{Audience: memory.Everything()},
			{Audience: memory.Everything(), Kinds: []memory.Kind{memory.KindPlan}},
			{},
		} {
			all, err := x.searchVector(ctx, query, filter, 1000)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			for id := range kindOf {
				if doc := x.active.documents[id]; doc.chunks > 0 && filter.Matches(doc.memory) {
					want++
				}
			}
			few, err := x.searchVector(ctx, query, filter, 3)
			if err != nil || len(all) != want || !slices.Equal(scores(few), scores(all[:min(3, want)])) {
				t.Fatalf("step %d: %d hits of %d; the first three are %v, want %v; %v", step, len(all), want, scores(few),
					scores(all[:min(3, len(all))]), err)
			}
		}
	}
}

func scores(hits []vectorstore.Hit) (s []float64) {
	for _, h := range hits {
		s = append(s, h.Score)
	}
	return s
}

// TestSearchExcludesExpiredMemories: Without a write, a search finds only memories that are active at its time.
func TestSearchExcludesExpiredMemories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, everything := t.Context(), vectorstore.Filter{Audience: memory.Everything()}
		x := newTestIndex(t)
		vector := &vectorstore.Embedding{Fingerprint: testFingerprint, Chunks: [][]float32{{1, 0, 0}, {1, 1, 0}}}
		for i := range 4 {
			m := memory.Memory{ID: fmt.Sprint(i), Text: fmt.Sprint("an appointment, number ", i)}
			if i > 0 {
				m.ValidTo = time.Now().Add(time.Duration(i) * time.Hour)
			}
			if err := x.put(ctx, m, vector); err != nil {
				t.Fatal(err)
			}
		}
		for left := 4; left > 1; left-- {
			past := everything
			past.Statuses = []memory.Status{memory.StatusExpired}
			for filter, want := range map[*vectorstore.Filter]int{&everything: left, &past: 4 - left} {
				byVector, err := x.searchVector(ctx, []float32{1, 0, 0}, *filter, 10)
				if err != nil || len(byVector) != want {
					t.Errorf("%d are active: %d by vector, %v, want %d", left, len(byVector), err, want)
				}
				byKeyword, err := x.searchKeyword(ctx, "appointment", *filter, 10)
				if err != nil || len(byKeyword) != want {
					t.Errorf("%d are active: %d by keyword, %v, want %d", left, len(byKeyword), err, want)
				}
			}
			// Expired memories do not count in the statistics of active ones.
			if x.active.keywords.documents != left || x.active.embedded != left || x.past.vectors.Count() != 2*(4-left) {
				t.Errorf("%d are active: %d documents, %d embedded, %d vectors of the past", left, x.active.keywords.documents,
					x.active.embedded, x.past.vectors.Count())
			}
			time.Sleep(time.Hour)
		}
		for i := range 4 {
			if err := x.remove(ctx, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if x.size() != indexOverhead || len(x.past.documents) != 0 {
			t.Errorf("after everything was removed: %d bytes, %d memories", x.size(), len(x.past.documents))
		}
	})
}
