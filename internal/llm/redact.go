package llm

import "context"

// WithRedaction takes out of every prompt what is not to be handed on.
func WithRedaction(inner Model, redact func(prompt string) string) Model {
	return redacted{inner, redact}
}

type redacted struct {
	Model
	redact func(string) string
}

func (m redacted) Generate(ctx context.Context, r Request) (Response, error) {
	r.Prompt = m.redact(r.Prompt)
	return m.Model.Generate(ctx, r)
}
