package provider

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/generative-ai-go/genai"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/memsidecar/memsidecar/internal/secret"
)

// GeminiClient is a client of the target. It makes no connection before the first call.
func GeminiClient(t Target, key secret.Value) (*genai.Client, error) {
	token := key.Reveal()
	if token == "" {
		token = "none" // the SDK wants one; the provider refuses it, and that is an error that waits for an operator
	}
	c, err := genai.NewClient(context.Background(), option.WithAPIKey(token), option.WithEndpoint(t.BaseURL))
	if err != nil {
		return nil, errors.New(key.Redact(err.Error()))
	}
	return c, nil
}

// GeminiFailure is what an error of the SDK means. The SDK puts the key into the URL, and the URL into errors.
func GeminiFailure(t Target, key secret.Value, err error) Failure {
	f := Failure{Target: t.Name(), Err: err, Key: key}
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		f.Status, f.Message, f.Header = e.Code, e.Message, e.Header
		if f.Message == "" {
			f.Message = messageOf(e.Body)
		}
	}
	if e, ok := errors.AsType[*apierror.APIError](err); ok {
		if f.Status == 0 && e.HTTPCode() > 0 {
			f.Status = e.HTTPCode()
		}
		if retry := e.Details().RetryInfo; retry != nil {
			f.RetryAfter = retry.GetRetryDelay().AsDuration()
		}
	}
	return f
}

// messageOf reads the provider's own words out of an error's body.
func messageOf(body string) string {
	var parsed struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(body), &parsed) == nil && parsed.Error.Message != "" {
		return parsed.Error.Message
	}
	return body
}
