// Package sidecar builds a running sidecar from its configuration: it opens the storage, chooses the models, connects the use cases
// with both, and serves them. It is the only package that knows every implementation. Command memsidecar runs one, memeval measures
// one, and tests start one in their own process.
package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/inflight"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/server"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Sidecar is a running sidecar.
type Sidecar struct {
	// Addr is where it listens.
	Addr net.Addr
	// HTTPAddr is where it serves metrics and health checks over HTTP; nil if it does not.
	HTTPAddr net.Addr
	// APIAddr is where it answers calls as JSON over HTTP; nil if it does not.
	APIAddr net.Addr

	// connections and bytes limit the memory that callers can occupy.
	connections *inflight.Connections
	bytes       *inflight.Bytes

	// Retriever and Sessions answer calls without gRPC, for programs that measure them.
	Retriever *retrieve.Retriever
	Sessions  *session.Service

	server   *server.Server
	security *security
	indexing *recall.Worker
	calls    *usage.Recorder
	failed   chan error // receives the error of a listener that ended without being stopped
	closers  []func(context.Context)
}

// Options are the environment of a sidecar.
type Options struct {
	// Environ is the environment, as os.Environ returns it: keys of model providers and the variables of OpenTelemetry are read from it.
	Environ []string
	// Listen opens the gRPC listener; nil listens on the configured address.
	Listen func(context.Context) (net.Listener, error)
	// Now is the clock by which the use cases tell the day, and what is due or expired; nil is time.Now. It must run: what is due is
	// waited for. Durations, deadlines and traces are measured with the machine's clock, and so is which memories are expired in the index.
	Now func() time.Time
	Log *slog.Logger
}

// ConfigError means that no sidecar can start with the configuration, on any machine.
type ConfigError struct{ error }

// Unwrap returns the cause.
func (e ConfigError) Unwrap() error { return e.error }

// Check reports mistakes in a configuration that can be found without opening the storage or calling a model.
func Check(cfg config.Config, environ []string) error {
	if err := (&models{cfg: cfg, environ: environ}).check(); err != nil {
		return err
	}
	_, err := openSecurity(&cfg, slog.New(slog.DiscardHandler))
	return err
}

// Start opens the storage, starts the workers and answers calls until Stop. A wrong configuration is a [ConfigError].
func Start(ctx context.Context, cfg config.Config, options Options) (_ *Sidecar, err error) {
	s := &Sidecar{
		failed: make(chan error, 3), connections: inflight.NewConnections(), bytes: inflight.NewBytes(cfg.MaxRequestBytes),
	}
	defer func() {
		if err != nil {
			s.Stop(ctx)
		}
	}()
	if options.Now == nil {
		options.Now = time.Now
	}
	p := &components{Sidecar: s, Options: options, cfg: cfg, redactor: cfg.Redact.Redactor(), changed: background.NewNotifier()}
	if p.location, err = time.LoadLocation(cfg.TimeZone); err != nil {
		return nil, err
	}
	// The listener comes first: a second sidecar on the same port should say so, and not that the folder is locked.
	if s.security, err = openSecurity(&p.cfg, p.Log); err != nil {
		return nil, err
	}
	if options.Listen == nil {
		options.Listen = func(ctx context.Context) (net.Listener, error) { return openListener(ctx, &p.cfg) }
	}
	listener, err := options.Listen(ctx)
	if err != nil {
		return nil, err
	}
	listener = s.connections.Listen(listener)
	s.Addr = listener.Addr()
	s.onStop(func(context.Context) { _ = listener.Close() }) // the server closed it before, unless a step below failed
	for _, step := range []func(context.Context) error{
		p.startMetrics, p.openStorage, p.startModels, p.startReading, p.startWriting, p.startCleanup, p.newServer, p.startOps,
		func(ctx context.Context) error { return p.serve(ctx, listener) },
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	s.warn(&p.cfg, p.Log)
	return s, nil
}

// CatchUp waits until all messages can be recalled, and writes the model calls that are not counted yet. It is for programs that measure.
func (s *Sidecar) CatchUp(ctx context.Context) {
	s.indexing.CatchUp()
	s.calls.Flush(ctx)
}

func (s *Sidecar) onStop(closer func(context.Context)) { s.closers = append(s.closers, closer) }

// Reloadable reports whether there are tokens or certificates to read again.
func (s *Sidecar) Reloadable() bool { return s.security.reloadable() }

// Reload reads tokens and certificates again, as SIGHUP does. A change of their files is noticed without it.
func (s *Sidecar) Reload() { s.security.reload() }

// Wait returns nil when the context ends, or an error when a listener failed.
func (s *Sidecar) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return errors.Join(errors.New("the server stopped"), err)
	}
}

// Stop closes everything in reverse order of opening: gracefully until the context ends, then hard.
func (s *Sidecar) Stop(ctx context.Context) {
	for _, closer := range slices.Backward(s.closers) {
		closer(ctx)
	}
	s.closers = nil
}
