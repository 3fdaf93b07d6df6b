// Package memory holds the domain: the types, rules and errors that every other package speaks in. It imports only the
// standard library, so that adapters can depend on it and not on each other.
package memory
