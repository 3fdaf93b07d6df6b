// Package gemini is Google's text model, through generative-ai-go. That SDK is no longer maintained, so it stays inside
// this package and its embedding counterpart.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/generative-ai-go/genai"

	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
)

// Model implements llm.Model.
type Model struct {
	target provider.Target
	key    secret.Value
	client *genai.Client
}

var _ llm.Model = (*Model)(nil)

// New returns the model at the target.
func New(target provider.Target, key secret.Value) (*Model, error) {
	client, err := provider.GeminiClient(target, key)
	if err != nil {
		return nil, err
	}
	return &Model{target: target, key: key, client: client}, nil
}

// Name implements llm.Model.
func (m *Model) Name() string { return m.target.Name() }

// Generate implements llm.Model. A finish reason that the SDK does not know, or the end of the tokens, is no error when
// there is a text: whether it can be used shows when it is read.
func (m *Model) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	model := m.client.GenerativeModel(m.target.Model)
	if g := r.Generation; true {
		if g.Temperature != nil {
			model.SetTemperature(float32(*g.Temperature))
		}
		if g.TopP != nil {
			model.SetTopP(float32(*g.TopP))
		}
		if g.MaxOutputTokens > 0 {
			model.SetMaxOutputTokens(int32(g.MaxOutputTokens)) //nolint:gosec // the configuration allows a million at most
		}
	}
	if r.Schema != nil {
		model.ResponseMIMEType = "application/json"
		model.ResponseSchema = schemaOf(r.Schema)
	}
	answer, err := model.GenerateContent(ctx, genai.Text(r.Prompt))
	if blocked, ok := errors.AsType[*genai.BlockedError](err); ok {
		return llm.Response{}, fmt.Errorf("%s: %w (%s)", m.Name(), llm.ErrBlocked, blocked.Error())
	}
	if err != nil {
		return llm.Response{}, provider.GeminiFailure(m.target, m.key, err).Error(ctx)
	}
	var resp llm.Response
	if u := answer.UsageMetadata; u != nil {
		resp.Usage = llm.Usage{InputTokens: int64(u.PromptTokenCount), OutputTokens: int64(u.CandidatesTokenCount)}
	}
	var text strings.Builder
	for _, candidate := range answer.Candidates[:min(1, len(answer.Candidates))] {
		if candidate.Content == nil {
			continue
		}
		for _, part := range candidate.Content.Parts {
			if t, ok := part.(genai.Text); ok {
				text.WriteString(string(t))
			}
		}
	}
	if resp.Text = text.String(); strings.TrimSpace(resp.Text) == "" {
		return resp, fmt.Errorf("%s: %w", m.Name(), llm.ErrNoAnswer)
	}
	return resp, nil
}

// schemaOf turns a JSON schema into the SDK's form of it: objects, arrays, strings with enums, numbers, booleans.
func schemaOf(s map[string]any) *genai.Schema {
	types := map[any]genai.Type{
		"object": genai.TypeObject, "array": genai.TypeArray, "string": genai.TypeString, "number": genai.TypeNumber,
		"integer": genai.TypeInteger, "boolean": genai.TypeBoolean,
	}
	out := &genai.Schema{Type: types[s["type"]], Required: textsOf(s["required"]), Enum: textsOf(s["enum"])}
	out.Description, _ = s["description"].(string)
	if len(out.Enum) > 0 {
		out.Format = "enum"
	}
	if items, ok := s["items"].(map[string]any); ok {
		out.Items = schemaOf(items)
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		out.Properties = map[string]*genai.Schema{}
		for name, property := range properties {
			if p, ok := property.(map[string]any); ok {
				out.Properties[name] = schemaOf(p)
			}
		}
	}
	return out
}

// textsOf reads a list of texts, however it was written in Go.
func textsOf(list any) (texts []string) {
	switch list := list.(type) {
	case []string:
		return list
	case []any:
		for _, v := range list {
			if s, ok := v.(string); ok {
				texts = append(texts, s)
			}
		}
	}
	return texts
}
