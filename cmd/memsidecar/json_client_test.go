package main

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

// overHTTP are the settings of a sidecar that answers JSON.
const overHTTP = "api.listen=127.0.0.1:0"

// jsonConn makes gRPC's clients call over HTTP with JSON, so that what tests ask of one way in they can ask of the other.
type jsonConn struct {
	client *http.Client
	base   string // http://127.0.0.1:1
	header http.Header
}

// overJSON is the sidecar's API over HTTP; authorization is that header's value.
func (r *running) overJSON(authorization ...string) *jsonConn {
	return &jsonConn{client: http.DefaultClient, base: "http://" + r.api, header: http.Header{"Authorization": authorization}}
}

// asked is an answer.
type asked struct {
	status        int
	header        http.Header
	version, text string
}

// post sends a body and returns the answer.
func (c *jsonConn) post(ctx context.Context, path, body string) (asked, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, strings.NewReader(body))
	if err != nil {
		return asked{}, err
	}
	req.Header = c.header.Clone()
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		for key, values := range md {
			req.Header[http.CanonicalHeaderKey(key)] = values
		}
	}
	return c.do(req)
}

// do sends any request.
func (c *jsonConn) do(req *http.Request) (asked, error) {
	resp, err := c.client.Do(req)
	if err != nil {
		return asked{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return asked{resp.StatusCode, resp.Header, resp.Proto, string(text)}, err
}

// get asks for a path.
func (c *jsonConn) get(t *testing.T, path string) asked {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+path, http.NoBody))(t)
	req.Header = c.header.Clone()
	return must(c.do(req))(t)
}

// refusal is an answer that is an error.
func refusal(text string) error {
	var s statuspb.Status
	if err := protojson.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("%w in %s", err, text)
	}
	return status.ErrorProto(&s)
}

// Invoke implements grpc.ClientConnInterface.
func (c *jsonConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	request, _ := args.(proto.Message)
	answer, _ := reply.(proto.Message)
	body, err := protojson.Marshal(request)
	if err != nil {
		return err
	}
	got, err := c.post(ctx, method, string(body))
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		return refusal(got.text)
	}
	return protojson.Unmarshal([]byte(got.text), answer)
}

// NewStream implements grpc.ClientConnInterface.
func (c *jsonConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
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
	conn   *jsonConn
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
	got, err := s.conn.post(s.ctx, s.path, s.body.String())
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		s.lines = []json.RawMessage{[]byte(`{"error":` + got.text + `}`)}
		return nil
	}
	for decoder := json.NewDecoder(strings.NewReader(got.text)); ; {
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

// ask posts a body to a call of MemoryService, or to a path. The answer is JSON.
func (c *jsonConn) ask(t *testing.T, call, body string) asked {
	t.Helper()
	if !strings.HasPrefix(call, "/") {
		call = "/memsidecar.v1.MemoryService/" + call
	}
	got := must(c.post(t.Context(), call, body))(t)
	if !json.Valid([]byte(got.text)) {
		t.Fatalf("%s answers %d and no JSON: %s", call, got.status, got.text)
	}
	return got
}
