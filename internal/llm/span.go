package llm

import (
	"context"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/memsidecar/memsidecar/internal/observe/span"
)

// WithSpan makes a span of every call, made for a part of the work.
func WithSpan(inner Model, part string, tracer oteltrace.Tracer) Model {
	return spanned{inner, part, tracer}
}

type spanned struct {
	Model
	part   string
	tracer oteltrace.Tracer
}

func (m spanned) Generate(ctx context.Context, r Request) (Response, error) {
	provider, model, _ := strings.Cut(m.Name(), "/")
	ctx, s := span.Model(ctx, m.tracer, "chat", m.part, provider, model)
	resp, err := m.Model.Generate(ctx, r)
	span.Tokens(s, resp.Usage.InputTokens, resp.Usage.OutputTokens)
	span.End(s, err)
	return resp, err
}
