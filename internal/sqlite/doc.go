// Package sqlite owns the one database file: the lock on its folder, migrations, the single writer with group commit,
// the pool of readers, and the queries of everything that is not a vector store. Storage keeps all of that behind a
// circuit breaker and opens the file again by itself when it could not be opened or broke.
package sqlite
