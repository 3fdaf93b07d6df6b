//go:build race

package redact

// The race detector makes everything ten times slower, and finds nothing more in more of the same.
const (
	formatValues = 50
	longBytes    = 16 << 10
)
