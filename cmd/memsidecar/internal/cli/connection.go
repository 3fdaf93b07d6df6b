package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/listen"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// connection is a client of all services of a sidecar. Its errors tell people what to do (see explain).
type connection struct {
	memsidecarv1.MemoryServiceClient
	memsidecarv1.UserServiceClient
	memsidecarv1.SessionServiceClient
	memsidecarv1.NumberedListServiceClient
	memsidecarv1.DigestServiceClient
	memsidecarv1.TraceServiceClient
	memsidecarv1.AdminServiceClient
	*grpc.ClientConn
	addr    string
	timeout time.Duration // of each unary call; 0 is none

	encrypted bool

	connected atomic.Bool           // a connection was established
	dialing   atomic.Pointer[error] // the last error of connecting
}

// call records whether a request was sent and whether the server answered it.
type call struct{ sent, answered atomic.Bool }

// dial returns a connection. The first call establishes it.
func (f calls) dial(p *Program) (*connection, error) {
	if f.Timeout <= 0 {
		return nil, usage("--timeout %s: write a time above 0, for example 30s", f.Timeout)
	}
	return f.sidecarFlag.dial(p, f.Timeout)
}

// reach returns the scope and a connection. It reports an invalid scope before it dials.
func (f calls) reach(p *Program, about func() (*memsidecarv1.Scope, error)) (*memsidecarv1.Scope, *connection, error) {
	scope, err := about()
	if err != nil {
		return nil, nil, err
	}
	conn, err := f.dial(p)
	return scope, conn, err
}

// ask dials, makes one call about a scope, and hangs up.
func ask[R any](p *Program, f calls, about func() (*memsidecarv1.Scope, error), call func(*connection, *memsidecarv1.Scope) (R, error)) (r R, err error) {
	scope, conn, err := f.reach(p, about)
	if err != nil {
		return r, err
	}
	defer conn.close()
	return call(conn, scope)
}

func (f sidecarFlag) dial(p *Program, timeout time.Duration) (*connection, error) {
	to, err := f.address(p)
	if err != nil {
		return nil, err
	}
	transport, encrypted, err := f.encryption(to)
	if err != nil {
		return nil, err
	}
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	c := &connection{addr: to.Listen, timeout: timeout, encrypted: encrypted}
	var options []grpc.DialOption
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(token)))
		if !encrypted && !listen.Local(to.Listen) {
			p.note("the token is sent to %s unencrypted, and the network can read it; --tls encrypts it", to.Listen)
		}
	}
	// With passthrough the dialer resolves the name, so that it sees errors of DNS, too; and it does not use the environment's proxies.
	c.ClientConn, err = grpc.NewClient("passthrough:///"+to.Listen, append(options,
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(c.connect),
		grpc.WithStatsHandler(watch{}),
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), // an exported dialogue may be large
		// memsidecar mcp may run for days. Short pauses find a restarted sidecar soon; grpc's own grow to two minutes. Keepalive notices
		// a connection that was lost without a message, for example while a laptop slept. The package client does the same.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay:  50 * time.Millisecond,
				Multiplier: 1.6,
				Jitter:     0.2,
				MaxDelay:   500 * time.Millisecond,
			},
			MinConnectTimeout: 20 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
	)...)
	if err != nil {
		return nil, err
	}
	c.MemoryServiceClient = memsidecarv1.NewMemoryServiceClient(c.ClientConn)
	c.UserServiceClient = memsidecarv1.NewUserServiceClient(c.ClientConn)
	c.SessionServiceClient = memsidecarv1.NewSessionServiceClient(c.ClientConn)
	c.TraceServiceClient = memsidecarv1.NewTraceServiceClient(c.ClientConn)
	c.NumberedListServiceClient = memsidecarv1.NewNumberedListServiceClient(c.ClientConn)
	c.DigestServiceClient = memsidecarv1.NewDigestServiceClient(c.ClientConn)
	c.AdminServiceClient = memsidecarv1.NewAdminServiceClient(c.ClientConn)
	return c, nil
}

// close ends the connection; there is nothing to do about an error.
func (c *connection) close() { _ = c.Close() }

func (c *connection) connect(ctx context.Context, addr string) (net.Conn, error) {
	network := "tcp"
	if path, ok := listen.SocketPath(addr); ok {
		network, addr = "unix", path
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		c.dialing.Store(&err)
		return nil, err
	}
	c.connected.Store(true)
	return conn, nil
}

// obstacle returns in parentheses why there is no connection, or "" if no process listens at the address.
func (c *connection) obstacle() string {
	cause := c.dialing.Load()
	if cause == nil || errors.Is(*cause, syscall.ECONNREFUSED) {
		return ""
	}
	if dns, ok := errors.AsType[*net.DNSError](*cause); ok {
		return " (" + dns.Error() + ")"
	}
	return fmt.Sprintf(" (%v)", *cause)
}

func (c *connection) unary(
	ctx context.Context,
	method string,
	req, reply any,
	cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	bounded := ctx
	if c.timeout > 0 {
		timeout := c.timeout
		if waits, ok := req.(interface{ GetWait() *durationpb.Duration }); ok {
			timeout += waits.GetWait().AsDuration()
		}
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	state := &call{}
	err := invoke(context.WithValue(bounded, watch{}, state), method, req, reply, cc, opts...)
	return c.explain(ctx, state, err)
}

func (c *connection) stream(
	ctx context.Context,
	desc *grpc.StreamDesc,
	cc *grpc.ClientConn,
	method string,
	open grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	state := &call{}
	explain := func(err error) error { return c.explain(ctx, state, err) }
	s, err := open(context.WithValue(ctx, watch{}, state), desc, cc, method, opts...)
	if err != nil {
		return nil, explain(err)
	}
	return explained{s, explain}, nil
}

// explained is a stream whose errors tell people what to do.
type explained struct {
	grpc.ClientStream
	explain func(error) error
}

// SendMsg implements grpc.ClientStream. io.EOF means that RecvMsg returns the error.
func (s explained) SendMsg(m any) error { return s.failed(s.ClientStream.SendMsg(m)) }

// RecvMsg implements grpc.ClientStream.
func (s explained) RecvMsg(m any) error { return s.failed(s.ClientStream.RecvMsg(m)) }

func (s explained) failed(err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return s.explain(err)
}

// watch records how far each call gets, because errors of grpc do not say whether the server returned them.
type watch struct{}

// HandleRPC implements stats.Handler.
func (watch) HandleRPC(ctx context.Context, event stats.RPCStats) {
	state, ok := ctx.Value(watch{}).(*call)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.OutHeader: // only if the server speaks gRPC's protocol
		state.sent.Store(true)
	case *stats.InTrailer: // the server ended the call
		state.answered.Store(true)
	}
}

// TagRPC implements stats.Handler.
func (watch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (watch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (watch) HandleConn(context.Context, stats.ConnStats) {}
