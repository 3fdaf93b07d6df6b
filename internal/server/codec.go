package server

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped here
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// A request that cannot be decoded never reaches an interceptor: grpc answers INTERNAL by itself, which blames the server
// for a caller's mistake. So the codec marks what is wrong, and the decoding step of each method turns it into an
// INVALID_ARGUMENT.

// decodeMark begins the text of every decoding error; grpc puts its own words before it.
const decodeMark = "memsidecar cannot decode the request: "

type codec struct {
	encoding.CodecV2
	maxBytes int
}

func newCodec(maxBytes int) encoding.CodecV2 {
	return codec{CodecV2: encoding.GetCodecV2("proto"), maxBytes: maxBytes}
}

// Unmarshal refuses requests that are too large before it takes them apart.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if data.Len() > c.maxBytes {
		return fmt.Errorf("%sit is %d bytes, more than %d; hand it over in parts", decodeMark, data.Len(), c.maxBytes)
	}
	if err := c.CodecV2.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s%w", decodeMark, err)
	}
	return nil
}

// decodeProblem turns grpc's answer to a request that could not be decoded into an invalid request; other errors stay.
func decodeProblem(err error) error {
	if status.Code(err) != codes.Internal {
		return err
	}
	_, problem, marked := strings.Cut(status.Convert(err).Message(), decodeMark)
	if !marked {
		return err
	}
	if _, rest, ok := strings.Cut(problem, "field memsidecar.v1."); ok && strings.HasSuffix(rest, "contains invalid UTF-8") {
		name, _, _ := strings.Cut(rest, " ") // Message.field
		_, field, _ := strings.Cut(name, ".")
		return memory.Invalid(field, "is not valid UTF-8 (in %s)", name)
	}
	return memory.Invalid("request", "%s", problem)
}

// withDecodeErrors is the service with every unary method's decoding step wrapped. Streams are wrapped by mapStream.
func withDecodeErrors(service *grpc.ServiceDesc) *grpc.ServiceDesc {
	wrapped := *service
	wrapped.Methods = make([]grpc.MethodDesc, len(service.Methods))
	for i, method := range service.Methods {
		handler := method.Handler
		method.Handler = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			return handler(srv, ctx, func(v any) error {
				err := decodeProblem(decode(v))
				if err != nil {
					return toStatus(err).Err() // no interceptor runs after a failed decoding
				}
				return nil
			}, interceptor)
		}
		wrapped.Methods[i] = method
	}
	return &wrapped
}
