package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// watchUnary reports each finished call to Options.Answered, and logs it.
func watchUnary(o *Options) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		started := time.Now()
		resp, err := handler(ctx, req)
		o.answered(ctx, info.FullMethod, started, err)
		return resp, err
	}
}

func watchStream(o *Options) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		started := time.Now()
		err := handler(srv, stream)
		o.answered(stream.Context(), info.FullMethod, started, err)
		return err
	}
}

// answered logs one line for each call. The level is debug when the call succeeded, when the caller cancelled it, and when storage is
// unavailable, which is logged elsewhere. An error's text is logged at debug level only, because it may quote the request.
func (o *Options) answered(ctx context.Context, method string, started time.Time, err error) {
	took := time.Since(started)
	code := status.Code(err)
	if o.Answered != nil {
		o.Answered(method, code.String(), took)
	}
	level := slog.LevelInfo
	switch code {
	case codes.OK, codes.Canceled, codes.Unavailable:
		level = slog.LevelDebug
	case codes.Internal:
		return // logged with its cause elsewhere
	default:
	}
	line := []slog.Attr{slog.String("method", path.Base(method)), slog.String("code", code.String()), slog.Duration("duration", took)}
	line = append(line, traceAttr(ctx)...)
	if ids := metadata.ValueFromIncomingContext(ctx, "x-request-id"); len(ids) == 1 && len(ids[0]) <= 128 {
		line = append(line, slog.String("request_id", ids[0]))
	}
	if err != nil && o.Log.Enabled(ctx, slog.LevelDebug) {
		line = append(line, slog.String("error", status.Convert(err).Message()))
	}
	o.Log.LogAttrs(ctx, level, "call", line...)
}

// traceAttr returns the id of the OpenTelemetry trace that a call belongs to, if any.
func traceAttr(ctx context.Context) []slog.Attr {
	if id := otelCall(ctx).OTelTraceID; id != "" {
		return []slog.Attr{slog.String("otel_trace_id", id)}
	}
	return nil
}

// mapUnary turns errors into statuses and panics into INTERNAL, and rejects requests that could not be decoded.
func mapUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		started := time.Now()
		defer func() { err = mapped(ctx, log, info.FullMethod, started, recover(), err) }()
		if err := unreadProblem(ctx); err != nil {
			return nil, err
		}
		if err := decodingProblem(req); err != nil {
			return nil, err
		}
		return handler(ctx, req)
	}
}

func mapStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		started := time.Now()
		defer func() { err = mapped(stream.Context(), log, info.FullMethod, started, recover(), err) }()
		return handler(srv, stream)
	}
}

func mapped(ctx context.Context, log *slog.Logger, method string, started time.Time, panicked any, err error) error {
	if panicked != nil {
		err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
	}
	if err == nil {
		return nil
	}
	s := toStatus(err)
	if s.Code() == codes.Internal {
		log.LogAttrs(ctx, slog.LevelError, "internal error", append([]slog.Attr{
			slog.String("method", path.Base(method)), slog.String("code", s.Code().String()),
			slog.Duration("duration", time.Since(started)), slog.Any("error", err),
		}, traceAttr(ctx)...)...)
	}
	return s.Err()
}

// gateUnary answers UNAVAILABLE while storage is unavailable, except for calls that work without it.
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
	case memsidecarv1.MemoryService_Retrieve_FullMethodName, memsidecarv1.AdminService_GetStatus_FullMethodName,
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

// userUnary registers calls that may store data of a user, so that none stores anything after the user was forgotten.
func userUnary(calls *manage.Eraser) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		user := userOf(req)
		if user.ID == "" || storesNothingLater(info.FullMethod) {
			return handler(ctx, req)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		call, err := calls.Begin(ctx, user, cancel)
		if err != nil {
			return nil, err
		}
		defer call.Leave()
		resp, err = handler(ctx, req)
		return resp, cancelCause(ctx, err)
	}
}

func userStream(calls *manage.Eraser) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if !info.IsClientStream { // it only reads
			return handler(srv, stream)
		}
		ctx, cancel := context.WithCancelCause(stream.Context())
		defer cancel(nil)
		s := &userServerStream{ServerStream: stream, ctx: ctx, cancel: cancel, calls: calls}
		err := handler(srv, s)
		if s.call != nil {
			s.call.Leave()
		}
		return cancelCause(ctx, err)
	}
}

// userServerStream is a stream whose first message with a scope names its user.
type userServerStream struct {
	grpc.ServerStream
	ctx    context.Context //nolint:containedctx // that of the stream
	cancel context.CancelCauseFunc
	calls  *manage.Eraser
	call   *manage.Call // nil until the user is known
}

// Context implements grpc.ServerStream.
func (s *userServerStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *userServerStream) RecvMsg(m any) error {
	if s.call != nil {
		s.call.Idle(true)
	}
	err := s.ServerStream.RecvMsg(m)
	if s.call != nil {
		s.call.Idle(false)
	}
	if cause := context.Cause(s.ctx); cause != nil && s.call != nil {
		return cause
	}
	if user := userOf(m); err == nil && s.call == nil && user.ID != "" {
		s.call, err = s.calls.Begin(s.ctx, user, s.cancel)
	}
	return err
}

// userOf returns the user that a request names, if any.
func userOf(request any) memory.User {
	r, ok := request.(interface{ GetScope() *memsidecarv1.Scope })
	if !ok || r.GetScope() == nil {
		return memory.User{}
	}
	var v memory.Violations
	return scopeOf(r.GetScope(), false, &v).User()
}

// storesNothingLater reports whether a call may continue while its user is forgotten. What Retrieve and GetContext store in the background
// is dropped then.
func storesNothingLater(method string) bool {
	switch method {
	case memsidecarv1.UserService_ForgetUser_FullMethodName, memsidecarv1.MemoryService_Retrieve_FullMethodName,
		memsidecarv1.AdminService_GetStatus_FullMethodName, memsidecarv1.SessionService_GetContext_FullMethodName:
		return true
	}
	return false
}

// cancelCause returns the cause of a call that the server cancelled itself.
func cancelCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, memory.ErrPrecondition) {
		return cause
	}
	return err
}
