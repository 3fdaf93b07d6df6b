// Package client lets a bot that is written in Go use a sidecar. Most bots need two calls: [Client.Recall] before the answer and
// [Client.Remember] after it. Neither delays an answer beyond its timeout. [Services] are the generated clients for all other calls.
package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/listen"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// DefaultTarget is the sidecar's default address.
const DefaultTarget = "127.0.0.1:7420"

// Default timeouts.
const (
	DefaultTimeout         = 10 * time.Second
	DefaultRecallTimeout   = time.Second // the sidecar's own budget is 800 ms
	DefaultRememberTimeout = 5 * time.Second
)

// Services are the generated clients, one for each service.
type Services struct {
	Memory        memsidecarv1.MemoryServiceClient
	Users         memsidecarv1.UserServiceClient
	Sessions      memsidecarv1.SessionServiceClient
	NumberedLists memsidecarv1.NumberedListServiceClient
	Digests       memsidecarv1.DigestServiceClient
	Traces        memsidecarv1.TraceServiceClient
	Admin         memsidecarv1.AdminServiceClient
}

// NewServices returns the generated clients for a connection.
func NewServices(conn grpc.ClientConnInterface) Services {
	return Services{
		Memory:        memsidecarv1.NewMemoryServiceClient(conn),
		Users:         memsidecarv1.NewUserServiceClient(conn),
		Sessions:      memsidecarv1.NewSessionServiceClient(conn),
		NumberedLists: memsidecarv1.NewNumberedListServiceClient(conn),
		Digests:       memsidecarv1.NewDigestServiceClient(conn),
		Traces:        memsidecarv1.NewTraceServiceClient(conn),
		Admin:         memsidecarv1.NewAdminServiceClient(conn),
	}
}

// Client is a connection to a sidecar. It is safe for concurrent use.
//
// Calls without a deadline get one (see [WithTimeout]), except streams. Calls that are safe to repeat are retried for a short time when the
// sidecar is UNAVAILABLE: reading calls, and ConsiderMemorizing and CreateMemory, which get a request_id if they have none. All other calls
// are tried once.
type Client struct {
	Services
	conn    *grpc.ClientConn
	options options
}

// Dial prepares a connection to the sidecar at target: host:port, or a Unix socket as unix:///path. An empty target means [DefaultTarget].
// Dial fails only when its arguments are invalid. The first call connects, and later calls reconnect when necessary, so a bot may start
// before its sidecar.
func Dial(target string, opts ...Option) (*Client, error) {
	if target == "" {
		target = DefaultTarget
	}
	o := options{timeout: DefaultTimeout, recall: DefaultRecallTimeout, remember: DefaultRememberTimeout, onError: warn}
	for _, option := range opts {
		option(&o)
	}
	if err := o.problems(target); err != nil {
		return nil, err
	}
	c := &Client{options: o}
	conn, err := grpc.NewClient(target, append(c.dialOptions(), o.dial...)...)
	if err != nil {
		return nil, fmt.Errorf("the address %q is invalid: %w; write host:port or unix:///path", target, err)
	}
	c.conn, c.Services = conn, NewServices(conn)
	return c, nil
}

// problems returns all that is wrong with Dial's arguments.
func (o *options) problems(target string) error {
	var wrong []error
	address, ok := addressOf(target)
	if problem := listen.AddressProblem(address); ok && problem != "" {
		return fmt.Errorf("the sidecar's address %s: write host:port or unix:///path", problem)
	}
	if !o.encrypted() && !o.plaintext && !listen.IsLocal(address) {
		wrong = append(wrong, fmt.Errorf("%s is not on this machine, and messages would cross the network unencrypted: "+
			"use WithTLS, or WithPlaintext if you trust that network", target))
	}
	if o.encrypted() && o.plaintext {
		wrong = append(wrong, errors.New("WithTLS and WithPlaintext exclude each other"))
	}
	for name, d := range map[string]time.Duration{
		"WithTimeout": o.timeout, "WithRecallTimeout": o.recall, "WithRememberTimeout": o.remember,
	} {
		if d <= 0 {
			wrong = append(wrong, fmt.Errorf("%s(%s): it must be above 0", name, d))
		}
	}
	return errors.Join(wrong...)
}

// addressOf returns the address in a target, without the resolver's prefix. ok is false for an unsupported resolver.
func addressOf(target string) (address string, ok bool) {
	for _, scheme := range []string{"dns:///", "passthrough:///"} {
		if rest, found := strings.CutPrefix(target, scheme); found {
			return rest, true
		}
	}
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		return target, true // not valid; the caller reports the problem
	}
	if _, socket := listen.SocketPath(target); !socket && strings.Contains(target, "://") {
		return target, false
	}
	return target, true
}

func (c *Client) dialOptions() []grpc.DialOption {
	transport := insecure.NewCredentials()
	if c.options.encrypted() {
		transport = credentials.NewTLS(c.options.tls)
	}
	list := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultServiceConfig(serviceConfig()),
		grpc.WithNoProxy(), // the sidecar runs near the bot
		// Reconnect soon after a restart: an attempt is cheap, and calls do not wait for it.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 5 * time.Second,
		}),
		// Without this, a lost machine is noticed only after 15 minutes. The sidecar allows a ping every ten seconds.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), // an exported dialogue may be large
		grpc.WithChainUnaryInterceptor(c.identify, c.limit),
	}
	if c.options.token != nil {
		list = append(list, grpc.WithPerRPCCredentials(bearer(c.options.token)))
	}
	return list
}

// Conn returns the connection, for services of other packages such as health checks.
func (c *Client) Conn() *grpc.ClientConn { return c.conn }

// Close closes the connection and cancels running calls.
func (c *Client) Close() error { return c.conn.Close() }

// bearer sends a token with every call.
type bearer func(context.Context) (string, error)

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b(ctx)
	if err != nil {
		return nil, err
	}
	switch token = strings.TrimSpace(token); {
	case token == "":
		return nil, nil
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }): // the transport's own error would be unclear
		return nil, status.Error(codes.Unauthenticated, "the token has invalid characters: use it as printed by memsidecar token create")
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Dial checks the transport itself.
func (bearer) RequireTransportSecurity() bool { return false }
