package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/secret"
)

const (
	// maxMessageRunes is how much of a provider's message an error repeats.
	maxMessageRunes = 300
	// maxRetryAfter limits the delay that a provider asks for: no quota lasts longer than a day. Breakers have a lower limit.
	maxRetryAfter = 24 * time.Hour
)

// Failure describes a failed call.
type Failure struct {
	Target      string // "provider/model"
	Err         error  // as the SDK returned it; never shown unchanged
	Status      int    // HTTP status, 0 when there was no answer
	Message     string // the provider's message
	Correctable bool   // the message rejects a key, an account or a model, with any status
	Header      http.Header
	RetryAfter  time.Duration // from the body; a longer delay in the header has precedence
	Key         secret.Value
}

// ErrorConverter returns a function that converts the errors of an SDK, as Failure.Error does. It is a closure so that printing the struct that
// holds it does not show the key.
func ErrorConverter(t Target, key secret.Value) func(ctx context.Context, err error) error {
	return func(ctx context.Context, err error) error {
		f := Failure{Target: t.Name(), Err: err, Key: key}
		if status, ok := StatusOf(err); ok {
			f.Status, f.Message, f.Header, f.RetryAfter = status.Status, status.Message, status.Header, status.RetryDelay
			f.Correctable = status.Correctable()
		}
		return f.Error(ctx)
	}
}

// Error converts the failure: to the context's error when the caller cancelled, to a *memory.TransientError when a retry may help,
// otherwise to a *memory.RefusedError. No text contains the key, and no error that contains it is wrapped.
//
// Failures without a status are transient: network errors, timeouts, broken connections, and answers that are not from the API, such as a
// proxy's page.
func (f Failure) Error(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text := f.Message
	if text == "" && f.Err != nil && f.Status == 0 {
		text = reasonOf(f.Err)
	}
	text = readable(f.Key, text)
	if f.Status != 0 {
		text = strings.TrimSuffix(fmt.Sprintf("HTTP %d %s: %s", f.Status, http.StatusText(f.Status), text), ": ")
	}
	err := fmt.Errorf("%s: %s", f.Target, text)
	if !f.isTransient() {
		return &memory.RefusedError{Err: err}
	}
	return &memory.TransientError{Err: err, RetryAfter: min(max(f.RetryAfter, retryAfter(f.Header)), maxRetryAfter)}
}

// isTransient reports whether a retry may help. That includes what an operator can correct while the work is pending: a rejected key or model, a
// wrong endpoint, an account without money. A retry does not help when the request itself is wrong.
func (f Failure) isTransient() bool {
	switch f.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return f.Correctable
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnavailableForLegalReasons:
		return false
	}
	return true
}

// reasonOf returns the text of an error without an answer. Of the request's URL it shows only the host.
func reasonOf(err error) string {
	e, ok := errors.AsType[*url.Error](err)
	if !ok {
		return "the answer cannot be read: " + err.Error()
	}
	if u, parse := url.Parse(e.URL); parse == nil {
		return fmt.Sprintf("no answer from %s: %s", u.Host, e.Err.Error())
	}
	return e.Err.Error()
}

// readable returns a text as one short line of printable characters, without the key.
func readable(key secret.Value, text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(key.Redact(text), "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxMessageRunes {
		text = string(r[:maxMessageRunes]) + "…"
	}
	return text
}

// retryAfter parses the header of RFC 9110, section 10.2.3: seconds, which some providers send as fractions, or a date.
func retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return time.Duration(max(0, min(seconds, maxRetryAfter.Seconds())) * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// IsFailure reports, for breakers, whether an error means that a provider is unavailable. Cancelled calls and unusable answers do not.
func IsFailure(err error) bool {
	transient, ok := errors.AsType[*memory.TransientError](err)
	return ok && transient != nil && !errors.Is(err, context.Canceled)
}

// RetryDelay returns, for breakers, the delay before a retry that a failure asks for.
func RetryDelay(err error) time.Duration {
	if transient, ok := errors.AsType[*memory.TransientError](err); ok {
		return transient.RetryAfter
	}
	return 0
}

// UnusableAnswer returns the error for an answer that cannot be used. A retry does not help.
func UnusableAnswer(t Target, err error) error {
	return &memory.RefusedError{Err: fmt.Errorf("%s: %w", t.Name(), err)}
}
