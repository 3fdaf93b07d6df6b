// Package secret keeps keys out of logs and other output.
package secret

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
)

const mask = "********"

// Value is a key or a token. Printed, logged or encoded it is ********; only Reveal returns it. But fmt prints it in an unexported
// field of a struct, so a printable struct must keep it in an exported field or a closure.
type Value string

// String returns the mask, or "" for an empty value.
func (v Value) String() string {
	if v == "" {
		return ""
	}
	return mask
}

// GoString returns the mask.
func (v Value) GoString() string { return v.String() }

// Format writes the mask for every verb: fmt would print the value itself for a verb that is wrong for a string, such as %d.
func (v Value) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.String()) }

// MarshalText returns the mask.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// LogValue returns the mask.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// Reveal returns the key, for the request that needs it.
func (v Value) Reveal() string { return string(v) }

// Redact removes the key from a text, for example from the URL in a transport error. It also finds the key escaped in URLs and quoted
// strings.
func (v Value) Redact(text string) string {
	key := strings.TrimSpace(string(v))
	if key == "" {
		return text
	}
	quoted := strconv.Quote(key)
	for _, form := range []string{key, url.QueryEscape(key), url.PathEscape(key), quoted[1 : len(quoted)-1]} {
		text = strings.ReplaceAll(text, form, mask)
	}
	return text
}
