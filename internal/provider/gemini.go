package provider

import (
	"context"
	"errors"
	"sync"

	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"

	"github.com/memsidecar/memsidecar/internal/secret"
)

// geminiClients are the clients of this process by endpoint and key. Each of the SDK's clients also begins a gRPC
// connection for a part of it that is not used here, and has no way to close that: four goroutines that never end. So a
// client is made once, however often a model is put together again while its provider is away.
var geminiClients = struct {
	sync.Mutex
	byAccess map[geminiAccess]*genai.Client
}{byAccess: map[geminiAccess]*genai.Client{}}

type geminiAccess struct{ baseURL, key string }

// GeminiClient is a client of the target, the same one for the same endpoint and key. It sends nothing before the first
// call. Without a key the provider refuses the calls, and that is an error that waits for an operator.
//
// The SDK would put the key into the URL, where errors and proxies show it; the HTTP client sends it in a header instead.
// (The SDK demands a key all the same, for the part that is not used.)
func GeminiClient(t Target, key secret.Value) (*genai.Client, error) {
	geminiClients.Lock()
	defer geminiClients.Unlock()
	access := geminiAccess{t.BaseURL, key.Reveal()}
	if c := geminiClients.byAccess[access]; c != nil {
		return c, nil
	}
	c, err := genai.NewClient(context.Background(), option.WithEndpoint(t.BaseURL), option.WithAPIKey("sent-in-a-header"),
		option.WithHTTPClient(newHTTPClient("X-Goog-Api-Key", key)))
	if err != nil {
		return nil, errors.New(key.Redact(err.Error()))
	}
	geminiClients.byAccess[access] = c
	return c, nil
}
