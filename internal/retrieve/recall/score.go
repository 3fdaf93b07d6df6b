package recall

import "math"

// BM25 parameters. The usual k1 = 1.2 and b = 0.75 are for articles. Less of both suits short texts: these are Anserini's
// defaults (Yang, Fang and Lin, Anserini: Reproducible Ranking Baselines Using Lucene, 2018), and conversations in two
// languages say the same (docs/design/recall.md).
const (
	bm25K1 = 0.9
	bm25B  = 0.4
)

// Scorer scores messages for one query: BM25, divided by what a message of average length would score that holds each term
// of the query once, capped at 1, and multiplied by the square root of the share of the query that the message holds, each
// term counted by its inverse document frequency. Without the last, one rare word said twice would be as good as two words
// (docs/design/recall.md).
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

// Sum is what the terms of a message add up to; Score makes its score of it.
type Sum struct {
	weight  float32 // BM25, as a share of the best
	covered float32 // share of the query
}

// Add counts the i-th term, which a message of a length holds frequency times.
func (s *Scorer) Add(sum Sum, i, frequency int, length float64) Sum {
	f := float64(frequency)
	share := s.idf[i] / s.best
	sum.weight += float32(share * f * (bm25K1 + 1) / (f + bm25K1*(1-bm25B+bm25B*length/s.average)))
	sum.covered += float32(share)
	return sum
}

// Score is the score that the terms make together, 0 to 1.
func (sum Sum) Score() float64 {
	return min(1, float64(sum.weight)) * math.Sqrt(min(1, float64(sum.covered)))
}

// Score is a message's score, given its terms.
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
