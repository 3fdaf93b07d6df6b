package local

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// index is one user's memories, ready for searches. Its memories are shared with callers and never modified. Active memories and
// history are separate, so that a search of active ones neither reads history nor uses its term statistics. Quarantined and withdrawn
// memories are not in the index.
type index struct {
	fingerprint string // of its vectors

	mu     sync.RWMutex
	active *corpus
	past   *corpus   // superseded and expired
	ends   time.Time // when the first active one expires; zero: none does
	bytes  int64     // estimated size of the index
}

// Bytes that Go and chromem use in addition to the payload, as measured by TestSizeMatchesTheHeap.
const (
	indexOverhead    = 1400 // an empty index with its collections, its maps and its place in the cache
	documentOverhead = 650  // a memory with its map entries and the headers of its strings
	vectorOverhead   = 250  // a chromem document with its id and its map entry
)

func newIndex(fingerprint string) (*index, error) {
	active, err := newCorpus()
	if err != nil {
		return nil, err
	}
	past, err := newCorpus()
	if err != nil {
		return nil, err
	}
	return &index{fingerprint: fingerprint, active: active, past: past, bytes: indexOverhead}, nil
}

// place returns the corpus for a memory, or nil.
func (x *index) place(m *memory.Memory, now time.Time) *corpus {
	switch m.StatusAt(now) {
	case memory.StatusActive:
		return x.active
	case memory.StatusSuperseded, memory.StatusExpired:
		return x.past
	case memory.StatusQuarantined, memory.StatusWithdrawn:
	}
	return nil
}

// put adds or replaces the memory, or removes it if it must no longer be found. A nil embedding keeps the current vectors.
func (x *index) put(ctx context.Context, m memory.Memory, embedding *vectorstore.Embedding) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	to := x.place(&m, time.Now())
	var vectors [][]float32
	if embedding != nil && embedding.Fingerprint == x.fingerprint {
		vectors = embedding.Chunks
	}
	if from, old := x.find(m.ID); old != nil && embedding == nil && old.memory.Text == m.Text {
		if from == to {
			old.memory = &m
			to.noteStanding(old)
			x.noteEnd(&m, to)
			return nil
		}
		var err error
		if vectors, err = from.vectorsOf(ctx, old); err != nil {
			return err
		}
	}
	return x.replace(ctx, &m, vectors, to)
}

// replace puts the memory into the corpus, if there is one, and removes it elsewhere.
func (x *index) replace(ctx context.Context, m *memory.Memory, vectors [][]float32, to *corpus) error {
	if err := x.removeLocked(ctx, m.ID); err != nil || to == nil {
		return err
	}
	added, err := to.add(ctx, m, vectors)
	if err != nil {
		return err
	}
	x.bytes += added
	x.noteEnd(m, to)
	return nil
}

func (x *index) noteEnd(m *memory.Memory, in *corpus) {
	if in == x.active && !m.ValidTo.IsZero() && (x.ends.IsZero() || m.ValidTo.Before(x.ends)) {
		x.ends = m.ValidTo
	}
}

// find returns a memory and its corpus.
func (x *index) find(id string) (*corpus, *document) {
	for _, c := range []*corpus{x.active, x.past} {
		if doc := c.documents[id]; doc != nil {
			return c, doc
		}
	}
	return nil, nil
}

// expire moves expired memories to history, which needs no write. It costs nothing until a memory expires.
func (x *index) expire(ctx context.Context) error {
	now := time.Now()
	x.mu.RLock()
	due := !x.ends.IsZero() && !now.Before(x.ends)
	x.mu.RUnlock()
	if !due {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ends = time.Time{}
	for _, doc := range x.active.documents {
		if x.place(doc.memory, now) == x.active {
			x.noteEnd(doc.memory, x.active)
			continue
		}
		vectors, err := x.active.vectorsOf(ctx, doc)
		if err == nil {
			err = x.replace(ctx, doc.memory, vectors, x.past)
		}
		if err != nil {
			x.ends = now // retry with the next call
			return err
		}
	}
	return nil
}

// used counts that a memory was retrieved.
func (x *index) used(use vectorstore.Use) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, doc := x.find(use.MemoryID); doc != nil {
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
	for _, c := range []*corpus{x.active, x.past} {
		removed, err := c.remove(ctx, id)
		if err != nil {
			return err
		}
		x.bytes -= removed
	}
	return nil
}

func (x *index) size() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.bytes
}

func (x *index) searchVector(ctx context.Context, vector []float32, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error) {
	if err := x.expire(ctx); err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if filter.MatchesAll() {
		return x.active.search(ctx, vector, nil, limit)
	}
	var hits []vectorstore.Hit
	for _, c := range x.searched(&filter) {
		found, err := c.search(ctx, vector, filter.Matches, limit)
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	slices.SortStableFunc(hits, func(a, b vectorstore.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:max(0, min(limit, len(hits)))], nil
}

// searched returns the corpora that may hold memories which the filter admits.
func (x *index) searched(filter *vectorstore.Filter) []*corpus {
	if filter.ActiveNow() || len(x.past.documents) == 0 {
		return []*corpus{x.active}
	}
	return []*corpus{x.active, x.past}
}

func (x *index) searchKeyword(ctx context.Context, query string, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error) {
	if err := x.expire(ctx); err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	var lists []*postings
	for _, c := range x.searched(&filter) {
		lists = append(lists, c.keywords)
	}
	var hits []vectorstore.Hit
	for doc, score := range searchPostings(query, lists...) {
		if m := doc.memory; filter.Matches(m) {
			hits = append(hits, vectorstore.Hit{Memory: m, Score: score})
		}
	}
	slices.SortFunc(hits, func(a, b vectorstore.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Memory.ObservedAt.Compare(a.Memory.ObservedAt),
			cmp.Compare(a.Memory.ID, b.Memory.ID))
	})
	return hits[:max(0, min(limit, len(hits)))], nil
}

// standing returns the memories with a standing, ordered.
func (x *index) standing(ctx context.Context, filter *vectorstore.Filter) ([]*memory.Memory, error) {
	if err := x.expire(ctx); err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []*memory.Memory
	for _, c := range x.searched(filter) {
		for doc := range c.standing {
			if filter.Matches(doc.memory) {
				list = append(list, doc.memory)
			}
		}
	}
	slices.SortFunc(list, vectorstore.CompareStanding)
	return list, nil
}

func isZero(vector []float32) bool {
	return !slices.ContainsFunc(vector, func(v float32) bool { return v != 0 })
}

func textBytes(m *memory.Memory) int64 {
	n := len(m.ID) + len(m.Text) + len(m.AgentID) + len(m.Channel.ID) + len(m.SessionID) + len(m.Provenance.Quote) +
		len(m.Provenance.Reason) + len(m.Provenance.ConsiderationID) + len(m.Provenance.SpeakerID) + len(m.SupersededBy)
	for _, id := range m.Provenance.MessageIDs {
		n += len(id) + 16
	}
	return int64(n)
}
