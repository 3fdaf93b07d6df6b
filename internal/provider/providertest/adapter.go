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

// Adapter is what every adapter of a provider is tested by, whatever it asks for.
type Adapter[A any] struct {
	Name string // provider/model, with which its errors begin
	Key  string // that Open gives it
	Open func(t *testing.T, endpoint string) A
	// Call makes one call. A limit above 0 is how long it may wait for the answer, as the decorator of its contract sees to.
	Call func(ctx context.Context, a A, limit time.Duration) error
}

// Failure is an answer that is none, and what the adapter makes of it.
type Failure struct {
	Answer http.HandlerFunc
	Passes bool          // waiting may help
	After  time.Duration // and for so long, as the provider says
	Asked  int           // how often, when it is not once: repeating is the queue's business
}

// Failures checks what comes of each.
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

// Hang checks that no answer is a failure of the provider when the limit is over, and none when the caller has no more time.
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
	if text := fmt.Sprintf("%v %+v %#v", adapter, adapter, adapter); strings.Contains(text, a.Key[len(a.Key)/2:]) { // part of it is too much, too
		t.Errorf("printed as %s", text)
	}
}
