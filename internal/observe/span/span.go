// Package span records OpenTelemetry spans: what was done, how long it took and how it ended. They never contain what users or models
// wrote, not even in errors' texts, which may quote it.
package span

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// scope is the instrumentation scope of all spans of this package.
const scope = "github.com/memsidecar/memsidecar"

// Tracer returns a tracer of the provider; a nil provider records nothing.
func Tracer(provider oteltrace.TracerProvider) oteltrace.Tracer {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	return provider.Tracer(scope)
}

// Start starts a child span of the context's span; end ends it. It does nothing when the context has no span.
func Start(ctx context.Context, name string, attrs ...attribute.KeyValue) (_ context.Context, end func(error)) {
	parent := oteltrace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func(error) {}
	}
	ctx, s := parent.TracerProvider().Tracer(scope).Start(ctx, name, oteltrace.WithAttributes(attrs...))
	return ctx, func(err error) { End(s, err) }
}

// Later starts a span for work that a call started and did not wait for. The span has its own trace, because the call has ended, and a link
// to the call.
func Later(ctx context.Context, tracer oteltrace.Tracer, name string, call trace.Call, attrs ...attribute.KeyValue) (_ context.Context, end func(error)) {
	options := []oteltrace.SpanStartOption{
		oteltrace.WithNewRoot(), oteltrace.WithSpanKind(oteltrace.SpanKindConsumer), oteltrace.WithAttributes(attrs...),
	}
	traceID, err := oteltrace.TraceIDFromHex(call.OTelTraceID)
	if spanID, idErr := oteltrace.SpanIDFromHex(call.OTelSpanID); err == nil && idErr == nil {
		options = append(options, oteltrace.WithLinks(oteltrace.Link{SpanContext: oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
			TraceID: traceID, SpanID: spanID, Remote: true,
		})}))
	}
	ctx, s := tracer.Start(ctx, name, options...)
	return ctx, func(err error) { End(s, err) }
}

// Model starts the span of a model call, named by the conventions for generative AI:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
func Model(ctx context.Context, tracer oteltrace.Tracer, operation, part, provider, model string) (context.Context, oteltrace.Span) {
	return tracer.Start(ctx, operation+" "+model, oteltrace.WithSpanKind(oteltrace.SpanKindClient), oteltrace.WithAttributes(
		attribute.String("gen_ai.operation.name", operation), attribute.String("gen_ai.provider.name", provider),
		attribute.String("gen_ai.request.model", model), attribute.String("memsidecar.part", part),
	))
}

// Tokens records how many tokens a model call used, as far as the provider reports it.
func Tokens(s oteltrace.Span, input, output int64) {
	if input > 0 {
		s.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", input))
	}
	if output > 0 {
		s.SetAttributes(attribute.Int64("gen_ai.usage.output_tokens", output))
	}
}

// End ends a span and records the kind of error, if any.
func End(s oteltrace.Span, err error) {
	if err != nil {
		s.SetAttributes(attribute.String("error.type", kind(err)))
		s.SetStatus(codes.Error, "")
	}
	s.End()
}

func kind(err error) string {
	var transient *memory.TransientError
	var refused *memory.RefusedError
	var budget *memory.BudgetError
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, memory.ErrUnavailable), errors.As(err, &transient):
		return "unavailable"
	case errors.As(err, &refused):
		return "refused"
	case errors.As(err, &budget):
		return "budget"
	}
	return "_OTHER" // the conventions' name for other errors
}
