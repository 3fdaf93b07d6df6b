package recall

import "math"

// BM25 parameters, those of the memories' keyword index.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// Scorer scores messages for one query: BM25, divided by what a message of average length would score that holds each term
// of the query once, and capped at 1. It is the score of the memories' keyword index (docs/design/ranking.md).
type Scorer struct {
	place   map[string]int // of a term in the query
	idf     []float64
	average float64 // length
	best    float64
}

// NewScorer returns a scorer for a query's distinct terms. holders says how many messages hold each, of count messages
// that have length terms together.
func NewScorer(terms []string, holders []int64, count, length int64) *Scorer {
	s := &Scorer{place: make(map[string]int, len(terms)), idf: make([]float64, len(terms)), average: 1}
	if count > 0 && length > 0 {
		s.average = float64(length) / float64(count)
	}
	for i, term := range terms {
		s.place[term] = i
		n := float64(min(holders[i], count))
		s.idf[i] = math.Log(1 + (float64(count)-n+0.5)/(n+0.5))
		s.best += s.idf[i]
	}
	return s
}

// Part is what the i-th term adds to the score of a message of a length that holds it frequency times.
func (s *Scorer) Part(i, frequency int, length float64) float64 {
	f := float64(frequency)
	return s.idf[i] * f * (bm25K1 + 1) / (f + bm25K1*(1-bm25B+bm25B*length/s.average)) / s.best
}

// Score is a message's score, given its terms.
func (s *Scorer) Score(terms []string) float64 {
	var score float64
	for i, n := range s.Frequencies(terms) {
		if n > 0 {
			score += s.Part(i, n, float64(len(terms)))
		}
	}
	return min(1, score)
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
