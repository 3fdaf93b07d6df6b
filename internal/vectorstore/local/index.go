package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/philippgille/chromem-go"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// index is one user's memories, ready to be searched. Its memories are shared with callers and never modified.
type index struct {
	fingerprint string // of the vectors in it

	mu       sync.RWMutex
	memories map[string]*document
	vectors  *chromem.Collection // one document a chunk
	embedded int                 // memories that have vectors
	keywords *postings
	bytes    int64 // estimate of what the index occupies
}

type document struct {
	memory *memory.Memory
	chunks int // vectors in the collection
	terms  int // of the text, with repetitions
	bytes  int64
}

// What Go and chromem spend beside the payload, in bytes, as TestSizeIsTrue measures it.
const (
	indexOverhead    = 900 // an empty index with its collection, its maps and its place in the cache
	documentOverhead = 650 // a memory with its map entries and the headers of its strings
	vectorOverhead   = 250 // a chromem document with its id and its map entry
)

func newIndex(fingerprint string) (*index, error) {
	// The name is never seen: a database of its own for each user makes isolation structural. The embedding function is
	// never called, because every document and every query comes with its vector.
	vectors, err := chromem.NewDB().CreateCollection("memories", nil, func(context.Context, string) ([]float32, error) {
		return nil, fmt.Errorf("the index embeds nothing by itself")
	})
	if err != nil {
		return nil, err
	}
	return &index{
		fingerprint: fingerprint,
		memories:    map[string]*document{},
		vectors:     vectors,
		keywords:    newPostings(),
		bytes:       indexOverhead,
	}, nil
}

// put adds the memory or replaces it. A nil embedding keeps the vectors that are there.
func (x *index) put(ctx context.Context, m memory.Memory, embedding *vectorstore.Embedding) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.memories[m.ID]
	if old != nil && embedding == nil && old.memory.Text == m.Text {
		old.memory = &m
		return nil
	}
	if err := x.removeLocked(ctx, m.ID); err != nil {
		return err
	}
	doc := &document{memory: &m, bytes: documentOverhead + textBytes(&m)}
	if embedding != nil && embedding.Fingerprint == x.fingerprint {
		for _, vector := range embedding.Chunks {
			if isZero(vector) {
				continue // no content, so similar to nothing; chromem would divide by its length
			}
			err := x.vectors.AddDocument(ctx, chromem.Document{ID: chunkID(m.ID, doc.chunks), Embedding: vector})
			if err != nil {
				return err
			}
			doc.chunks++
			doc.bytes += vectorOverhead + int64(4*len(vector))
		}
	}
	if doc.chunks > 0 {
		x.embedded++
	}
	doc.bytes += x.keywords.add(doc, m.Text)
	x.memories[m.ID] = doc
	x.bytes += doc.bytes
	return nil
}

// used counts that a memory was retrieved.
func (x *index) used(use vectorstore.Use) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if doc := x.memories[use.MemoryID]; doc != nil {
		m := *doc.memory // shared with callers
		m.UseCount += use.Count
		m.LastUsedAt = use.At.Truncate(time.Microsecond).UTC()
		doc.memory = &m
	}
}

func (x *index) remove(ctx context.Context, id string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.removeLocked(ctx, id)
}

func (x *index) removeLocked(ctx context.Context, id string) error {
	doc := x.memories[id]
	if doc == nil {
		return nil
	}
	var chunks []string
	for i := range doc.chunks {
		chunks = append(chunks, chunkID(id, i))
	}
	if len(chunks) > 0 {
		// nil filters, always: with an empty map chromem v0.7.0 deletes every document.
		if err := x.vectors.Delete(ctx, nil, nil, chunks...); err != nil {
			return err
		}
		x.embedded--
	}
	x.keywords.remove(doc, doc.memory.Text)
	delete(x.memories, id)
	x.bytes -= doc.bytes
	return nil
}

func (x *index) size() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.bytes
}

func (x *index) searchVector(ctx context.Context, vector []float32, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	count := x.vectors.Count()
	if count == 0 || limit <= 0 || isZero(vector) {
		return nil, nil
	}
	results, err := x.vectors.QueryEmbedding(ctx, vector, min(count, limit+x.passedOver(&filter)), nil, nil)
	if err != nil {
		return nil, err
	}
	hits := make([]vectorstore.Hit, 0, min(limit, count))
	seen := make(map[string]bool, min(limit, count))
	all := filter.MatchesAll()
	for _, r := range results { // best first
		id := memoryID(r.ID)
		doc := x.memories[id]
		if seen[id] || doc == nil || !all && !filter.Matches(doc.memory) {
			continue
		}
		seen[id] = true
		hits = append(hits, vectorstore.Hit{Memory: doc.memory, Score: min(1, max(-1, float64(r.Similarity)))}) // rounding
		if len(hits) == limit {
			break
		}
	}
	return hits, nil
}

// passedOver is how many of chromem's results may be no hits, at most: it cannot express the filter, and a memory may have
// several chunks, of which the best one counts. To ask for no more than that and the limit spares it a heap of everything.
func (x *index) passedOver(filter *vectorstore.Filter) int {
	hits := x.embedded
	if !filter.MatchesAll() {
		hits = 0
		for _, doc := range x.memories {
			if doc.chunks > 0 && filter.Matches(doc.memory) {
				hits++
			}
		}
	}
	return x.vectors.Count() - hits
}

func (x *index) searchKeyword(query string, filter vectorstore.Filter, limit int) []vectorstore.Hit {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var hits []vectorstore.Hit
	for doc, score := range x.keywords.search(query) {
		if m := doc.memory; filter.Matches(m) {
			hits = append(hits, vectorstore.Hit{Memory: m, Score: score})
		}
	}
	slices.SortFunc(hits, func(a, b vectorstore.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Memory.ObservedAt.Compare(a.Memory.ObservedAt),
			cmp.Compare(a.Memory.ID, b.Memory.ID))
	})
	return hits[:max(0, min(limit, len(hits)))]
}

func chunkID(memoryID string, chunk int) string { return memoryID + "#" + strconv.Itoa(chunk) }

func memoryID(chunkID string) string { return chunkID[:strings.LastIndexByte(chunkID, '#')] }

func isZero(vector []float32) bool {
	return !slices.ContainsFunc(vector, func(v float32) bool { return v != 0 })
}

func textBytes(m *memory.Memory) int64 {
	n := len(m.ID) + len(m.Text) + len(m.AgentID) + len(m.Channel.ID) + len(m.SessionID) + len(m.Provenance.Quote) +
		len(m.Provenance.Reason) + len(m.Provenance.ConsiderationID) + len(m.Provenance.SpeakerID)
	for _, id := range m.Provenance.MessageIDs {
		n += len(id) + 16
	}
	return int64(n)
}
