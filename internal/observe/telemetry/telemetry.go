// Package telemetry sends spans to a collector of OpenTelemetry.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Protocols of OTLP.
const (
	GRPC = "grpc"
	HTTP = "http"
)

// Options says where spans go.
type Options struct {
	// Endpoint is a valid URL, such as http://127.0.0.1:4317. Empty leaves it to OTEL_EXPORTER_OTLP_ENDPOINT. What else the
	// standard's variables say holds too: headers, certificates, timeouts, sampling, the resource's attributes.
	Endpoint string
	Protocol string // GRPC or HTTP
	Version  string // of this program
	Log      *slog.Logger
}

// Provider makes spans and sends them in the background. When the collector does not answer they are dropped: nothing
// waits for them.
type Provider struct {
	*sdktrace.TracerProvider
}

// Open returns a provider that works until Shutdown.
func Open(ctx context.Context, o Options) (*Provider, error) {
	exporter, err := newExporter(ctx, o)
	if err != nil {
		return nil, err
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("memsidecar"), semconv.ServiceVersion(o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv(), // last, so that OTEL_SERVICE_NAME counts
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return &Provider{sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&told{SpanExporter: exporter, log: o.Log}), sdktrace.WithResource(described),
	)}, nil
}

func newExporter(ctx context.Context, o Options) (sdktrace.SpanExporter, error) {
	var client otlptrace.Client
	switch {
	case o.Protocol == HTTP && o.Endpoint != "":
		client = otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(tracesURL(o.Endpoint)))
	case o.Protocol == HTTP:
		client = otlptracehttp.NewClient()
	case o.Endpoint != "":
		client = otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(o.Endpoint))
	default:
		client = otlptracegrpc.NewClient()
	}
	return otlptrace.New(ctx, client)
}

// tracesURL is the address that spans are posted to below a base address, as the standard's variable works.
func tracesURL(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Path != "" && u.Path != "/" {
		return base
	}
	return u.JoinPath("v1", "traces").String()
}

// tellAgain is how often the log says that the collector is away.
const tellAgain = time.Hour

// told tells the log when spans cannot be sent, and when they can again. The SDK would print a line for each batch.
type told struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	last atomic.Int64 // when it said that they cannot be sent, in Unix nanoseconds; 0 when they can
}

// ExportSpans implements sdktrace.SpanExporter.
func (t *told) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	last := t.last.Load()
	switch now := time.Now(); {
	case err == nil && last != 0:
		t.last.Store(0)
		t.log.Info("spans reach the collector again")
	case err != nil && now.Sub(time.Unix(0, last)) > tellAgain:
		t.last.Store(now.UnixNano())
		t.log.Warn("spans do not reach the collector and are dropped", "error", err)
	}
	return nil // told already
}
