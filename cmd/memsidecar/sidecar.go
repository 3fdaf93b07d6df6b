package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/inflight"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/server"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Sidecar is the running program: every part, and how they are put together.
type Sidecar struct {
	// Addr is where it listens.
	Addr net.Addr
	// HTTPAddr is where it serves metrics and health checks over HTTP; nil if it does not.
	HTTPAddr net.Addr
	// APIAddr is where it answers calls as JSON over HTTP; nil if it does not.
	APIAddr net.Addr

	// connections and bytes bound what callers can make the process hold.
	connections *inflight.Connections
	bytes       *inflight.Bytes

	server    *server.Server
	entrance  *entrance
	retriever *retrieve.Retriever
	talks     *conversations
	failed    chan error // a listener's end, when it was not asked to stop
	closers   []func(context.Context)
}

// Start opens the storage, starts the workers and answers calls until Stop. The environment is where providers' keys are.
func Start(ctx context.Context, cfg config.Config, environ []string, log *slog.Logger) (*Sidecar, error) {
	return startListening(ctx, cfg, environ, openListener, log)
}

// startListening listens as it is told.
func startListening(ctx context.Context, cfg config.Config, environ []string, listen func(context.Context, *config.Config) (net.Listener, error), log *slog.Logger) (_ *Sidecar, err error) {
	s := &Sidecar{
		failed: make(chan error, 3), connections: inflight.NewConnections(), bytes: inflight.NewBytes(cfg.MaxRequestBytes),
	}
	defer func() {
		if err != nil {
			s.Stop(ctx)
		}
	}()
	p := &parts{Sidecar: s, cfg: cfg, environ: environ, log: log, redactor: cfg.Redact.Redactor(), changed: background.NewNotifier()}
	if p.location, err = time.LoadLocation(cfg.TimeZone); err != nil {
		return nil, err
	}
	// The listener comes first: a second sidecar on the same port should say so, and not that the folder is locked.
	if s.entrance, err = openEntrance(&p.cfg, log); err != nil {
		return nil, err
	}
	listener, err := listen(ctx, &p.cfg)
	if err != nil {
		return nil, err
	}
	listener = s.connections.Listen(listener)
	s.Addr = listener.Addr()
	s.onStop(func(context.Context) { _ = listener.Close() }) // closed already, unless something below failed
	for _, step := range []func(context.Context) error{
		p.startTelling, p.openStorage, p.startModels, p.startReading, p.startWriting, p.startTidying, p.makeServer, p.startOps,
		func(ctx context.Context) error { return p.serve(ctx, listener) },
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func breakerComponent(name, implementation string, status breaker.Status) server.Component {
	states := map[breaker.State]memsidecarv1.BreakerState{
		breaker.Closed:   memsidecarv1.BreakerState_BREAKER_STATE_CLOSED,
		breaker.Open:     memsidecarv1.BreakerState_BREAKER_STATE_OPEN,
		breaker.HalfOpen: memsidecarv1.BreakerState_BREAKER_STATE_HALF_OPEN,
	}
	return server.Component{
		Name: name, Implementation: implementation, Breaker: states[status.State], Reason: status.Reason, Since: status.Since,
	}
}

func (s *Sidecar) onStop(closer func(context.Context)) { s.closers = append(s.closers, closer) }

// Reload reads tokens and certificates again, as SIGHUP does. They are also read again when they change.
func (s *Sidecar) Reload() { s.entrance.reload() }

// Wait returns when the context ends, or with an error when the sidecar ended by itself.
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
