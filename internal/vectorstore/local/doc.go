// Package local is the vector store on this machine: SQLite rows are the truth, and what is searched is an index in
// memory, one a user: a chromem collection for the vectors and postings for the keywords. An index is loaded when its
// user is first searched, kept up to date by every write, and evicted least recently used under a memory budget.
package local
