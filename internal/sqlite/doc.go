// Package sqlite is the database engine: the lock on the data folder, migrations, the single writer with group commit, the pool of
// readers, purge, backup, check and encryption. It implements the contract of package sqldb and knows no store. Storage keeps the database
// behind a circuit breaker and opens the file again when it could not be opened or broke.
package sqlite
