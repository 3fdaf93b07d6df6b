package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"google.golang.org/grpc"
)

// Option configures [Dial].
type Option func(*options)

type options struct {
	tls                       *tls.Config // nil: unencrypted
	plaintext                 bool
	token                     func(context.Context) (string, error)
	timeout, recall, remember time.Duration
	onError                   func(ctx context.Context, call string, err error)
	dial                      []grpc.DialOption
}

func (o *options) encrypted() bool { return o.tls != nil }

// WithTLS encrypts the connection. nil trusts the system's certificate authorities; a configuration can name others, or hold a certificate
// of the bot.
func WithTLS(config *tls.Config) Option {
	return func(o *options) {
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		o.tls = config.Clone()
	}
}

// WithPlaintext allows an unencrypted connection to another machine, for trusted networks. Connections to the same machine do not need it.
func WithPlaintext() Option { return func(o *options) { o.plaintext = true } }

// WithToken sends a token with every call, as printed by `memsidecar token create`. White space around it is removed.
func WithToken(token string) Option {
	return WithTokenFrom(func(context.Context) (string, error) { return token, nil })
}

// WithTokenFrom calls source for the token of every call, for tokens that change while the bot runs. "" means no token.
func WithTokenFrom(source func(context.Context) (string, error)) Option {
	return func(o *options) { o.token = source }
}

// WithTimeout sets the timeout of calls whose context has no deadline. The `wait` of a request is added to it.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithRecallTimeout sets the timeout of [Client.Recall]. An earlier deadline of its context still applies.
func WithRecallTimeout(d time.Duration) Option { return func(o *options) { o.recall = d } }

// WithRememberTimeout sets the timeout of [Client.Remember]. An earlier deadline of its context still applies.
func WithRememberTimeout(d time.Duration) Option { return func(o *options) { o.remember = d } }

// WithOnError sets a hook for errors that [Client.Recall] and [Client.Remember] do not return; call is the method's name. The hook runs in
// the goroutine of the call and should be quick. The default logs a warning with slog's default logger; nil ignores the errors.
func WithOnError(hook func(ctx context.Context, call string, err error)) Option {
	if hook == nil {
		hook = func(context.Context, string, error) {}
	}
	return func(o *options) { o.onError = hook }
}

// WithDialOptions adds gRPC dial options, such as interceptors.
func WithDialOptions(dial ...grpc.DialOption) Option {
	return func(o *options) { o.dial = append(o.dial, dial...) }
}

func warn(ctx context.Context, call string, err error) {
	//nolint:sloglint // a library logs where its program does
	slog.WarnContext(ctx, "memory is unavailable; the bot continues without it", "call", call, "error", err)
}
