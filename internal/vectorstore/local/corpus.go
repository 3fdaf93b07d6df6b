package local

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/philippgille/chromem-go"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// corpus is a set of memories that are searched together, with their statistics.
type corpus struct {
	documents map[string]*document // by the memory's id
	vectors   *chromem.Collection  // one document per chunk
	embedded  int                  // memories that have vectors
	keywords  *postings
	standing  map[*document]bool // those that have a standing
}

type document struct {
	memory *memory.Memory
	chunks int // vectors in the collection
	terms  int // words of the text, with repetitions
	bytes  int64
}

func newCorpus() (*corpus, error) {
	// The name does not matter: each user has a separate database, which makes isolation structural. The embedding function is never
	// called, because every document and every query comes with its vector.
	vectors, err := chromem.NewDB().CreateCollection("memories", nil, func(context.Context, string) ([]float32, error) {
		return nil, errors.New("the index embeds nothing by itself")
	})
	if err != nil {
		return nil, err
	}
	return &corpus{documents: map[string]*document{}, vectors: vectors, keywords: newPostings(), standing: map[*document]bool{}}, nil
}

// add adds a new memory and returns the estimate of the bytes it occupies.
func (c *corpus) add(ctx context.Context, m *memory.Memory, vectors [][]float32) (int64, error) {
	doc := &document{memory: m, bytes: documentOverhead + textBytes(m)}
	for _, vector := range vectors {
		if isZero(vector) {
			continue // no content, so similar to nothing; chromem would divide by its length
		}
		err := c.vectors.AddDocument(ctx, chromem.Document{ID: chunkID(m.ID, doc.chunks), Embedding: vector})
		if err != nil {
			return 0, err
		}
		doc.chunks++
		doc.bytes += vectorOverhead + int64(4*len(vector))
	}
	if doc.chunks > 0 {
		c.embedded++
	}
	doc.bytes += c.keywords.add(doc, m.Text)
	c.documents[m.ID] = doc
	c.noteStanding(doc)
	return doc.bytes, nil
}

// noteStanding updates the set of memories that have a standing.
func (c *corpus) noteStanding(doc *document) {
	if doc.memory.Standing == "" {
		delete(c.standing, doc)
		return
	}
	c.standing[doc] = true
}

// remove removes a memory, if it exists, and returns the bytes it occupied.
func (c *corpus) remove(ctx context.Context, id string) (int64, error) {
	doc := c.documents[id]
	if doc == nil {
		return 0, nil
	}
	var chunks []string
	for i := range doc.chunks {
		chunks = append(chunks, chunkID(id, i))
	}
	if len(chunks) > 0 {
		// Filters must be nil: with an empty map chromem v0.7.0 deletes every document.
		if err := c.vectors.Delete(ctx, nil, nil, chunks...); err != nil {
			return 0, err
		}
		c.embedded--
	}
	c.keywords.remove(doc, doc.memory.Text)
	delete(c.documents, id)
	delete(c.standing, doc)
	return doc.bytes, nil
}

// vectorsOf returns the vectors of a memory of the corpus.
func (c *corpus) vectorsOf(ctx context.Context, doc *document) ([][]float32, error) {
	var vectors [][]float32
	for i := range doc.chunks {
		chunk, err := c.vectors.GetByID(ctx, chunkID(doc.memory.ID, i))
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, chunk.Embedding)
	}
	return vectors, nil
}

// search returns up to limit hits, best first. matches is nil if all memories match.
func (c *corpus) search(ctx context.Context, vector []float32, matches func(*memory.Memory) bool, limit int) ([]vectorstore.Hit, error) {
	count := c.vectors.Count()
	if count == 0 || limit <= 0 || isZero(vector) {
		return nil, nil
	}
	results, err := c.vectors.QueryEmbedding(ctx, vector, min(count, limit+c.passedOver(matches)), nil, nil)
	if err != nil {
		return nil, err
	}
	hits := make([]vectorstore.Hit, 0, min(limit, count))
	seen := make(map[string]bool, min(limit, count))
	for _, r := range results { // best first
		id := memoryID(r.ID)
		doc := c.documents[id]
		if seen[id] || doc == nil || matches != nil && !matches(doc.memory) {
			continue
		}
		seen[id] = true
		hits = append(hits, vectorstore.Hit{Memory: doc.memory, Score: min(1, max(-1, float64(r.Similarity)))}) // rounding may leave [-1, 1]
		if len(hits) == limit {
			break
		}
	}
	return hits, nil
}

// passedOver returns how many of chromem's results are not hits at most: chromem cannot apply the filter, and of a memory with several
// chunks only the best one counts. A small number of results saves chromem a large heap.
func (c *corpus) passedOver(matches func(*memory.Memory) bool) int {
	hits := c.embedded
	if matches != nil {
		hits = 0
		for _, doc := range c.documents {
			if doc.chunks > 0 && matches(doc.memory) {
				hits++
			}
		}
	}
	return c.vectors.Count() - hits
}

func chunkID(memoryID string, chunk int) string { return memoryID + "#" + strconv.Itoa(chunk) }

func memoryID(chunkID string) string { return chunkID[:strings.LastIndexByte(chunkID, '#')] }
