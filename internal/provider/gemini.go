package provider

import (
	"context"
	"errors"

	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"

	"github.com/memsidecar/memsidecar/internal/secret"
)

// GeminiClient is a client of the target. It makes no connection before the first call. Without a key the provider
// refuses the calls, and that is an error that waits for an operator.
//
// The SDK would put the key into the URL, where it is shown by errors and proxies; the HTTP client sends it in a header
// instead. (The SDK demands a key all the same, for a part of it that is not used here.)
func GeminiClient(t Target, key secret.Value) (*genai.Client, error) {
	c, err := genai.NewClient(context.Background(), option.WithEndpoint(t.BaseURL), option.WithAPIKey("sent-in-a-header"),
		option.WithHTTPClient(newHTTPClient("X-Goog-Api-Key", key)))
	if err != nil {
		return nil, errors.New(key.Redact(err.Error()))
	}
	return c, nil
}
