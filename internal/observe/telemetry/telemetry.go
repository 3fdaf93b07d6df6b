// Package telemetry sends spans to an OpenTelemetry collector.
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

// Options configures where spans are sent.
type Options struct {
	// Endpoint is a valid URL, such as http://127.0.0.1:4317. If it is empty, OTEL_EXPORTER_OTLP_ENDPOINT is used. The other standard
	// variables also apply: headers, certificates, timeouts, sampling, resource attributes.
	Endpoint string
	Protocol string // GRPC or HTTP
	Version  string // of this program
	Log      *slog.Logger
}

// Provider records spans and sends them in the background. Spans are dropped when the collector does not answer; no call waits for them.
type Provider struct {
	*sdktrace.TracerProvider
}

// Open returns a provider that runs until Shutdown.
func Open(ctx context.Context, o Options) (*Provider, error) {
	exporter, err := newExporter(ctx, o)
	if err != nil {
		return nil, err
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("memsidecar"), semconv.ServiceVersion(o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv(), // last, so that OTEL_SERVICE_NAME has precedence
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return &Provider{sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&loggedExporter{SpanExporter: exporter, log: o.Log}), sdktrace.WithResource(described),
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

// tracesURL returns the URL for spans below a base URL, by the rules of the standard variable.
func tracesURL(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Path != "" && u.Path != "/" {
		return base
	}
	return u.JoinPath("v1", "traces").String()
}

// logAgain is the minimum time between two log lines about an unavailable collector.
const logAgain = time.Hour

// loggedExporter logs when spans cannot be sent, and when they can again. The SDK would log each batch.
type loggedExporter struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	last atomic.Int64 // time of the last log line in Unix nanoseconds; 0 while spans can be sent
}

// ExportSpans implements sdktrace.SpanExporter.
func (t *loggedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	last := t.last.Load()
	switch now := time.Now(); {
	case err == nil && last != 0:
		t.last.Store(0)
		t.log.Info("spans reach the collector again")
	case err != nil && now.Sub(time.Unix(0, last)) > logAgain:
		t.last.Store(now.UnixNano())
		t.log.Warn("spans do not reach the collector and are dropped", "error", err)
	}
	return nil // already logged
}
