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

// connection is a connection to a sidecar. Its errors have messages for users.
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
	timeout time.Duration // for each unary call; 0 is none

	encrypted bool

	connected atomic.Bool           // a server has answered
	dialing   atomic.Pointer[error] // last error of connecting
}

// call records how far a call got.
type call struct{ sent, answered atomic.Bool }

// dial prepares the connection. The first call connects.
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
		if !encrypted && !listen.IsLocal(to.Listen) {
			p.note("the token is sent to %s unencrypted, and the network can read it; --tls encrypts it", to.Listen)
		}
	}
	// The dialer resolves the name, so that it also reports a wrong one. It ignores proxies from the environment.
	c.ClientConn, err = grpc.NewClient("passthrough:///"+to.Listen, append(options,
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(c.connect),
		grpc.WithStatsHandler(callTracker{}),
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), // an exported dialogue may be large
		// memsidecar mcp runs for days. A restarted sidecar is found immediately, not after up to two minutes, and a dead connection is
		// noticed, such as after a laptop slept. The client package does the same.
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

// close closes the connection. Errors are ignored, because nothing can be done.
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
		if waiter, ok := req.(interface{ GetWait() *durationpb.Duration }); ok {
			timeout += waiter.GetWait().AsDuration()
		}
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	state := &call{}
	err := invoke(context.WithValue(bounded, callTracker{}, state), method, req, reply, cc, opts...)
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
	s, err := open(context.WithValue(ctx, callTracker{}, state), desc, cc, method, opts...)
	if err != nil {
		return nil, explain(err)
	}
	return translatedStream{s, explain}, nil
}

// translatedStream is a stream whose errors have messages for users.
type translatedStream struct {
	grpc.ClientStream
	explain func(error) error
}

// SendMsg implements grpc.ClientStream. After io.EOF, RecvMsg returns the error.
func (s translatedStream) SendMsg(m any) error { return s.explained(s.ClientStream.SendMsg(m)) }

// RecvMsg implements grpc.ClientStream.
func (s translatedStream) RecvMsg(m any) error { return s.explained(s.ClientStream.RecvMsg(m)) }

func (s translatedStream) explained(err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return s.explain(err)
}

// callTracker records how far each call gets. grpc's errors do not say whether they come from the server.
type callTracker struct{}

// HandleRPC implements stats.Handler.
func (callTracker) HandleRPC(ctx context.Context, event stats.RPCStats) {
	state, ok := ctx.Value(callTracker{}).(*call)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.OutHeader: // only sent to a server that speaks the protocol
		state.sent.Store(true)
	case *stats.InTrailer: // the server ended the call
		state.answered.Store(true)
	}
}

// TagRPC implements stats.Handler.
func (callTracker) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (callTracker) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (callTracker) HandleConn(context.Context, stats.ConnStats) {}
