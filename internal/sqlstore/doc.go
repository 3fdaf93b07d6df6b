// Package sqlstore keeps the objects of the domain in a relational database: sessions, the queue, digests, numbered lists, settings, traces and
// what is counted. It works with any engine that implements package sqldb.
package sqlstore
