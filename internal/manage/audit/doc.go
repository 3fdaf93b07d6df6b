// Package audit says in what state the memories of a namespace are: how many hold and how many are history, what is stored
// twice, what is likely junk, stale, in quarantine, or rests on nothing. It only reads.
//
// A user with many memories is not compared all with all. Each memory is compared with those that share one of its rarest
// words, at most maxPairs of them, and all comparisons of a user together cost at most maxWork; what was left out is said.
package audit
