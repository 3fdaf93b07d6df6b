package provider

import (
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/memsidecar/memsidecar/internal/secret"
)

// OpenAIOptions are the options of a client of the target. Retrying is left to those who know how long there is: the queue
// for dialogues, and nobody for a query.
func OpenAIOptions(t Target, key secret.Value) []option.RequestOption {
	token := key.Reveal()
	if token == "" {
		token = "none" // the SDK wants one, and local servers ignore it
	}
	return []option.RequestOption{
		option.WithBaseURL(t.BaseURL), option.WithAPIKey(token), option.WithMaxRetries(0),
		// The SDK reads these from the environment, where they would be for another account.
		option.WithHeaderDel("OpenAI-Organization"), option.WithHeaderDel("OpenAI-Project"),
	}
}

// OpenAIFailure is what an error of the SDK means.
func OpenAIFailure(t Target, key secret.Value, err error) Failure {
	f := Failure{Target: t.Name(), Err: err, Key: key}
	if e, ok := errors.AsType[*openai.Error](err); ok {
		f.Status, f.Message = e.StatusCode, e.Message
		if f.Message == "" {
			f.Message = e.RawJSON()
		}
		if e.Response != nil {
			f.Header = e.Response.Header
		} else {
			f.Header = http.Header{}
		}
	}
	return f
}
