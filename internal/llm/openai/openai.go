// Package openai is the text model behind any OpenAI-compatible endpoint, through the official SDK.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
)

// Model implements llm.Model.
type Model struct {
	target provider.Target
	key    secret.Value
	client openai.Client
	// format is how JSON is asked for. Endpoints differ in what they take; what one refuses is not asked of it again.
	format atomic.Int32
}

var _ llm.Model = (*Model)(nil)

const (
	formatSchema int32 = iota
	formatObject
	formatNone
)

// New returns the model at the target.
func New(target provider.Target, key secret.Value) *Model {
	return &Model{target: target, key: key, client: openai.NewClient(provider.OpenAIOptions(target, key)...)}
}

// Name implements llm.Model.
func (m *Model) Name() string { return m.target.Name() }

// Generate implements llm.Model.
func (m *Model) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	for {
		format := m.format.Load()
		completion, err := m.client.Chat.Completions.New(ctx, m.params(r, format))
		if err == nil {
			return m.read(completion)
		}
		if r.Schema != nil && format < formatNone && refusesFormat(err) {
			m.format.CompareAndSwap(format, format+1)
			continue
		}
		return llm.Response{}, provider.OpenAIFailure(m.target, m.key, err).Error(ctx)
	}
}

func (m *Model) params(r llm.Request, format int32) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:    m.target.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(r.Prompt)},
	}
	if g := r.Generation; true {
		if g.Temperature != nil {
			p.Temperature = openai.Float(*g.Temperature)
		}
		if g.TopP != nil {
			p.TopP = openai.Float(*g.TopP)
		}
		if g.MaxOutputTokens > 0 {
			p.MaxTokens = openai.Int(int64(g.MaxOutputTokens)) // the name that all endpoints know
		}
	}
	switch {
	case r.Schema == nil || format == formatNone:
	case format == formatObject:
		p.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	default:
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: r.SchemaName, Schema: r.Schema},
		}
	}
	return p
}

// refusesFormat reports whether the endpoint does not take the response format it was asked for.
func refusesFormat(err error) bool {
	e, ok := errors.AsType[*openai.Error](err)
	if !ok || e.StatusCode != http.StatusBadRequest && e.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	text := strings.ToLower(e.Message + " " + e.Param + " " + e.RawJSON())
	return strings.Contains(text, "response_format") || strings.Contains(text, "json_schema") || strings.Contains(text, "json_object")
}

func (m *Model) read(c *openai.ChatCompletion) (llm.Response, error) {
	resp := llm.Response{Usage: llm.Usage{InputTokens: c.Usage.PromptTokens, OutputTokens: c.Usage.CompletionTokens}}
	if len(c.Choices) == 0 {
		return resp, fmt.Errorf("%s: %w", m.Name(), llm.ErrNoAnswer)
	}
	choice := c.Choices[0]
	resp.Text = choice.Message.Content
	switch {
	case choice.FinishReason == "content_filter" || choice.Message.Refusal != "":
		return resp, fmt.Errorf("%s: %w", m.Name(), llm.ErrBlocked)
	case strings.TrimSpace(resp.Text) == "":
		return resp, fmt.Errorf("%s: %w (finish reason %q)", m.Name(), llm.ErrNoAnswer, choice.FinishReason)
	}
	return resp, nil
}
