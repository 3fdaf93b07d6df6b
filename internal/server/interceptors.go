package server

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// logUnary writes a debug line a call.
func logUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		started := time.Now()
		resp, err := handler(ctx, req)
		logCall(ctx, log, info.FullMethod, started, err)
		return resp, err
	}
}

func logStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		started := time.Now()
		err := handler(srv, stream)
		logCall(stream.Context(), log, info.FullMethod, started, err)
		return err
	}
}

func logCall(ctx context.Context, log *slog.Logger, method string, started time.Time, err error) {
	log.DebugContext(ctx, "call", "method", path.Base(method), "code", status.Code(err).String(), "duration", time.Since(started))
}

// mapUnary turns errors into statuses and panics into INTERNAL, and refuses what could not be decoded.
func mapUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		defer func() { err = mapped(ctx, log, info.FullMethod, recover(), err) }()
		if err := decodingProblem(req); err != nil {
			return nil, err
		}
		return handler(ctx, req)
	}
}

func mapStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		defer func() { err = mapped(stream.Context(), log, info.FullMethod, recover(), err) }()
		return handler(srv, decodingStream{stream})
	}
}

func mapped(ctx context.Context, log *slog.Logger, method string, panicked any, err error) error {
	if panicked != nil {
		err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
	}
	if err == nil {
		return nil
	}
	s := toStatus(err)
	if s.Code() == codes.Internal {
		log.ErrorContext(ctx, "internal error", "method", path.Base(method), "error", err)
	}
	return s.Err()
}

// gateUnary answers UNAVAILABLE while storage is down, to every call but those that work without.
func gateUnary(problem func() string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if err := gate(info.FullMethod, problem); err != nil {
			return nil, err
		}
		return handler(ctx, req)
	}
}

func gateStream(problem func() string) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if err := gate(info.FullMethod, problem); err != nil {
			return err
		}
		return handler(srv, stream)
	}
}

func gate(method string, problem func() string) error {
	switch method {
	case memsidecarv1.MemoryService_Retrieve_FullMethodName, memsidecarv1.MemoryService_GetStatus_FullMethodName,
		memsidecarv1.SessionService_GetContext_FullMethodName:
		return nil
	}
	if !slices.Contains(services, strings.TrimPrefix(path.Dir(method), "/")) {
		return nil // health and reflection
	}
	if reason := problem(); reason != "" {
		return fmt.Errorf("%w: %s", memory.ErrUnavailable, reason)
	}
	return nil
}
