package local

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// postings is a keyword index over one user's memories: small enough to hold in memory, so that a search costs what
// that user's memories cost and never what all users' do. The lists are slices, because most terms of a user are in one
// memory only, and a map for each such term would be the largest part of the index.
type postings struct {
	terms     map[string][]posting
	documents int
	total     int64 // terms of all documents, with repetitions
}

// posting says how often a term occurs in a document.
type posting struct {
	document *document
	count    int
}

// Bytes that postings occupy, measured: a term is an entry of a map that is full to three quarters on average, and its
// list grows by doubling.
const (
	termOverhead    = 64
	postingOverhead = 20
)

func newPostings() *postings { return &postings{terms: map[string][]posting{}} }

// add indexes the text of a document that is not in the index and estimates the bytes this took.
func (p *postings) add(d *document, text string) (bytes int64) {
	terms := lexical.Terms(text)
	for _, term := range terms {
		list, known := p.terms[term]
		if last := len(list) - 1; last >= 0 && list[last].document == d {
			list[last].count++
			continue
		}
		if !known {
			term = strings.Clone(term) // it is a part of its text, and would keep all of it in memory
			bytes += termOverhead + int64(len(term))
		}
		p.terms[term] = append(list, posting{d, 1})
		bytes += postingOverhead
	}
	d.terms = len(terms)
	p.documents++
	p.total += int64(len(terms))
	return bytes
}

// remove undoes add.
func (p *postings) remove(d *document, text string) {
	of := func(x posting) bool { return x.document == d }
	for _, term := range lexical.Terms(text) {
		list := slices.DeleteFunc(p.terms[term], of)
		if len(list) == 0 {
			delete(p.terms, term)
		} else {
			p.terms[term] = list
		}
	}
	p.documents--
	p.total -= int64(d.terms)
}

// searchPostings scores the documents that share a term with the query: BM25, divided by what a memory of average length
// would score that holds each term of the query once, and capped at 1. So the score is absolute: it does not depend on the
// other hits, and terms that no memory holds lower it. Several postings are searched as if they were one.
func searchPostings(query string, all ...*postings) map[*document]float64 {
	documents, total := 0, int64(0)
	for _, p := range all {
		documents += p.documents
		total += p.total
	}
	if documents == 0 {
		return nil
	}
	count, average := float64(documents), float64(total)/float64(documents)
	scores := map[*document]float64{}
	var best float64
	for _, term := range lexical.QueryTerms(query) {
		n := 0.0
		for _, p := range all {
			n += float64(len(p.terms[term]))
		}
		idf := lexical.IDF(n, count)
		best += idf
		for _, p := range all {
			for _, x := range p.terms[term] {
				scores[x.document] += idf * lexical.BM25(float64(x.count), float64(x.document.terms), average)
			}
		}
	}
	for d, score := range scores {
		scores[d] = min(1, score/best)
	}
	return scores
}
