package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// TestSearchIsComplete: however many chunks memories have and whatever the filter leaves out, a search returns the nearest
// memories up to its limit. Chromem is asked for no more than it takes, and this is where too little would show.
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
		if (e == nil) != (x.memories[id].chunks == 0) {
			t.Fatalf("%s has %d vectors", id, x.memories[id].chunks)
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
				if doc := x.memories[id]; doc.chunks > 0 && filter.Matches(doc.memory) {
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
