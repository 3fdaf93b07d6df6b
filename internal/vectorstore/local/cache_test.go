package local

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const testFingerprint = "test/model/3"

func newTestIndex(t *testing.T) *index {
	t.Helper()
	x, err := newIndex(testFingerprint)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestEmptiedIndexHasTheSizeOfAnEmptyOne: An index whose memories are all removed has the size of an empty one, so that the cache's sum
// stays correct.
func TestEmptiedIndexHasTheSizeOfAnEmptyOne(t *testing.T) {
	ctx := t.Context()
	x := newTestIndex(t)
	if x.size() != indexOverhead {
		t.Errorf("an empty index has the size %d, want %d", x.size(), indexOverhead)
	}
	chunks := func(n int) *vectorstore.Embedding {
		return &vectorstore.Embedding{Fingerprint: testFingerprint, Chunks: [][]float32{{1, 2, 3}, {0, 0, 0}, {3, 2, 1}}[:n]}
	}
	foreign := &vectorstore.Embedding{Fingerprint: "other", Chunks: [][]float32{{1, 2, 3}}}
	sizes := []int64{x.size()}
	for i, c := range []struct {
		id, text  string
		embedding *vectorstore.Embedding
	}{
		{"a", "用户喜欢喝绿茶 green tea", chunks(1)},
		{"b", "用户喜欢喝红茶 black tea", chunks(3)},
		{"c", "green tea, black tea", nil},
		{"d", "green", foreign},
		{"b", "a new text", chunks(1)},  // replaced
		{"a", "用户喜欢喝绿茶 green tea", nil}, // only its numbers changed
		{"c", "another text", nil},
		{"e", "", chunks(1)},
	} {
		if err := x.put(ctx, memory.Memory{ID: c.id, Text: c.text}, c.embedding); err != nil {
			t.Fatal(i, err)
		}
		sizes = append(sizes, x.size())
	}
	if sizes[2]-sizes[1] <= documentOverhead+2*vectorOverhead || sizes[5] >= sizes[4] || sizes[6] != sizes[5] {
		t.Errorf("the sizes after each step are %v", sizes)
	}
	for _, id := range []string{"a", "b", "none", "c", "d", "e", "a"} {
		if err := x.remove(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	keywords := x.active.keywords
	if x.size() != indexOverhead || x.active.vectors.Count() != 0 || len(keywords.terms) != 0 || keywords.documents != 0 || keywords.total != 0 {
		t.Errorf("after everything was removed: %d bytes, %d vectors, %d terms, %d documents, total %d", x.size(), x.active.vectors.Count(),
			len(x.active.keywords.terms), x.active.keywords.documents, x.active.keywords.total)
	}
}

func person(i int) memory.User { return memory.User{Namespace: "test", ID: fmt.Sprint(i)} }

// counted checks the cache's sum against its entries, and returns the users whose indexes are cached.
func (c *cache) counted(t *testing.T) map[memory.User]bool {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum int64
	users := map[memory.User]bool{}
	for user, e := range c.entries {
		users[user] = true
		sum += e.bytes
	}
	if sum != c.bytes || c.recent.Len() != len(c.entries) {
		t.Errorf("%d bytes are counted, the entries have %d; %d are ordered by use, of %d", c.bytes, sum, c.recent.Len(), len(c.entries))
	}
	if c.bytes > c.budget && len(c.entries) > 1 {
		t.Errorf("%d entries have %d bytes, more than %d", len(c.entries), c.bytes, c.budget)
	}
	return users
}

func TestEviction(t *testing.T) {
	ctx := t.Context()
	c := newCache(3 * indexOverhead)
	loads := map[memory.User]int{}
	use := func(i int) {
		t.Helper()
		_, err := c.get(ctx, person(i), func(context.Context) (*index, error) {
			loads[person(i)]++
			return newIndex(testFingerprint)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	holds := func(want ...int) {
		t.Helper()
		got := c.counted(t)
		for _, i := range want {
			if !got[person(i)] || len(got) != len(want) {
				t.Fatalf("the cache holds %v, want %v", got, want)
			}
		}
	}
	use(1)
	use(2)
	use(3)
	holds(1, 2, 3)
	use(1)
	use(4) // replaces the least recently used one
	holds(1, 3, 4)
	use(2)
	holds(1, 2, 4)
	if loads[person(1)] != 1 || loads[person(2)] != 2 {
		t.Errorf("loaded %v", loads)
	}

	use(4)
	c.change(person(4), func(x *index) error { // larger than the budget: it evicts all others and stays
		return x.put(ctx, memory.Memory{ID: "a", Text: "tea"}, &vectorstore.Embedding{Fingerprint: testFingerprint, Chunks: [][]float32{oneHot(4000)}})
	})
	holds(4)
	c.change(person(4), func(x *index) error { return x.remove(ctx, "a") })
	use(1)
	holds(1, 4) // enough room again
	c.change(person(1), func(*index) error { return fmt.Errorf("broken") })
	holds(4)
	c.change(person(9), func(*index) error { t.Error("there is nothing to change"); return nil })
	c.forget(person(9))
	c.forget(person(4))
	holds()
	use(1)
	c.clear()
	holds()
}

func oneHot(n int) []float32 {
	v := make([]float32, n)
	v[0] = 1
	return v
}

// TestAccountingUnderLoad: The sum stays correct under concurrent use.
func TestAccountingUnderLoad(t *testing.T) {
	ctx := t.Context()
	c := newCache(4 * indexOverhead)
	var tasks sync.WaitGroup
	for w := range 4 {
		random := rand.New(rand.NewPCG(1, uint64(w)))
		tasks.Go(func() {
			for i := range 300 {
				user := person(random.IntN(8))
				switch random.IntN(6) {
				case 0:
					c.forget(user)
				case 1, 2:
					c.change(user, func(x *index) error {
						return x.put(ctx, memory.Memory{ID: fmt.Sprint(random.IntN(3)), Text: fmt.Sprint("tea ", i)}, nil)
					})
				case 3:
					if i%50 == 0 {
						c.clear()
					}
				default:
					_, err := c.get(ctx, user, func(context.Context) (*index, error) {
						if random.IntN(5) == 0 {
							return nil, fmt.Errorf("cannot load")
						}
						return newIndex(testFingerprint)
					})
					if err != nil && err.Error() != "cannot load" {
						t.Error(err)
					}
				}
			}
		})
	}
	tasks.Wait()
	// The next use corrects what a concurrent load left.
	if _, err := c.get(ctx, person(99), func(context.Context) (*index, error) { return newIndex(testFingerprint) }); err != nil {
		t.Fatal(err)
	}
	c.counted(t)
	for i := range 8 {
		c.forget(person(i))
	}
	c.forget(person(99))
	if c.bytes != 0 {
		t.Errorf("an empty cache counts %d bytes", c.bytes)
	}
}
