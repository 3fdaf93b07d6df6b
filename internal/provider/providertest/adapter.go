package providertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/provider"
)

// Adapter has the tests that every adapter of a provider must pass.
type Adapter[A any] struct {
	Name string // provider/model: the prefix of its errors
	Key  string // the key with which Open opens it
	Open func(t *testing.T, endpoint string) A
	// Call makes one call. A limit above 0 is its timeout, as set by the decorator of its contract.
	Call func(ctx context.Context, a A, limit time.Duration) error
}

// Failure is a failed answer and the error that is expected.
type Failure struct {
	Answer http.HandlerFunc
	Passes bool          // whether a retry may help
	After  time.Duration // the delay that the provider asks for
	Asked  int           // number of requests if not one; the queue retries, not the adapter
}

// Failures checks the error for each failed answer.
func (a Adapter[A]) Failures(t *testing.T, failures map[string]Failure) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			s := Play(t, f.Answer)
			err := a.Call(t.Context(), a.Open(t, s.URL), 0)
			var transient *memory.TransientError
			if err == nil || errors.As(err, &transient) != f.Passes || transient != nil && transient.RetryAfter != f.After {
				t.Errorf("%#v", err)
			}
			if n := len(s.Requests()); n != max(1, f.Asked) {
				t.Errorf("asked %d times", n)
			}
			if err != nil && !strings.HasPrefix(err.Error(), a.Name+": ") {
				t.Errorf("%q does not begin with the model's name", err)
			}
		})
	}
}

// Hang checks that a missing answer is a failure of the provider when the timeout ends, and not when the caller's deadline ends.
func (a Adapter[A]) Hang(t *testing.T) {
	adapter := a.Open(t, Play(t, Wait).URL)
	err := a.Call(t.Context(), adapter, 20*time.Millisecond)
	if !provider.IsFailure(err) || !strings.Contains(err.Error(), a.Name+": no answer within 20ms") {
		t.Errorf("our own deadline: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = a.Call(ctx, adapter, time.Hour)
	if !errors.Is(err, context.DeadlineExceeded) || provider.IsFailure(err) {
		t.Errorf("the caller's deadline: %v", err)
	}
}

// HidesKey checks that printing it does not show the key.
func (a Adapter[A]) HidesKey(t *testing.T) {
	adapter := a.Open(t, "http://127.0.0.1:1")
	if text := fmt.Sprintf("%v %+v %#v", adapter, adapter, adapter); strings.Contains(text, a.Key[len(a.Key)/2:]) { // part of it is too much
		t.Errorf("printed as %s", text)
	}
}
