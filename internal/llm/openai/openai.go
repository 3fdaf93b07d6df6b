// Package openai is the text model behind any OpenAI-compatible endpoint, through the official SDK.
package openai

import (
	"context"
	"fmt"
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
	target  provider.Target
	service openai.ChatCompletionService
	failure func(context.Context, error) error
	// format is how JSON is asked for. Endpoints differ in what they take; what one refuses is not asked of it again.
	format atomic.Int32
	// renamed: the endpoint wants the limit of an answer as max_completion_tokens, as OpenAI's reasoning models do.
	renamed atomic.Bool
}

var _ llm.Model = (*Model)(nil)

const (
	formatSchema int32 = iota
	formatObject
	formatNone
)

// New returns the model at the target. It makes no call.
func New(target provider.Target, key secret.Value) *Model {
	return &Model{
		target: target, service: openai.NewChatCompletionService(provider.OpenAIOptions(target, key)...),
		failure: provider.ErrorConverter(target, key),
	}
}

// Name implements llm.Model.
func (m *Model) Name() string { return m.target.Name() }

// Generate implements llm.Model. What an endpoint refuses of how it is asked is left out and the call repeated at once,
// and it is not asked that way again.
func (m *Model) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	for {
		format, renamed := m.format.Load(), m.renamed.Load()
		completion, err := m.service.New(ctx, m.params(r, format, renamed))
		if err == nil {
			return m.read(completion)
		}
		status, answered := provider.StatusOf(err)
		switch {
		case !answered:
		case status.Blocked():
			return llm.Response{}, fmt.Errorf("%s: %w", m.Name(), llm.ErrBlocked)
		case status.Rejects("json_validate_failed"): // Groq's words for an answer that does not keep to the schema
			return llm.Response{}, fmt.Errorf("%s: %w: it does not keep to the schema", m.Name(), llm.ErrNoAnswer)
		case !renamed && r.Generation.MaxOutputTokens > 0 && status.Rejects("max_completion_tokens"):
			m.renamed.Store(true)
			continue
		case r.Schema != nil && format < formatNone && status.Rejects("response_format", "json_schema", "json_object"):
			m.format.CompareAndSwap(format, format+1)
			continue
		}
		return llm.Response{}, m.failure(ctx, err)
	}
}

func (m *Model) params(r llm.Request, format int32, renamed bool) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:    m.target.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.ToValidUTF8(r.Prompt, "\uFFFD"))},
	}
	g := r.Generation
	if g.Temperature != nil {
		p.Temperature = openai.Float(*g.Temperature)
	}
	if g.TopP != nil {
		p.TopP = openai.Float(*g.TopP)
	}
	switch limit := openai.Int(int64(g.MaxOutputTokens)); {
	case g.MaxOutputTokens <= 0:
	case renamed:
		p.MaxCompletionTokens = limit
	default:
		p.MaxTokens = limit // the name that most endpoints know
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

func (m *Model) read(c *openai.ChatCompletion) (llm.Response, error) {
	resp := llm.Response{Usage: llm.Usage{InputTokens: c.Usage.PromptTokens, OutputTokens: c.Usage.CompletionTokens}}
	if len(c.Choices) == 0 {
		return resp, fmt.Errorf("%s: %w (it holds no choice)", m.Name(), llm.ErrNoAnswer)
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
