// Package examples holds bots in other languages. It has no code of its own but the tests of these, which run them against
// the real program. The example in Go is in package client.
package examples
