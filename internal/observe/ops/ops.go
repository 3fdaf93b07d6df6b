// Package ops is the optional HTTP port for operators: health, readiness, metrics and profiles. It never shows users' texts.
package ops

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/inflight"
)

// Config are the dependencies of the port.
type Config struct {
	// Problems returns why the sidecar cannot store or recall; empty when it is ready.
	Problems func() []string
	// Remarks returns other facts for the operator of a ready sidecar; optional.
	Remarks func() []string
	// Metrics serves Prometheus.
	Metrics http.Handler
	// Pprof serves profiles of the running process.
	Pprof bool
	// Guard protects the profiles, which only operators may see. If nil, every caller who reaches the port sees them.
	Guard func(http.Handler) http.Handler
}

// Handler serves /healthz, /readyz and /metrics, and if configured /debug/pprof/.
func Handler(p Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if problems := p.Problems(); len(problems) > 0 {
			respond(w, http.StatusServiceUnavailable, strings.Join(problems, "\n"))
			return
		}
		text := "ok"
		if p.Remarks != nil {
			text = strings.Join(append([]string{text}, p.Remarks()...), "\n")
		}
		respond(w, http.StatusOK, text)
	})
	mux.Handle("GET /metrics", p.Metrics)
	if p.Pprof {
		guard := p.Guard
		if guard == nil {
			guard = func(h http.Handler) http.Handler { return h }
		}
		for path, handler := range map[string]http.HandlerFunc{
			"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
			"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
		} {
			mux.Handle(path, guard(handler))
		}
	}
	return mux
}

func respond(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // on an error the client is gone
}

// Server serves a handler on a port.
type Server struct{ http *http.Server }

// bodyTimeout is how long the body of a request may take to arrive. The call itself may take longer.
const bodyTimeout = time.Minute

// NewServer returns a server. Call Serve to start it.
func NewServer(handler http.Handler, log *slog.Logger) *Server {
	return newServer(handler, bodyTimeout, log)
}

func newServer(handler http.Handler, bodyTimeout time.Duration, log *slog.Logger) *Server {
	return &Server{&http.Server{
		Handler: limitBodyTime(handler, bodyTimeout), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 64 << 10},
		ConnContext: inflight.WithConn,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
}

// Serve answers requests on the listener until Stop is called; then it returns nil.
func (s *Server) Serve(listener net.Listener) error {
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Stop lets running requests finish. When the context ends, it cancels those.
func (s *Server) Stop(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // the callers of cancelled requests get an error
	}
}
