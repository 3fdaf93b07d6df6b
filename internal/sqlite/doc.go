// Package sqlite is the database engine: the lock on the data folder, migrations, the single writer with group commit, the pool of
// readers, purge, backup, check and encryption. It implements the contract of package sqldb and does not depend on the stores. Storage
// keeps the database behind a circuit breaker, and reopens the file after a failure.
package sqlite
