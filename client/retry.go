package client

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// The gRPC service config, see https://github.com/grpc/grpc/blob/master/doc/service_config.md.
type (
	config struct {
		MethodConfig []methodConfig `json:"methodConfig"`
	}
	methodConfig struct {
		Name        []methodName `json:"name"`
		RetryPolicy retryPolicy  `json:"retryPolicy"`
	}
	methodName struct {
		Service string `json:"service"`
		Method  string `json:"method"`
	}
	retryPolicy struct {
		MaxAttempts          int      `json:"maxAttempts"`
		InitialBackoff       string   `json:"initialBackoff"`
		MaxBackoff           string   `json:"maxBackoff"`
		BackoffMultiplier    float64  `json:"backoffMultiplier"`
		RetryableStatusCodes []string `json:"retryableStatusCodes"`
	}
)

var (
	// urgent is for calls that a bot makes before it answers: pauses of at most 150 ms, enough to replace a lost connection.
	urgent = retryPolicy{3, "0.05s", "0.1s", 2, []string{"UNAVAILABLE"}}
	// readings is for other reading calls: pauses of up to 1.5 s.
	readings = retryPolicy{5, "0.1s", "0.8s", 2, []string{"UNAVAILABLE"}}
	// identified is for calls with a request id: pauses of up to 4 s.
	identified = retryPolicy{5, "0.1s", "2.7s", 3, []string{"UNAVAILABLE"}}
)

// serviceConfig sets which calls are retried.
var serviceConfig = sync.OnceValue(func() string {
	waiting := methodConfig{RetryPolicy: urgent}
	reading := methodConfig{RetryPolicy: readings}
	writing := methodConfig{RetryPolicy: identified}
	for _, service := range []*grpc.ServiceDesc{
		&memsidecarv1.MemoryService_ServiceDesc,
		&memsidecarv1.UserService_ServiceDesc,
		&memsidecarv1.SessionService_ServiceDesc,
		&memsidecarv1.NumberedListService_ServiceDesc,
		&memsidecarv1.DigestService_ServiceDesc,
		&memsidecarv1.TraceService_ServiceDesc,
		&memsidecarv1.AdminService_ServiceDesc,
	} {
		for _, method := range methodsOf(service) {
			name := methodName{service.ServiceName, method}
			switch {
			case method == "Retrieve" || method == "GetContext":
				waiting.Name = append(waiting.Name, name)
			case method == "ConsiderMemorizing" || method == "CreateMemory":
				writing.Name = append(writing.Name, name)
			case reads(method):
				reading.Name = append(reading.Name, name)
			}
		}
	}
	text, err := json.Marshal(config{[]methodConfig{waiting, reading, writing}})
	if err != nil {
		panic(err) // cannot occur: only strings and numbers
	}
	return string(text)
})

// reads reports whether a call only reads, judged by its name.
func reads(method string) bool {
	for _, prefix := range []string{"Get", "List", "Export", "Filter", "Select"} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}

func methodsOf(service *grpc.ServiceDesc) []string {
	var names []string
	for _, m := range service.Methods {
		names = append(names, m.MethodName)
	}
	for _, s := range service.Streams {
		names = append(names, s.StreamName)
	}
	return names
}

// identify adds a request id to a call that stores something, so that it can be retried. It does not change the caller's request.
func (c *Client) identify(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	switch r := req.(type) {
	case *memsidecarv1.ConsiderMemorizingRequest:
		if r.GetRequestId() == "" {
			r = proto.CloneOf(r)
			r.RequestId = uuid.NewString()
			req = r
		}
	case *memsidecarv1.CreateMemoryRequest:
		if r.GetRequestId() == "" {
			r = proto.CloneOf(r)
			r.RequestId = uuid.NewString()
			req = r
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// limit adds a deadline to a call that has none.
func (c *Client) limit(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.timeout+wait(req))
		defer cancel()
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// wait returns how long a request asks the sidecar to wait for an outcome.
func wait(req any) time.Duration {
	if r, ok := req.(interface{ GetWait() *durationpb.Duration }); ok {
		return max(0, r.GetWait().AsDuration())
	}
	return 0
}
