// Package gateway serves the API as JSON over HTTP, for clients without gRPC: POST /memsidecar.v1.MemoryService/Retrieve with the request
// as JSON, and the same for every other call. It calls the server over a connection inside the process, so tokens, limits and errors are
// those of gRPC.
//
// Headers, deadlines, codes and the framing of streams come from grpc-gateway. Its generated handlers are not used: without HTTP
// annotations, one handler based on descriptors serves all calls, and reads bodies strictly.
package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/memsidecar/memsidecar/internal/gateway/jsonapi"
	"github.com/memsidecar/memsidecar/internal/inflight"
)

// Backend is the server behind the gateway.
type Backend struct {
	// Conn is a connection to the server.
	Conn grpc.ClientConnInterface
	// Services are the full names of its services.
	Services []string
	// ReadingCall is a call that every valid token allows.
	ReadingCall string
	// Admit checks, before the request is read, whether its authorization allows the call. The error is a status.
	Admit func(ctx context.Context, method string, authorization []string) error
	// Status returns the status with which the server answers an error.
	Status func(error) *status.Status
}

// Options configures a gateway.
type Options struct {
	// MaxBytes is the maximum size of a message as JSON.
	MaxBytes int64
	// Bytes limits the memory of large requests and answers of all calls.
	Bytes *inflight.Bytes
	// Document is the OpenAPI document.
	Document []byte
}

// Gateway translates HTTP requests into calls.
type Gateway struct {
	backend Backend
	options Options
	mux     *runtime.ServeMux // translates requests and answers; it has no routes
	json    *lines
	routes  *http.ServeMux
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		WriteError(w, http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding is not supported: send the request without Content-Encoding: %.80q", encoding))
		return
	}
	if name := unprintable(r.Header); name != "" {
		WriteError(w, http.StatusBadRequest, fmt.Sprintf("the header %s is not printable ASCII: encode it or leave it out", name))
		return
	}
	g.routes.ServeHTTP(w, r)
}

// unprintable returns the name of a forwarded header that is not printable ASCII, or "".
func unprintable(header http.Header) string {
	for _, name := range append(slices.Sorted(maps.Keys(forwarded)), "Authorization") {
		for _, value := range header.Values(name) {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
				return name
			}
		}
	}
	return ""
}

// Handle adds a page that is not a call. Callers need a valid token, as for calls.
func (g *Gateway) Handle(path string, next http.Handler) {
	g.routes.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if err := g.backend.Admit(r.Context(), g.backend.ReadingCall, r.Header.Values("Authorization")); err != nil {
			g.fail(w, err)
			return
		}
		g.counted(w, r, func(r *http.Request) { next.ServeHTTP(w, r) })
	})
}

// forwarded are the headers that are passed on with a call, in addition to authorization and deadline.
var forwarded = map[string]string{"Traceparent": "traceparent", "Tracestate": "tracestate", "X-Request-Id": "x-request-id"}

// New returns a handler for all calls, /openapi.json and /healthz.
func New(backend Backend, options Options) (*Gateway, error) {
	g := &Gateway{backend: backend, options: options, json: &lines{}, routes: http.NewServeMux()}
	g.mux = runtime.NewServeMux(
		runtime.WithIncomingHeaderMatcher(func(name string) (string, bool) {
			key, ok := forwarded[name]
			return key, ok
		}),
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithMarshalerOption(runtime.MIMEWildcard, g.json),
		runtime.WithErrorHandler(func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
			g.fail(w, err)
		}),
		runtime.WithHealthzEndpoint(healthpb.NewHealthClient(backend.Conn)),
	)
	for _, name := range backend.Services {
		if err := g.register(name); err != nil {
			return nil, err
		}
	}
	g.routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead { // not supported by the library
			r = r.Clone(r.Context())
			r.Method = http.MethodGet
		}
		g.mux.ServeHTTP(w, r)
	})
	g.Handle("GET /openapi.json", http.HandlerFunc(g.document))
	g.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, http.StatusNotFound, fmt.Sprintf("there is no %.200q here: calls are POST /memsidecar.v1.MemoryService/Retrieve and so on, "+
			"and GET /openapi.json lists them", r.URL.Path))
	})
	return g, nil
}

// method describes a call.
type method struct {
	path           string
	input, output  protoreflect.MessageType
	takes, answers bool // whether it streams requests or answers
}

// register adds handlers for all calls of a service.
func (g *Gateway) register(service string) error {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return fmt.Errorf("the service %s: %w", service, err)
	}
	described, ok := found.(protoreflect.ServiceDescriptor)
	if !ok {
		return fmt.Errorf("%s is not a service", service)
	}
	for i := range described.Methods().Len() {
		d := described.Methods().Get(i)
		m := method{path: fmt.Sprintf("/%s/%s", service, d.Name()), takes: d.IsStreamingClient(), answers: d.IsStreamingServer()}
		if m.input, err = protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName()); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		if m.output, err = protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName()); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		g.routes.Handle(m.path, g.handler(m))
		for former, now := range jsonapi.FormerCalls {
			if now == m.path {
				g.routes.Handle(former, g.handler(m))
			}
		}
	}
	return nil
}

// handler returns the handler of one call. It rejects what it can before it reads the body.
func (g *Gateway) handler(m method) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			WriteError(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s takes POST, with the request as JSON in the body", m.path))
			return
		}
		if !isJSON(r) {
			WriteError(w, http.StatusUnsupportedMediaType, "send the request as JSON, with the header Content-Type: application/json")
			return
		}
		if err := g.backend.Admit(r.Context(), m.path, r.Header.Values("Authorization")); err != nil {
			g.fail(w, err)
			return
		}
		if id := r.Header.Get("X-Request-Id"); id != "" {
			w.Header().Set("X-Request-Id", id)
		}
		g.counted(w, r, func(r *http.Request) { g.call(w, r, m) })
	})
}

func (g *Gateway) call(w http.ResponseWriter, r *http.Request, m method) {
	ctx, err := runtime.AnnotateContext(r.Context(), g.mux, r, m.path)
	if err != nil {
		g.fail(w, err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if m.takes || m.answers {
		err = g.stream(ctx, w, r, m)
	} else {
		err = g.unary(ctx, w, r, m)
	}
	if err != nil {
		g.fail(w, err)
	}
}

func (g *Gateway) unary(ctx context.Context, w http.ResponseWriter, r *http.Request, m method) error {
	request, response := m.input.New().Interface(), m.output.New().Interface()
	if err := g.readOne(w, r, request); err != nil {
		return err
	}
	if err := g.backend.Conn.Invoke(ctx, m.path, request, response); err != nil {
		return err
	}
	if err := grow(r, proto.Size(response)); err != nil {
		return err
	}
	runtime.ForwardResponseMessage(ctx, g.mux, g.json, w, r, response)
	return nil
}

func (g *Gateway) document(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(g.options.Document) // on an error the client is gone
}

// lines writes JSON; a stream has one value per line.
type lines struct{ runtime.JSONPb }

// Marshal implements runtime.Marshaler. It removes spaces, because the library varies them between builds.
func (l *lines) Marshal(v any) ([]byte, error) {
	text, err := l.JSONPb.Marshal(v)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	compact.Grow(len(text))
	err = json.Compact(&compact, text)
	return compact.Bytes(), err
}

// StreamContentType implements runtime.StreamContentType.
func (*lines) StreamContentType(any) string { return "application/x-ndjson" }

func isJSON(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "application/json", "application/x-ndjson":
		return true
	}
	return false
}
