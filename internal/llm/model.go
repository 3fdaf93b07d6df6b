// Package llm is the contract of a text model: one prompt in, one text out. The adapters gemini/ and openai/ each wrap
// one SDK; timeout, circuit breaker and accounting are decorators, one concern each.
package llm

import (
	"context"
	"errors"
)

// Request asks a model for one text.
type Request struct {
	Prompt string
	// Schema is the JSON schema of the answer, or nil for free text. A provider that cannot enforce it is asked for JSON
	// all the same; the caller validates what comes back.
	Schema     map[string]any
	SchemaName string // letters, digits, "_" and "-"; some providers want one
	Generation Generation
}

// Generation are the settings of the sampling; nil and zero leave the provider's default.
type Generation struct {
	Temperature     *float64 // 0 to 2
	TopP            *float64 // 0 to 1
	MaxOutputTokens int
}

// Response is a model's answer.
type Response struct {
	Text  string // never empty
	Usage Usage
}

// Usage is what a call cost, in the provider's tokens; 0 when the provider does not say.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
}

// Errors of a working provider whose answer cannot be used. Waiting does not help. Circuit breakers ignore them, because the provider
// did not fail.
var (
	// ErrBlocked means that the provider refuses to answer this prompt, for example for safety.
	ErrBlocked = errors.New("the model refused to answer")
	// ErrNoAnswer means that the answer holds no text: no candidate, or none that could be read.
	ErrNoAnswer = errors.New("the model gave no answer")
)

// Model is a text model.
type Model interface {
	// Name is "provider/model", for example "gemini/gemini-flash-latest".
	Name() string
	// Generate is safe for concurrent use. A failure that may pass (rate limit, 5xx, network, timeout, and a key or a
	// model name that the provider refuses, since an operator can mend that while the work waits) is a
	// *memory.TransientError with the delay the provider asked for. ErrBlocked and ErrNoAnswer are wrapped. The caller's
	// own cancellation is the context's error. No error's text holds the key.
	Generate(ctx context.Context, r Request) (Response, error)
}
