// Package audit reports the state of a namespace's memories: how many are active and how many are history, which are duplicates, likely
// junk, stale, quarantined, or without a source. It only reads.
//
// A user with many memories is not compared all with all. Each memory is compared with at most maxPairs others that share one of its
// rarest words, and all comparisons of a user together cost at most maxWork. The report says what was skipped.
package audit
