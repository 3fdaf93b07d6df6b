package embed

import (
	"context"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/memsidecar/memsidecar/internal/observe/span"
)

// WithSpan makes a span of every call. It belongs inside of WithObserver, which counts what the call costs.
func WithSpan(inner Embedder, tracer oteltrace.Tracer) Embedder { return spanned{inner, tracer} }

type spanned struct {
	Embedder
	tracer oteltrace.Tracer
}

func (e spanned) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	f := e.Fingerprint()
	ctx, s := span.Model(ctx, e.tracer, "embeddings", "embedding", f.Provider, f.Model)
	vectors, err := e.Embedder.Embed(ctx, purpose, texts)
	span.Tokens(s, Tokens(ctx), 0)
	span.End(s, err)
	return vectors, err
}
