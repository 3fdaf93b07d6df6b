package retry

import (
	"context"
	"errors"
	"time"

	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Through makes a call through a provider's breaker. A delay that the provider asks for applies to the breaker, not to the caller's work. A
// *memory.TransientError says whether the breaker is closed, and for how long it rejects calls.
func Through(b *breaker.Breaker, call func() error) error {
	err := b.Do(call)
	if err == nil {
		return nil
	}
	if open, refused := errors.AsType[*breaker.OpenError](err); refused {
		return &memory.TransientError{Err: open, Unavailable: true, RetryAfter: remaining(open.Until)}
	}
	if _, transient := errors.AsType[*memory.TransientError](err); !transient || errors.Is(err, context.Canceled) {
		return err
	}
	return &memory.TransientError{Err: err, Unavailable: b.Status().State != breaker.Closed, RetryAfter: remaining(b.Until())}
}

// remaining returns the time until then; 0 for the zero time.
func remaining(until time.Time) time.Duration {
	if until.IsZero() {
		return 0
	}
	return max(0, time.Until(until))
}
