package local

import (
	"math"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lexical"
)

// BM25 parameters, the usual ones (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.2).
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// postings is a keyword index over one user's memories: small enough to hold in memory, so that a search costs what
// that user's memories cost and never what all users' do.
type postings struct {
	terms   map[string]map[string]int // term → memory id → how often it occurs there
	lengths map[string]int            // memory id → its number of terms
	total   int64                     // of all lengths
}

// postingOverhead estimates the bytes of one posting: its map entry, and a share of the term's.
const postingOverhead = 60

func newPostings() *postings {
	return &postings{terms: map[string]map[string]int{}, lengths: map[string]int{}}
}

// add indexes a text that is not in the index and estimates the bytes this took.
func (p *postings) add(id, text string) (bytes int64) {
	terms := lexical.Terms(text)
	for _, term := range terms {
		docs := p.terms[term]
		if docs == nil {
			docs = map[string]int{}
			p.terms[strings.Clone(term)] = docs // a term is a part of its text, and would keep all of it in memory
			bytes += int64(len(term))
		}
		if docs[id] == 0 {
			bytes += postingOverhead
		}
		docs[id]++
	}
	p.lengths[id] = len(terms)
	p.total += int64(len(terms))
	return bytes
}

// remove undoes add.
func (p *postings) remove(id, text string) {
	for _, term := range lexical.Terms(text) {
		if docs := p.terms[term]; docs != nil {
			delete(docs, id)
			if len(docs) == 0 {
				delete(p.terms, term)
			}
		}
	}
	p.total -= int64(p.lengths[id])
	delete(p.lengths, id)
}

// search scores the memories that share a term with the query: BM25, divided by what a memory of average length would
// score that holds each term of the query once, and capped at 1. So the score is absolute: it does not depend on the
// other hits, and terms that no memory holds lower it.
func (p *postings) search(query string) map[string]float64 {
	if len(p.lengths) == 0 {
		return nil
	}
	count, average := float64(len(p.lengths)), float64(p.total)/float64(len(p.lengths))
	scores := map[string]float64{}
	var best float64
	for _, term := range lexical.QueryTerms(query) {
		docs := p.terms[term]
		n := float64(len(docs))
		idf := math.Log(1 + (count-n+0.5)/(n+0.5))
		best += idf
		for id, frequency := range docs {
			f := float64(frequency)
			norm := 1 - bm25B + bm25B*float64(p.lengths[id])/average
			scores[id] += idf * f * (bm25K1 + 1) / (f + bm25K1*norm)
		}
	}
	for id, score := range scores {
		scores[id] = min(1, score/best)
	}
	return scores
}
