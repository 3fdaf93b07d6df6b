// Package secret keeps keys out of everything that people read.
package secret

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
)

const mask = "********"

// Value is a key or a token. However it is printed, logged or encoded, it shows as ********; Reveal is the one way to it.
// But fmt sees through it in an unexported field of a struct: what may be printed keeps it in an exported one or a closure.
type Value string

// String is the mask, or "" for an empty value.
func (v Value) String() string {
	if v == "" {
		return ""
	}
	return mask
}

// GoString is the mask.
func (v Value) GoString() string { return v.String() }

// Format writes the mask for every verb: fmt shows the value itself after a verb that is wrong for a text, such as %d.
func (v Value) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.String()) }

// MarshalText is the mask.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// LogValue is the mask.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// Reveal is the key itself, for the request that needs it.
func (v Value) Reveal() string { return string(v) }

// Redact removes the key from a text, for example from the URL in a transport error. It finds the key as it is and in the escaped forms of
// URLs and quoted strings.
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
