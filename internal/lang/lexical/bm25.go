package lexical

import "math"

// BM25 parameters. The usual k1 = 1.2 and b = 0.75 are for articles. Lower values suit short texts: these are Anserini's defaults (Yang,
// Fang and Lin, Anserini: Reproducible Ranking Baselines Using Lucene, 2018), and conversations in two languages confirm them
// (docs/design/recall.md).
const (
	bm25K1 = 0.9
	bm25B  = 0.4
)

// IDF is the inverse document frequency of a term that holders of count documents hold.
func IDF(holders, count float64) float64 {
	return math.Log(1 + (count-holders+0.5)/(holders+0.5))
}

// BM25 is what a term that a document holds frequency times adds to the document's score, as a multiple of the term's IDF. It is 1 for a
// term that a document of average length holds once. Lengths are in terms.
func BM25(frequency, length, average float64) float64 {
	return frequency * (bm25K1 + 1) / (frequency + bm25K1*(1-bm25B+bm25B*length/average))
}
