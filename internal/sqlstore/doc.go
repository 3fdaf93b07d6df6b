// Package sqlstore keeps the domain's objects in a relational database: sessions, the queue, digests, numbered lists, settings, traces
// and counts. It works with any engine that implements package sqldb.
package sqlstore
