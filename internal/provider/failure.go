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
	// maxMessageRunes is how much of a provider's own words an error repeats.
	maxMessageRunes = 300
	// maxRetryAfter bounds what is read of what a provider asks for: a day is as long as any quota's. Its breaker has a bound of its own.
	maxRetryAfter = 24 * time.Hour
)

// Failure is what is known of a call that failed.
type Failure struct {
	Target     string // "provider/model"
	Err        error  // as the SDK returned it; never shown as it is
	Status     int    // HTTP status, 0 when there was no answer
	Message    string // the provider's own words
	Mendable   bool   // the message refuses a key, an account or a model, whatever the status
	Header     http.Header
	RetryAfter time.Duration // from the body; the header's counts when it is longer
	Key        secret.Value
}

// Failures returns a function that says what the errors of an SDK mean for a target and its key, as Failure.Error does. As
// a closure it keeps the key out of what holds it when that is printed.
func Failures(t Target, key secret.Value) func(ctx context.Context, err error) error {
	return func(ctx context.Context, err error) error {
		f := Failure{Target: t.Name(), Err: err, Key: key}
		if status, ok := StatusOf(err); ok {
			f.Status, f.Message, f.Header, f.RetryAfter = status.Status, status.Message, status.Header, status.RetryDelay
			f.Mendable = status.Mendable()
		}
		return f.Error(ctx)
	}
}

// Error says what the failure means: the context's error when the caller gave up, a *memory.TransientError for what may
// pass, a *memory.RefusedError for what will not. No text holds the key, and nothing that does is wrapped.
//
// What came without a status may pass: the network, a timeout, a connection that broke, and an answer that is not the
// API's, such as the page of a proxy.
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
	if !f.passes() {
		return &memory.RefusedError{Err: err}
	}
	return &memory.TransientError{Err: err, RetryAfter: min(max(f.RetryAfter, retryAfter(f.Header)), maxRetryAfter)}
}

// passes reports whether trying again later may help. What an operator can mend while the work waits counts: a key or a
// model that is refused, an endpoint that is not there, an account without money. It does not help when the request itself
// is wrong, because it would be the same request again.
func (f Failure) passes() bool {
	switch f.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return f.Mendable
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnavailableForLegalReasons:
		return false
	}
	return true
}

// reasonOf is the text of an error that is no answer. Of a request's URL its host says enough.
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

// readable is a text as one short line of printable characters, without the key.
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

// retryAfter reads the header of RFC 9110, section 10.2.3: seconds, of which some providers give fractions, or a date.
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

// IsFailure reports whether an error says that a provider is away, for breakers: a caller that gives up and an answer that
// cannot be used are none.
func IsFailure(err error) bool {
	transient, ok := errors.AsType[*memory.TransientError](err)
	return ok && transient != nil && !errors.Is(err, context.Canceled)
}

// Delay is how long a failure asks to leave the provider alone, for breakers.
func Delay(err error) time.Duration {
	if transient, ok := errors.AsType[*memory.TransientError](err); ok {
		return transient.RetryAfter
	}
	return 0
}

// Unusable is an answer that came and cannot be used. It does not pass by waiting.
func Unusable(t Target, err error) error {
	return &memory.RefusedError{Err: fmt.Errorf("%s: %w", t.Name(), err)}
}
