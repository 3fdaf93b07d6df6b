package server

import (
	"context"
	"math"
	"net"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/grpc/test/bufconn"
)

// The other edges (JSON over HTTP, MCP) call this server over a connection inside the process. So their calls have the same tokens, limits,
// namespaces, sizes, metrics and spans.

// inProcessBuffer is the size of such a connection's buffer in each direction.
const inProcessBuffer = 1 << 20

// InProcess returns a connection to the server inside this process. It ends with the server; the caller may close it earlier. Calls over it
// send their own tokens.
func (s *Server) InProcess() (*grpc.ClientConn, error) {
	listener := bufconn.Listen(inProcessBuffer)
	conn, err := grpc.NewClient("passthrough:///inside",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	)
	if err != nil {
		return nil, err
	}
	go func() { _ = s.inProcess.Serve(listener) }() // the listener does not fail; Stop closes it
	return conn, nil
}

// Admit checks a call before its request is read: whether the authorization is known and allows the call. The error is a status.
func (s *Server) Admit(ctx context.Context, method string, authorization []string) error {
	header := metadata.MD{}
	header.Append("authorization", authorization...)
	_, err := s.guard.admit(ctx, &tap.Info{FullMethodName: method, Header: header})
	return err
}

// Services returns the full names of all services except reflection.
func (s *Server) Services() []string {
	return append(slices.Clone(services), healthpb.Health_ServiceDesc.ServiceName)
}

// StatusOf returns the status with which the server answers an error.
func StatusOf(err error) *status.Status { return toStatus(err) }
