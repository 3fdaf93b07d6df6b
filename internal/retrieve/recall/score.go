package recall

import (
	"math"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// Scorer scores messages for one query. A score is the BM25 score, divided by that of a message of average length that holds each term
// of the query once, at most 1, and multiplied by the square root of the share of the query that the message holds, where terms are
// weighted by their inverse document frequency. Without the last factor one rare word said twice would be as good as two words
// (docs/design/recall.md).
type Scorer struct {
	place   map[string]int // of a term in the query
	idf     []float64
	average float64 // length
	best    float64
}

// NewScorer returns a scorer for a query's distinct terms. holders is the number of messages that hold each term, count the number of
// all messages, and length the number of their terms.
func NewScorer(terms []string, holders []int64, count, length int64) *Scorer {
	s := &Scorer{place: make(map[string]int, len(terms)), idf: make([]float64, len(terms)), average: 1}
	if count > 0 && length > 0 {
		s.average = float64(length) / float64(count)
	}
	for i, term := range terms {
		s.place[term] = i
		n := float64(min(holders[i], count))
		s.idf[i] = lexical.IDF(n, float64(count))
		s.best += s.idf[i]
	}
	return s
}

// Sum accumulates the terms of a message; Score turns it into the message's score.
type Sum struct {
	weight  float32 // BM25, as a share of the best possible
	covered float32 // share of the query
}

// Add adds the i-th term, which a message of the given length holds frequency times.
func (s *Scorer) Add(sum Sum, i, frequency int, length float64) Sum {
	share := s.idf[i] / s.best
	sum.weight += float32(share * lexical.BM25(float64(frequency), length, s.average))
	sum.covered += float32(share)
	return sum
}

// Score is the score of the added terms, 0 to 1.
func (sum Sum) Score() float64 {
	return min(1, float64(sum.weight)) * math.Sqrt(min(1, float64(sum.covered)))
}

// Score is the score of a message with these terms.
func (s *Scorer) Score(terms []string) float64 {
	var sum Sum
	for i, n := range s.Frequencies(terms) {
		if n > 0 {
			sum = s.Add(sum, i, n, float64(len(terms)))
		}
	}
	return sum.Score()
}

// Frequencies counts the query's terms among those of a message.
func (s *Scorer) Frequencies(terms []string) []int {
	frequencies := make([]int, len(s.idf))
	for _, term := range terms {
		if i, ok := s.place[term]; ok {
			frequencies[i]++
		}
	}
	return frequencies
}
