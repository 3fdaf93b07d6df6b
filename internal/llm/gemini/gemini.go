// Package gemini is Google's text model, through generative-ai-go. That SDK is no longer maintained, so it stays inside
// this package, its embedding counterpart and the client that both get from internal/provider.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/generative-ai-go/genai"

	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/secret"
)

// Reasons to end an answer that the API has (google.ai.generativelanguage.v1beta.Candidate.FinishReason) and the SDK has
// no names for.
const (
	finishBlocklist  genai.FinishReason = 7
	finishProhibited genai.FinishReason = 8
	finishPersonal   genai.FinishReason = 9
)

// Model implements llm.Model.
type Model struct {
	target  provider.Target
	client  *genai.Client
	failure func(context.Context, error) error
}

var _ llm.Model = (*Model)(nil)

// New returns the model at the target. It makes no call.
func New(target provider.Target, key secret.Value) (*Model, error) {
	client, err := provider.GeminiClient(target, key)
	if err != nil {
		return nil, err
	}
	return &Model{target: target, client: client, failure: provider.ErrorConverter(target, key)}, nil
}

// Name implements llm.Model.
func (m *Model) Name() string { return m.target.Name() }

// Generate implements llm.Model. A finish reason that the SDK does not know, or the end of the tokens, is no error when
// there is a text: whether it can be used shows when it is read. The safety settings are the provider's.
func (m *Model) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	answer, err := m.model(r).GenerateContent(ctx, genai.Text(strings.ToValidUTF8(r.Prompt, "\uFFFD")))
	if blocked, ok := errors.AsType[*genai.BlockedError](err); ok {
		return llm.Response{}, fmt.Errorf("%s: %w (%s)", m.Name(), llm.ErrBlocked, blocked.Error())
	}
	if err != nil {
		return llm.Response{}, m.failure(ctx, err)
	}
	var resp llm.Response
	if u := answer.UsageMetadata; u != nil {
		// The total also counts what the model thought, which is paid for as output and which the SDK does not know.
		resp.Usage = llm.Usage{
			InputTokens:  int64(u.PromptTokenCount),
			OutputTokens: int64(max(u.CandidatesTokenCount, u.TotalTokenCount-u.PromptTokenCount)),
		}
	}
	if len(answer.Candidates) == 0 {
		if answer.PromptFeedback != nil { // for a reason that the SDK does not know
			return resp, fmt.Errorf("%s: %w (prompt)", m.Name(), llm.ErrBlocked)
		}
		return resp, fmt.Errorf("%s: %w (it holds no candidate)", m.Name(), llm.ErrNoAnswer)
	}
	candidate := answer.Candidates[0]
	resp.Text = textOf(candidate)
	if strings.TrimSpace(resp.Text) != "" {
		return resp, nil
	}
	switch candidate.FinishReason { //nolint:exhaustive // and there are some that the SDK does not know
	case finishBlocklist, finishProhibited, finishPersonal:
		return resp, fmt.Errorf("%s: %w (%s)", m.Name(), llm.ErrBlocked, candidate.FinishReason)
	}
	return resp, fmt.Errorf("%s: %w (%s)", m.Name(), llm.ErrNoAnswer, candidate.FinishReason)
}

func (m *Model) model(r llm.Request) *genai.GenerativeModel {
	model := m.client.GenerativeModel(m.target.Model)
	g := r.Generation
	if g.Temperature != nil {
		model.SetTemperature(float32(*g.Temperature))
	}
	if g.TopP != nil {
		model.SetTopP(float32(*g.TopP))
	}
	if g.MaxOutputTokens > 0 {
		model.SetMaxOutputTokens(int32(min(g.MaxOutputTokens, math.MaxInt32)))
	}
	if r.Schema != nil {
		model.ResponseMIMEType = "application/json"
		model.ResponseSchema = schemaOf(r.Schema)
	}
	return model
}

func textOf(c *genai.Candidate) string {
	if c.Content == nil {
		return ""
	}
	var text strings.Builder
	for _, part := range c.Content.Parts {
		if t, ok := part.(genai.Text); ok {
			text.WriteString(string(t))
		}
	}
	return text.String()
}

// schemaOf turns a JSON schema into the SDK's form of it: type (also with "null" as the other one), properties, required,
// items, enum and description. What else a schema says, such as additionalProperties, the SDK cannot say.
func schemaOf(s map[string]any) *genai.Schema {
	out := &genai.Schema{Required: textsOf(s["required"]), Enum: textsOf(s["enum"])}
	out.Description, _ = s["description"].(string)
	for _, name := range append(textsOf(s["type"]), textsOf([]any{s["type"]})...) {
		switch name {
		case "object":
			out.Type = genai.TypeObject
		case "array":
			out.Type = genai.TypeArray
		case "string":
			out.Type = genai.TypeString
		case "number":
			out.Type = genai.TypeNumber
		case "integer":
			out.Type = genai.TypeInteger
		case "boolean":
			out.Type = genai.TypeBoolean
		case "null":
			out.Nullable = true
		}
	}
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
