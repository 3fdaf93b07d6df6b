//go:build !race

package redact

import "github.com/memsidecar/memsidecar/internal/memory"

const (
	formatValues = 500                    // of each format
	longBytes    = memory.MaxContentBytes // of a hostile text
)
