package sidecartest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// JSONListen is the setting of a sidecar that answers JSON over HTTP.
const JSONListen = "api.listen=127.0.0.1:0"

// JSONClient is a connection for gRPC clients that calls over HTTP with JSON. With it a test of gRPC calls tests JSON, too.
type JSONClient struct {
	Client *http.Client
	Base   string // http://127.0.0.1:1
	Header http.Header
}

// JSON returns a client of the sidecar's JSON API. authorization is the value of that header.
func (r *Sidecar) JSON(authorization ...string) *JSONClient {
	return &JSONClient{Client: http.DefaultClient, Base: "http://" + r.API, Header: http.Header{"Authorization": authorization}}
}

// Answer is a response over HTTP.
type Answer struct {
	Status        int
	Header        http.Header
	Version, Text string
}

// Post sends a body and returns the answer.
func (c *JSONClient) Post(ctx context.Context, path, body string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header = c.Header.Clone()
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		for key, values := range md {
			req.Header[http.CanonicalHeaderKey(key)] = values
		}
	}
	return c.Do(req)
}

// Do sends a request.
func (c *JSONClient) Do(req *http.Request) (Answer, error) {
	resp, err := c.Client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, resp.Proto, string(text)}, err
}

// Get sends a GET request for a path.
func (c *JSONClient) Get(t *testing.T, path string) Answer {
	t.Helper()
	req := Must(http.NewRequestWithContext(t.Context(), http.MethodGet, c.Base+path, http.NoBody))(t)
	req.Header = c.Header.Clone()
	return Must(c.Do(req))(t)
}

// refusal returns the error that an answer describes.
func refusal(text string) error {
	var s statuspb.Status
	if err := protojson.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("%w in %s", err, text)
	}
	return status.ErrorProto(&s)
}

// Invoke implements grpc.ClientConnInterface.
func (c *JSONClient) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	request, _ := args.(proto.Message)
	answer, _ := reply.(proto.Message)
	body, err := protojson.Marshal(request)
	if err != nil {
		return err
	}
	got, err := c.Post(ctx, method, string(body))
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return refusal(got.Text)
	}
	return protojson.Unmarshal([]byte(got.Text), answer)
}

// NewStream implements grpc.ClientConnInterface.
func (c *JSONClient) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, err
	}
	described, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, errors.New(name + " is no method")
	}
	return &jsonStream{conn: c, ctx: ctx, method: described, path: method}, nil
}

// jsonStream sends all at once, and then reads the lines of the answer.
type jsonStream struct {
	grpc.ClientStream
	conn   *JSONClient
	ctx    context.Context //nolint:containedctx // that of the stream
	method protoreflect.MethodDescriptor
	path   string
	body   bytes.Buffer
	lines  []json.RawMessage
}

func (s *jsonStream) SendMsg(m any) error {
	message, _ := m.(proto.Message)
	text, err := protojson.Marshal(message)
	s.body.Write(text)
	return err
}

func (s *jsonStream) CloseSend() error {
	got, err := s.conn.Post(s.ctx, s.path, s.body.String())
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		s.lines = []json.RawMessage{[]byte(`{"error":` + got.Text + `}`)}
		return nil
	}
	for decoder := json.NewDecoder(strings.NewReader(got.Text)); ; {
		var line json.RawMessage
		if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if !s.method.IsStreamingServer() {
			line = []byte(`{"result":` + string(line) + `}`)
		}
		s.lines = append(s.lines, line)
	}
}

func (s *jsonStream) RecvMsg(m any) error {
	if len(s.lines) == 0 {
		return io.EOF
	}
	var line struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(s.lines[0], &line); err != nil {
		return err
	}
	s.lines = s.lines[1:]
	if line.Error != nil {
		return refusal(string(line.Error))
	}
	message, _ := m.(proto.Message)
	return protojson.Unmarshal(line.Result, message)
}

// Ask posts a body to a call, such as Retrieve, or to a path. The answer is JSON.
func (c *JSONClient) Ask(t *testing.T, call, body string) Answer {
	t.Helper()
	path := call
	if !strings.HasPrefix(call, "/") {
		path = "/memsidecar.v1.MemoryService/" + call
	}
	for _, method := range AllMethods(t) {
		if string(method.Name()) == call {
			path = FullName(method)
		}
	}
	got := Must(c.Post(t.Context(), path, body))(t)
	if !json.Valid([]byte(got.Text)) {
		t.Fatalf("%s answers %d and no JSON: %s", call, got.Status, got.Text)
	}
	return got
}
