// Package local is the vector store on this machine. SQLite rows are authoritative. Searches use an index in memory per user: a chromem
// collection for the vectors and postings for the keywords. An index is loaded when its user is first searched, updated by every write,
// and evicted least recently used under a memory budget.
package local
