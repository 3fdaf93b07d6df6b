package observe_test

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// collector receives spans like OpenTelemetry's collector, over gRPC and HTTP.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*tracev1.Span
	text  string // all received data
}

func (c *collector) Export(_ context.Context, r *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text += prototext.Format(r)
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := &collectorv1.ExportTraceServiceRequest{}
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), request)
}

// listen starts the collector and returns its URL.
func (c *collector) listen(t *testing.T, protocol string) string {
	t.Helper()
	if protocol == "http" {
		server := httptest.NewServer(c)
		t.Cleanup(server.Close)
		return server.URL
	}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	listener := sidecartest.Must((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}

// find returns the spans with a name.
func (c *collector) find(name string) (found []*tracev1.Span) {
	for _, s := range c.spans {
		if s.GetName() == name {
			found = append(found, s)
		}
	}
	return found
}

// below reports whether a span is a descendant of another.
func (c *collector) below(s, above *tracev1.Span) bool {
	for range c.spans {
		if string(s.GetParentSpanId()) == string(above.GetSpanId()) {
			return true
		}
		for _, other := range c.spans {
			if string(other.GetSpanId()) == string(s.GetParentSpanId()) && other != s {
				s = other
				break
			}
		}
	}
	return false
}

// TestConsiderationTraceLinksToItsCall: A call's span is a child of its caller's. The consideration has its own trace, linked to the
// call, with model calls below it. No span contains user text.
func TestConsiderationTraceLinksToItsCall(t *testing.T) {
	t.Parallel()
	const caller, callerSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	const secret = "紫罗兰XYZZY"
	for _, protocol := range []string{"grpc", "http"} {
		t.Run(protocol, func(t *testing.T) {
			p := providertest.Start(t, 8)
			p.Say("用户喜欢" + secret)
			p.Take(70, 7)
			var c collector
			r := sidecartest.Serve(
				t,
				append(
					sidecartest.UseProvider("openai", p),
					"otel.protocol="+protocol,
					"otel.endpoint="+c.listen(t, protocol),
					"embedding.dimensions=8",
				)...)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+caller+"-"+callerSpan+"-01")
			sidecartest.Must(r.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
				Scope: sidecartest.Direct(
					"u",
				// polling would create spans without end
				), Messages: []*memsidecarv1.Message{sidecartest.Said("我喜欢" + secret)}, Wait: sidecartest.LongWait(),
			}))(t)
			_ = sidecartest.Must(r.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: secret}))(t)
			p.Fail(providertest.BrokenJSON, providertest.Decision)
			r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("又是"+secret))
			r.Stop() // flushes the spans

			if strings.Contains(c.text, secret) || strings.Contains(c.text, "XYZZY") {
				t.Error("a span contains user text")
			}
			if !regexp.MustCompile(`string_value: *"memsidecar"`).MatchString(c.text) {
				t.Errorf("the resource is not named:\n%.500s", c.text)
			}
			accepted, considered := c.find("memsidecar.v1.MemoryService/ConsiderMemorizing"), c.find("consider")
			if len(accepted) != 2 || len(considered) != 2 {
				t.Fatalf("%d calls and %d considerations", len(accepted), len(considered))
			}
			if hex.EncodeToString(accepted[0].GetTraceId()) != caller || hex.EncodeToString(accepted[0].GetParentSpanId()) != callerSpan {
				t.Errorf("the call is not below its caller's span: %v", accepted[0])
			}
			links := considered[0].GetLinks()
			if len(links) != 1 || hex.EncodeToString(links[0].GetTraceId()) != caller || string(links[0].GetSpanId()) != string(accepted[0].GetSpanId()) ||
				hex.EncodeToString(considered[0].GetTraceId()) == caller ||
				len(considered[0].GetParentSpanId()) != 0 {
				t.Errorf("the consideration is not linked to its call: %v", considered[0])
			}
			for _, name := range []string{"decide", "extract", "embed", "apply", "chat model-of-decision", "chat model-of-summary", "embeddings model-of-embedding"} {
				// Messages are also embedded in the background, before or after.
				if spans := c.find(name); !slices.ContainsFunc(spans, func(s *tracev1.Span) bool { return c.below(s, considered[0]) }) {
					t.Errorf("%q: %v", name, spans)
				}
			}
			if tokens := attribute(c.find("chat model-of-decision")[0], "gen_ai.usage.input_tokens"); tokens != "70" {
				t.Errorf("the decision took %q tokens", tokens)
			}
			if got := attribute(considered[0], "memsidecar.outcome"); got != "remembered" {
				t.Errorf("the outcome is %q", got)
			}
			if s := c.find("decide")[1]; s.GetStatus().GetCode() != tracev1.Status_STATUS_CODE_ERROR || !c.below(s, considered[1]) {
				t.Errorf("an unusable answer is %v", s)
			}
			retrieved := c.find("memsidecar.v1.MemoryService/Retrieve")[0]
			for _, name := range []string{"embed query", "search memories by keyword", "search memories by vector"} {
				if spans := c.find(name); len(spans) != 1 || !c.below(spans[0], retrieved) {
					t.Errorf("%q: %v", name, spans)
				}
			}
		})
	}
}

// TestMissingCollectorDelaysNothing: Without a collector nothing waits, and the log reports it once.
func TestMissingCollectorDelaysNothing(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "otel.protocol=http", "otel.endpoint=http://127.0.0.1:1") // no collector listens there
	if c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I am allergic to peanuts.")); c.GetState() != sidecartest.Remembered {
		t.Error(c)
	}
	r.Stop()
	if n := strings.Count(r.Log.String(), "spans do not reach the collector"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, r.Log)
	}
}

func attribute(s *tracev1.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			if text := a.GetValue().GetStringValue(); text != "" {
				return text
			}
			return strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(a.GetValue().String(), " ", ""), "int_value:"))
		}
	}
	return ""
}
