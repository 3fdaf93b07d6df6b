package embed

import "context"

// WithRedaction takes out of every text what is not to be handed on. The fingerprint stays: a text's vector is that of what
// is left of it.
func WithRedaction(inner Embedder, redact func(text string) string) Embedder {
	return redacted{inner, redact}
}

type redacted struct {
	Embedder
	redact func(string) string
}

func (e redacted) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	clean := make([]string, len(texts))
	for i, text := range texts {
		clean[i] = e.redact(text)
	}
	return e.Embedder.Embed(ctx, purpose, clean)
}
