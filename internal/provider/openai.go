package provider

import (
	"github.com/openai/openai-go/v3/option"

	"github.com/memsidecar/memsidecar/internal/secret"
)

// OpenAIOptions returns SDK options for the target. Use them with openai.NewEmbeddingService and similar functions: openai.NewClient also
// reads environment variables, which may belong to another account. The SDK does not retry, because only its callers know how much time is
// left: the queue retries dialogues, and queries are not retried. Without a key none is sent, as local servers expect.
func OpenAIOptions(t Target, key secret.Value) []option.RequestOption {
	options := []option.RequestOption{
		option.WithBaseURL(t.BaseURL), option.WithMaxRetries(0), option.WithHTTPClient(newHTTPClient("", "")),
	}
	if key == "" {
		return append(options, option.WithHeaderDel("Authorization"))
	}
	return append(options, option.WithAPIKey(key.Reveal()))
}
