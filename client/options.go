package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"google.golang.org/grpc"
)

// Option changes what [Dial] makes.
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

// WithTLS encrypts the connection. nil trusts the authorities of the system; a configuration names others, or has a certificate
// of the bot's own.
func WithTLS(config *tls.Config) Option {
	return func(o *options) {
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		o.tls = config.Clone()
	}
}

// WithPlaintext allows an unencrypted connection to another machine: for networks that keep others out by themselves. To this
// machine it needs no permission.
func WithPlaintext() Option { return func(o *options) { o.plaintext = true } }

// WithToken sends a token with every call, as `memsidecar token create` prints it, or as it was read from a file: white space
// around it does not count.
func WithToken(token string) Option {
	return WithTokenFrom(func(context.Context) (string, error) { return token, nil })
}

// WithTokenFrom asks for the token at every call, for tokens that change while the bot runs. "" is none.
func WithTokenFrom(source func(context.Context) (string, error)) Option {
	return func(o *options) { o.token = source }
}

// WithTimeout is how long a call may take whose context has no deadline, besides the `wait` that its request asks for.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithRecallTimeout is how long [Client.Recall] may take, if its context allows as much.
func WithRecallTimeout(d time.Duration) Option { return func(o *options) { o.recall = d } }

// WithRememberTimeout is how long [Client.Remember] may take, if its context allows as much.
func WithRememberTimeout(d time.Duration) Option { return func(o *options) { o.remember = d } }

// WithOnError is told why [Client.Recall] or [Client.Remember], as call names them, had to do without the sidecar. It is called
// by the goroutine of the call, so it should not take long. Without it a warning is logged by slog's default logger; nil tells
// nobody.
func WithOnError(hook func(ctx context.Context, call string, err error)) Option {
	if hook == nil {
		hook = func(context.Context, string, error) {}
	}
	return func(o *options) { o.onError = hook }
}

// WithDialOptions adds what grpc offers beyond these options, such as interceptors.
func WithDialOptions(dial ...grpc.DialOption) Option {
	return func(o *options) { o.dial = append(o.dial, dial...) }
}

func warn(ctx context.Context, call string, err error) {
	//nolint:sloglint // what a library has to say goes where its program logs
	slog.WarnContext(ctx, "the bot goes on without its memory", "call", call, "error", err)
}
