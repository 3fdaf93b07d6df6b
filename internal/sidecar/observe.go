package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/breaker"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/observe/metrics"
	"github.com/memsidecar/memsidecar/internal/observe/ops"
	"github.com/memsidecar/memsidecar/internal/observe/telemetry"
	"github.com/memsidecar/memsidecar/internal/server"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

// Metrics, spans, and the HTTP port of operators.

// The background loops, as metrics name them.
const (
	loopConsiderations = "considerations"
	loopSessions       = "sessions"
	loopDigests        = "digests"
	loopVectors        = "vectors"
	loopMessages       = "messages"
	loopNumberedLists  = "numbered_lists"
	loopTraces         = "traces"
)

// startTracing returns what records spans, nil when they are not configured.
func startTracing(
	ctx context.Context, cfg config.Config, environ []string, log *slog.Logger,
) (_ oteltrace.TracerProvider, stop func(context.Context), err error) {
	wanted := cfg.OTel.Endpoint != "" || config.Getenv(environ, "OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		config.Getenv(environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	disabled := strings.EqualFold(config.Getenv(environ, "OTEL_SDK_DISABLED"), "true") ||
		config.Getenv(environ, "OTEL_TRACES_EXPORTER") == "none"
	if !wanted || disabled {
		return nil, func(context.Context) {}, nil
	}
	provider, err := telemetry.Open(ctx, telemetry.Options{
		Endpoint: cfg.OTel.Endpoint, Protocol: cfg.OTel.Protocol, Version: Version(), Log: log,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("spans cannot be sent: %w", err)
	}
	return provider, func(ctx context.Context) {
		if err := provider.Shutdown(ctx); err != nil {
			log.Debug("the last spans were not sent", "error", err)
		}
	}, nil
}

// watched are the parts that metrics are read from at each scrape.
type watched struct {
	storage *sqlite.Storage
	queue   *sqlstore.Queue
	store   *storelocal.Store
	models  *models
}

func (w watched) sources() metrics.Sources {
	breakers := map[string]func() breaker.Status{"storage": w.storage.Status, "storage_writes": w.storage.WriteStatus}
	for part, b := range w.models.breakers {
		breakers[part] = b.Status
	}
	return metrics.Sources{
		Breakers: breakers, Queue: w.queue.Depths, Sizes: w.storage.Sizes,
		Waiting: func() (int64, bool) {
			p := w.queue.Pending()
			return p.Bytes, p.Counted
		},
		Index: func() metrics.IndexCache { return metrics.IndexCache(w.store.CacheStats()) },
	}
}

// startHTTP serves the operators' port, if one is configured.
func (s *Sidecar) startHTTP(ctx context.Context, cfg config.Config, parts ops.Config, log *slog.Logger) error {
	if cfg.HTTP.Listen == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.HTTP.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; choose another address with http.listen", cfg.HTTP.Listen, err)
	}
	s.HTTPAddr = listener.Addr()
	server := ops.NewServer(ops.Handler(parts), log)
	go func() {
		if err := server.Serve(s.connections.Listen(listener)); err != nil {
			s.failed <- errors.Join(errors.New("the HTTP port failed"), err)
		}
	}()
	s.onStop(server.Stop)
	return nil
}

// operatorsOnly protects what only an operator may see. Where calls need tokens, this needs one with the level admin in all namespaces,
// because a profile covers all of them. Where calls need none, profiles are served on loopback only, so callers are on this machine.
func operatorsOnly(tokens server.Authenticator) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		if tokens == nil {
			return h
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			grant, err := tokens.Authenticate(access.Bearer(r.Header.Values("Authorization")))
			if err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			}
			if err := cmp.Or(grant.CheckLevel(access.Admin), grant.CheckAllNamespaces()); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}
