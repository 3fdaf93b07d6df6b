// Package gateway is the API as JSON over HTTP, for those who have no gRPC: POST /memsidecar.v1.MemoryService/Retrieve with the
// request as JSON, and so for every call there is. It calls the server over a connection inside the process, so tokens, limits
// and errors are those of gRPC.
//
// Headers, deadlines, codes and the framing of streams are grpc-gateway's. Its generated handlers are not used: what they do
// for a call without HTTP annotations can be said once for all calls by their descriptors, and here a body is read strictly.
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

// Backend is the server whose calls these are.
type Backend struct {
	// Conn leads to the server.
	Conn grpc.ClientConnInterface
	// Services are the full names of its services.
	Services []string
	// ReadingCall is a call that everybody may make who may make any.
	ReadingCall string
	// Admit says, before anything of a request is read, whether its authorization allows the call. The error is a status.
	Admit func(ctx context.Context, method string, authorization []string) error
	// Status is how the server answers an error.
	Status func(error) *status.Status
}

// Options describe a gateway.
type Options struct {
	// MaxBytes is the largest message accepted, as JSON.
	MaxBytes int64
	// Bytes is what large requests and answers of all calls may take together.
	Bytes *inflight.Bytes
	// Document is the OpenAPI document.
	Document []byte
}

// Gateway answers HTTP requests with calls.
type Gateway struct {
	backend Backend
	options Options
	mux     *runtime.ServeMux // not for routes: it holds how requests and answers are translated
	json    *lines
	routes  *http.ServeMux
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		Refuse(w, http.StatusUnsupportedMediaType, fmt.Sprintf("nothing is unpacked here: send the request without Content-Encoding: %.80q", encoding))
		return
	}
	if name := unprintable(r.Header); name != "" {
		Refuse(w, http.StatusBadRequest, fmt.Sprintf("the header %s is not printable ASCII, so it cannot go along with the call: encode it or leave it out", name))
		return
	}
	g.routes.ServeHTTP(w, r)
}

// unprintable is the name of a header that goes along with calls and cannot, or "".
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

// Handle adds what is not a call at a path. It is for those who may make any call: the others are refused like there.
func (g *Gateway) Handle(path string, next http.Handler) {
	g.routes.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if err := g.backend.Admit(r.Context(), g.backend.ReadingCall, r.Header.Values("Authorization")); err != nil {
			g.fail(w, err)
			return
		}
		g.counted(w, r, func(r *http.Request) { next.ServeHTTP(w, r) })
	})
}

// forwarded are the headers that go along with a call, besides its authorization and deadline.
var forwarded = map[string]string{"Traceparent": "traceparent", "Tracestate": "tracestate", "X-Request-Id": "x-request-id"}

// New returns a handler of all calls, of /openapi.json and of /healthz.
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
		if r.Method == http.MethodHead { // which the library has no answer to
			r = r.Clone(r.Context())
			r.Method = http.MethodGet
		}
		g.mux.ServeHTTP(w, r)
	})
	g.Handle("GET /openapi.json", http.HandlerFunc(g.document))
	g.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Refuse(w, http.StatusNotFound, fmt.Sprintf("there is no %.200q here: calls are POST /memsidecar.v1.MemoryService/Retrieve and so on, "+
			"and GET /openapi.json lists them", r.URL.Path))
	})
	return g, nil
}

// method is a call.
type method struct {
	path           string
	input, output  protoreflect.MessageType
	takes, answers bool // a stream
}

// register serves all calls of a service.
func (g *Gateway) register(service string) error {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return fmt.Errorf("the service %s: %w", service, err)
	}
	described, ok := found.(protoreflect.ServiceDescriptor)
	if !ok {
		return fmt.Errorf("%s is no service", service)
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

// handler answers one call. What can be refused without the body is refused before it is read.
func (g *Gateway) handler(m method) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			Refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s takes POST, with the request as JSON in the body", m.path))
			return
		}
		if !isJSON(r) {
			Refuse(w, http.StatusUnsupportedMediaType, "send the request as JSON, with the header Content-Type: application/json")
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
	_, _ = w.Write(g.options.Document) // whoever asked is gone
}

// lines is JSON, of streams a value a line.
type lines struct{ runtime.JSONPb }

// Marshal implements runtime.Marshaler. The library varies its spaces from one build of a program to the next; without any the
// same answer is the same bytes.
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
