package main

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// An invalid expression would otherwise be noticed only when a message needs it.
func TestRegularExpressionsCompile(t *testing.T) {
	t.Parallel()
	n, invalid := lazyregexp.Check()
	for _, err := range invalid {
		t.Error(err)
	}
	if n < 250 {
		t.Errorf("checked only %d expressions", n)
	}
}
