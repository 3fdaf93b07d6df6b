//go:build race

package redact

// The race detector makes the tests ten times slower, and more values would find nothing new.
const (
	formatValues = 50
	longBytes    = 16 << 10
)
