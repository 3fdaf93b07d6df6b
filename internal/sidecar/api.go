package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"google.golang.org/grpc"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/gateway"
	"github.com/memsidecar/memsidecar/internal/listen"
	"github.com/memsidecar/memsidecar/internal/mcp"
	"github.com/memsidecar/memsidecar/internal/observe/ops"
	"github.com/memsidecar/memsidecar/internal/server"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
	"github.com/memsidecar/memsidecar/proto/memsidecar/v1/openapi"
)

// startAPI serves the API over HTTP, if it is wanted: the same calls, through the same server.
func (s *Sidecar) startAPI(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	if cfg.API.Listen == "" {
		return nil
	}
	conn, err := s.server.InProcess()
	if err != nil {
		return err
	}
	s.onStop(func(context.Context) { _ = conn.Close() })
	handler, err := s.apiHandler(cfg, conn)
	if err != nil {
		return err
	}
	listener, err := s.listenAPI(ctx, &cfg)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; choose another address with api.listen", cfg.API.Listen, err)
	}
	s.APIAddr = listener.Addr()
	web := ops.NewServer(handler, log)
	go func() {
		if err := web.Serve(listener); err != nil {
			s.failed <- errors.Join(errors.New("the API's HTTP port failed"), err)
		}
	}()
	s.onStop(web.Stop)
	return nil
}

func (s *Sidecar) listenAPI(ctx context.Context, cfg *config.Config) (net.Listener, error) {
	mode, err := listen.ParseMode(cfg.SocketMode)
	if err != nil {
		return nil, err
	}
	listener, err := listen.Listen(ctx, cfg.API.Listen, mode)
	if err != nil {
		return nil, err
	}
	listener = s.connections.Listen(listener)
	if s.security.tls == nil {
		return listener, nil
	}
	return tls.NewListener(listener, s.security.tls.HTTPConfig()), nil
}

func (s *Sidecar) apiHandler(cfg config.Config, conn *grpc.ClientConn) (http.Handler, error) {
	calls, err := gateway.New(gateway.Backend{
		Conn: conn, Services: s.server.Services(), Admit: s.server.Admit, Status: server.StatusOf,
		ReadingCall: memsidecarv1.AdminService_GetStatus_FullMethodName,
	}, gateway.Options{MaxBytes: int64(cfg.MaxRequestBytes), Bytes: s.bytes, Document: openapi.Document})
	if err != nil {
		return nil, err
	}
	if cfg.API.MCP {
		calls.Handle("/mcp", mcp.Handler(conn, mcp.HTTPOptions{
			Options: mcp.Options{Version: Version()}, User: cfg.API.MCPUser, MaxBytes: int64(cfg.MaxRequestBytes), WriteError: gateway.WriteError,
		}))
	}
	_, socket := listen.SocketPath(cfg.API.Listen)
	return gateway.RejectForeignPages(calls, s.security.tokens == nil && !socket && listen.IsLocal(cfg.API.Listen)), nil
}
