package provider

import (
	"context"
	"errors"
	"sync"

	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"

	"github.com/memsidecar/memsidecar/internal/secret"
)

// geminiClients are the clients of this process by endpoint and key. Each client of the SDK also opens a gRPC connection that is not used
// here and cannot be closed: four goroutines that never end. So clients are shared, however often a model is created again while its
// provider is unavailable.
var geminiClients = struct {
	sync.Mutex
	byAccess map[geminiAccess]*genai.Client
}{byAccess: map[geminiAccess]*genai.Client{}}

type geminiAccess struct{ baseURL, key string }

// GeminiClient returns the client of the target. Targets with the same endpoint and key share one. It sends nothing before the first call.
// Without a key the provider rejects the calls, and the work is postponed until an operator adds one.
//
// The SDK would put the key into the URL, where errors and proxies show it; the HTTP client sends it in a header instead. (The SDK still
// requires a key, for the unused gRPC connection.)
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
