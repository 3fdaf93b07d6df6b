// Package lexical turns text into index terms, for every language: the terms of keyword search (BM25) and the features
// of the local embedder. It also guesses a text's language.
//
// Scripts that put no spaces between words (Chinese, Japanese, Thai, …) and Korean, which glues particles to them, give
// characters and pairs of neighbouring characters; so no dictionary can be out of date. All other scripts give the words
// of Unicode's segmentation (UAX #29), stemmed when they are plain a to z by Snowball's English stemmer, with dates,
// addresses, and the parts of compounds beside them. Case, width and Latin accents are folded.
//
// Traditional and simplified characters are not unified: 體 does not find 体. Stemming other languages than English is
// not attempted: a French plural finds its singular only through the embedder's character n-grams.
//
// The pieces are Unicode tables and a stemmer that others keep (rivo/uniseg, x/text, blevesearch/snowballstem) rather
// than Bleve's analysers. Those took 12.9 µs and 490 allocations for a Chinese statement of 60 characters, dropped Thai,
// kept Korean words whole, and import Bleve's registry and with it bbolt, roaring and a geometry library.
package lexical
