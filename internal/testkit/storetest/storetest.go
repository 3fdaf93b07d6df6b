// Package storetest holds what the conformance suites of the stores have in common.
package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Calls are calls of the methods of a store, by the method's name.
type Calls map[string]func(ctx context.Context) error

// CheckUnavailable checks that each call returns memory.ErrUnavailable. The caller has closed the storage.
func CheckUnavailable(t *testing.T, calls Calls) {
	t.Helper()
	for name, call := range calls {
		if err := call(t.Context()); !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("%s on a closed storage: %v", name, err)
		}
	}
}

// CheckCancelled makes each call with a context that was cancelled. A call may complete all the same. If it does not, its
// error is context.Canceled, and never memory.ErrUnavailable: a caller that went away says nothing about the storage.
func CheckCancelled(t *testing.T, calls Calls) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls {
		if err := call(ctx); err != nil && (!errors.Is(err, context.Canceled) || errors.Is(err, memory.ErrUnavailable)) {
			t.Errorf("%s with a cancelled context: %v", name, err)
		}
	}
}

// Texts are texts that a store must return byte by byte: empty, white space, several scripts, quotes and wildcards of SQL, two
// forms of the same letter, and a long one.
func Texts() []string {
	return []string{
		"",
		" \t\r\n ",
		"我喜欢喝茶 🍵 👩‍👩‍👧",
		"It's \"quoted\" 50 % of_the time; -- \\ DROP TABLE users",
		"<b>&amp;</b> \\u0000 \u2028",
		"e\u0301 is not \u00e9, ﬁ is not fi, İ is not i",
		"שלום नमस्ते \u202eabc",
		strings.Repeat("茶 and 🍵 ", 4000),
	}
}
