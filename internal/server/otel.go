package server

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/memsidecar/memsidecar/internal/trace"
)

// callUnary adds to the context what a call belongs to: the turn that its request names, and its caller's OpenTelemetry trace.
func callUnary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		call := otelCall(ctx)
		if r, ok := req.(interface{ GetTurnId() string }); ok {
			call.TurnID = r.GetTurnId()
		}
		return handler(trace.WithCall(ctx, call), req)
	}
}

// otelCall returns the OpenTelemetry span of the call if this process records spans, otherwise the span of the caller's W3C traceparent
// header, otherwise the zero value.
func otelCall(ctx context.Context) trace.Call {
	const header = "traceparent"
	span := oteltrace.SpanContextFromContext(ctx)
	if values := metadata.ValueFromIncomingContext(ctx, header); !span.IsValid() && len(values) == 1 {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{header: values[0]})
		span = oteltrace.SpanContextFromContext(ctx)
	}
	if !span.IsValid() {
		return trace.Call{}
	}
	return trace.Call{OTelTraceID: span.TraceID().String(), OTelSpanID: span.SpanID().String()}
}
