package provider

import (
	"github.com/openai/openai-go/v3/option"

	"github.com/memsidecar/memsidecar/internal/secret"
)

// OpenAIOptions are the options of the SDK's services for the target. They are for openai.NewEmbeddingService and the
// like: openai.NewClient also reads the environment, which would be for another account. Retrying is left to those who
// know how long there is: the queue for dialogues, and nobody for a query. Without a key none is sent, as local servers
// like it.
func OpenAIOptions(t Target, key secret.Value) []option.RequestOption {
	options := []option.RequestOption{
		option.WithBaseURL(t.BaseURL), option.WithMaxRetries(0), option.WithHTTPClient(newHTTPClient("", "")),
	}
	if key == "" {
		return append(options, option.WithHeaderDel("Authorization"))
	}
	return append(options, option.WithAPIKey(key.Reveal()))
}
