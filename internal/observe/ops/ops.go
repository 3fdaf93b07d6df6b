// Package ops is the optional HTTP port for operators and their programs: whether the process lives and is ready, metrics,
// and profiles. Users' texts do not pass it.
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

// Parts is what the port serves.
type Parts struct {
	// Problems says what keeps the sidecar from storing and recalling, in words; none when it is ready.
	Problems func() []string
	// Remarks says what else an operator should know while it is ready; optional.
	Remarks func() []string
	// Metrics answers Prometheus.
	Metrics http.Handler
	// Pprof serves profiles of the running process.
	Pprof bool
	// Guard wraps what only an operator may see: the profiles. nil lets everybody who reaches the port see them.
	Guard func(http.Handler) http.Handler
}

// Handler serves /healthz, /readyz and /metrics, and /debug/pprof/ if it is wanted.
func Handler(p Parts) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if problems := p.Problems(); len(problems) > 0 {
			say(w, http.StatusServiceUnavailable, strings.Join(problems, "\n"))
			return
		}
		text := "ok"
		if p.Remarks != nil {
			text = strings.Join(append([]string{text}, p.Remarks()...), "\n")
		}
		say(w, http.StatusOK, text)
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

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // whoever asked is gone
}

// Server serves a handler on a port.
type Server struct{ http *http.Server }

// patience is how long the body of a request may take to arrive. The call itself may take longer.
const patience = time.Minute

// NewServer returns a server that Serve sets going.
func NewServer(handler http.Handler, log *slog.Logger) *Server {
	return newServer(handler, patience, log)
}

func newServer(handler http.Handler, patience time.Duration, log *slog.Logger) *Server {
	return &Server{&http.Server{
		Handler: arriving(handler, patience), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 64 << 10},
		ConnContext: inflight.WithConn,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
}

// Serve answers requests on the listener until Stop; then it returns nil.
func (s *Server) Serve(listener net.Listener) error {
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Stop lets running requests finish until the context ends; then it cuts them off.
func (s *Server) Stop(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // what is cut off ends in an error for its caller
	}
}
