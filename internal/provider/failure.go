package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/secret"
)

// maxMessageRunes is how much of a provider's own words an error repeats.
const maxMessageRunes = 300

// Failure is what is known of a call that failed.
type Failure struct {
	Target     string // "provider/model"
	Err        error  // as the SDK returned it; never shown as it is
	Status     int    // HTTP status, 0 when there was no answer
	Message    string // the provider's own words
	Header     http.Header
	RetryAfter time.Duration // from the body; the header's counts when it is longer
	Key        secret.Value
}

// Error says what the failure means: the context's error when the caller gave up, a *memory.TransientError for what may
// pass, a *memory.RefusedError for what will not. No text holds the key, and nothing that does is wrapped.
func (f Failure) Error(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text := f.Message
	if text == "" && f.Err != nil && f.Status == 0 {
		text = f.Err.Error()
	}
	text = strings.Join(strings.Fields(f.Key.Redact(text)), " ")
	if r := []rune(text); len(r) > maxMessageRunes {
		text = string(r[:maxMessageRunes]) + "…"
	}
	if f.Status != 0 {
		text = strings.TrimSuffix(fmt.Sprintf("HTTP %d %s: %s", f.Status, http.StatusText(f.Status), text), ": ")
	}
	err := fmt.Errorf("%s: %s", f.Target, text)
	if !f.passes() {
		return &memory.RefusedError{Err: err}
	}
	return &memory.TransientError{Err: err, RetryAfter: max(f.RetryAfter, retryAfter(f.Header))}
}

// passes reports whether trying again later may help. A key or a name that is refused counts, since an operator can mend
// that while the work waits.
func (f Failure) passes() bool {
	switch f.Status {
	case 0, http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return f.Status >= 500
}

// retryAfter reads the header of RFC 9110, section 10.2.3: seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// IsFailure reports whether an error says that a provider is away, for breakers: a caller that gives up and an answer that
// cannot be used are none.
func IsFailure(err error) bool {
	transient, ok := errors.AsType[*memory.TransientError](err)
	return ok && transient != nil
}

// Unusable is an answer that came and cannot be used.
func Unusable(t Target, err error) error {
	return &memory.RefusedError{Err: fmt.Errorf("%s: %w", t.Name(), err)}
}
