// Package secret keeps keys out of everything that people read.
package secret

import (
	"log/slog"
	"strings"
)

const mask = "********"

// Value is a key or a token. However it is printed, logged or encoded, it shows as ********; Reveal is the one way to it.
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

// MarshalText is the mask.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// LogValue is the mask.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// Reveal is the key itself, for the request that needs it.
func (v Value) Reveal() string { return string(v) }

// Redact replaces the key in a text, for example in the URL of a transport error.
func (v Value) Redact(text string) string {
	if v == "" {
		return text
	}
	return strings.ReplaceAll(text, string(v), mask)
}
