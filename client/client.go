// Package client lets a bot that is written in Go use a sidecar. [Client.Recall] before the answer and [Client.Remember] after
// it are all that most bots need: neither ever keeps the bot from answering. All other calls are the generated clients of
// [Services].
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

// DefaultTarget is where a sidecar listens unless it is told otherwise.
const DefaultTarget = "127.0.0.1:7420"

// The times that hold unless options say otherwise.
const (
	DefaultTimeout         = 10 * time.Second
	DefaultRecallTimeout   = time.Second // the sidecar's own budget is 800 ms
	DefaultRememberTimeout = 5 * time.Second
)

// Services are the generated clients, one for each service of the API.
type Services struct {
	Memory        memsidecarv1.MemoryServiceClient
	Users         memsidecarv1.UserServiceClient
	Sessions      memsidecarv1.SessionServiceClient
	NumberedLists memsidecarv1.NumberedListServiceClient
	Digests       memsidecarv1.DigestServiceClient
	Traces        memsidecarv1.TraceServiceClient
	Admin         memsidecarv1.AdminServiceClient
}

// NewServices makes the generated clients over a connection of the caller's.
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

// Client is a connection to a sidecar. Any number of goroutines may use it.
//
// A call without a deadline gets one, see [WithTimeout]; streams get none. Calls that are safe to repeat are repeated when the
// sidecar is UNAVAILABLE, for a moment: those that read, and ConsiderMemorizing and CreateMemory, which are given a request_id
// unless they have one. All others are tried once.
type Client struct {
	Services
	conn    *grpc.ClientConn
	options options
}

// Dial prepares a connection to the sidecar at target: host:port, or a Unix socket as unix:///path. An empty one means
// [DefaultTarget]. It only fails when what it is given is wrong: the connection is made with the first call, and again
// whenever it is lost. So a bot may start before its sidecar.
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
		return nil, fmt.Errorf("%q is no address of a sidecar: %w; write host:port or unix:///path", target, err)
	}
	c.conn, c.Services = conn, NewServices(conn)
	return c, nil
}

// problems names all that is wrong with what Dial was given.
func (o *options) problems(target string) error {
	var wrong []error
	address, ok := addressOf(target)
	if problem := listen.Problem(address); ok && problem != "" {
		return fmt.Errorf("the sidecar's address %s: write host:port or unix:///path", problem)
	}
	if !o.encrypted() && !o.plaintext && !listen.Local(address) {
		wrong = append(wrong, fmt.Errorf("%s is not on this machine, and what users say would cross the network unencrypted: "+
			"use WithTLS, or WithPlaintext if nobody else is on that network", target))
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

// addressOf is what a target names, without the way in which gRPC looks it up. It is not ok when that is another than these.
func addressOf(target string) (address string, ok bool) {
	for _, scheme := range []string{"dns:///", "passthrough:///"} {
		if rest, found := strings.CutPrefix(target, scheme); found {
			return rest, true
		}
	}
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		return target, true // which it is not, and what is wrong with it is told
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
		grpc.WithNoProxy(), // a sidecar is beside the bot
		// It is found again soon after a restart: trying costs next to nothing, and calls do not wait for it.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 5 * time.Second,
		}),
		// Else a machine that is gone is noticed after a quarter of an hour. The sidecar allows a ping every ten seconds.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), // an exported dialogue may be large
		grpc.WithChainUnaryInterceptor(c.identify, c.limit),
	}
	if c.options.token != nil {
		list = append(list, grpc.WithPerRPCCredentials(bearer(c.options.token)))
	}
	return list
}

// Conn is the connection, for services of other packages, such as health checks.
func (c *Client) Conn() *grpc.ClientConn { return c.conn }

// Close ends the connection, and with it the calls that are under way.
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
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }): // which the transport would refuse in its own words
		return nil, status.Error(codes.Unauthenticated, "the token has characters that no token has: give it as memsidecar token create prints it")
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Dial has seen to it.
func (bearer) RequireTransportSecurity() bool { return false }
