// Package server implements the gRPC API. A handler translates a request, calls one use case, and translates the result; it decides nothing
// itself. Each service has its own file. Only errors.go maps errors to status codes.
package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/memsidecar/memsidecar/internal/inflight"
	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// StorageService is the name of storage in the health service. The overall status, "", is SERVING while the process can answer, because
// Retrieve degrades instead of failing when storage is unavailable.
const StorageService = "storage"

// StorageReadService is the name that reports whether storage can at least be read.
const StorageReadService = "storage.read"

// Deps are the dependencies of the server: those of each service, and those that all calls use.
type Deps struct {
	Memories MemoryDeps
	Users    UserDeps
	Sessions SessionDeps
	Lists    *lists.Service
	Digests  DigestDeps
	Traces   Traces
	Admin    AdminDeps

	Storage memory.Storage
	// Calls registers the calls that may store data of a user, so that none stores anything after the user was forgotten.
	Calls *manage.Eraser
	// Tokens decides who may call, and Limiter how often. If nil, there is no restriction.
	Tokens  Authenticator
	Limiter Limiter
	// PageKey returns the database's key that encrypts page tokens.
	PageKey func(ctx context.Context) ([]byte, error)
}

// Options configures a Server.
type Options struct {
	Version         string
	TLS             *tls.Config       // nil: connections are not encrypted
	MaxRequestBytes int               // larger requests are answered INVALID_ARGUMENT
	Bytes           *inflight.Bytes   // limits the memory of large messages, shared with other edges; nil: a limit of its own
	Visibility      memory.Visibility // who may see what
	// OwnAgent restricts requests that name an agent, and set no agent filter, to that agent's memories.
	OwnAgent bool
	// Window holds the defaults of GetContext.
	Window session.Limits
	// MaxPerUser is how many memories a user may have; 0 means no limit.
	MaxPerUser int
	// MaxPending limits the pending considerations of all namespaces, MaxPendingBytes the size of their dialogues; 0 means no limit.
	MaxPending, MaxPendingBytes int64
	// Defaults of Retrieve.
	TopK            int
	MinRelevance    float64
	MaxContextChars int
	// NotebookEntries is the default of GetNotebook.
	NotebookEntries int
	// Now is the clock; by default time.Now.
	Now func() time.Time
	// Answered is called after each call with its full method, code and duration. Optional.
	Answered func(method, code string, took time.Duration)
	// Tracing records the calls as OpenTelemetry spans; nil records none.
	Tracing oteltrace.TracerProvider
	Log     *slog.Logger
}

// services are the names of the services that use storage.
var services = []string{
	memsidecarv1.MemoryService_ServiceDesc.ServiceName,
	memsidecarv1.UserService_ServiceDesc.ServiceName,
	memsidecarv1.SessionService_ServiceDesc.ServiceName,
	memsidecarv1.NumberedListService_ServiceDesc.ServiceName,
	memsidecarv1.DigestService_ServiceDesc.ServiceName,
	memsidecarv1.TraceService_ServiceDesc.ServiceName,
	memsidecarv1.AdminService_ServiceDesc.ServiceName,
}

// Server answers gRPC calls.
type Server struct {
	grpc      *grpc.Server
	inProcess *grpc.Server // serves the other edges over one connection
	health    *healthService
	guard     *guard
}

// connectionTimeout is how long a client's handshake may take, including TLS.
const connectionTimeout = 10 * time.Second

// New returns a server. Call Serve to start it.
func New(parts Deps, options Options) *Server {
	if options.Now == nil {
		options.Now = time.Now
	}
	guard := &guard{tokens: parts.Tokens, limiter: parts.Limiter, log: options.Log}
	s := &Server{health: newHealthService(), guard: guard}
	pages := &pages{load: parts.PageKey}
	bytes := options.Bytes
	if bytes == nil {
		bytes = inflight.NewBytes(options.MaxRequestBytes)
	}
	through := &transport{
		codec: newCodec(options.MaxRequestBytes), maxBytes: options.MaxRequestBytes, bytes: bytes, lists: semaphore.NewWeighted(gatherers),
		unary: chained(
			watchUnary(&options),
			mapUnary(options.Log),
			guard.unary(),
			gateUnary(parts.Storage.Problem),
			userUnary(parts.Calls),
			pages.unary(),
			callUnary(),
		),
	}
	common := append(
		tracing(options.Tracing),
		grpc.InTapHandle(guard.admit),
		grpc.MaxRecvMsgSize(options.MaxRequestBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ForceServerCodecV2(through.codec),
		grpc.ChainStreamInterceptor(
			watchStream(&options),
			mapStream(options.Log),
			through.stream(),
			guard.stream(),
			gateStream(parts.Storage.Problem),
			userStream(parts.Calls),
		),
	)
	transport := insecure.NewCredentials()
	if options.TLS != nil {
		transport = credentials.NewTLS(options.TLS)
	}
	s.grpc = grpc.NewServer(append(slices.Clone(common),
		grpc.Creds(transport),
		grpc.ConnectionTimeout(connectionTimeout),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		// Bots keep a connection open for days, and containers and proxies drop idle connections silently.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
	)...)
	s.inProcess = grpc.NewServer(
		append(slices.Clone(common), grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connWindow))...)
	memories := &memoryService{MemoryDeps: parts.Memories, options: options}
	users := &userService{UserDeps: parts.Users, options: options}
	sessions := &sessionService{SessionDeps: parts.Sessions, options: options}
	lists := &numberedListService{Lists: parts.Lists, options: options}
	digests := &digestService{DigestDeps: parts.Digests, options: options}
	traces := &traceService{Traces: parts.Traces, options: options, describe: sessions.describe}
	admin := &adminService{AdminDeps: parts.Admin, options: options, started: time.Now()}
	for _, server := range []*grpc.Server{s.grpc, s.inProcess} {
		registrar := registrar{server, through}
		memsidecarv1.RegisterMemoryServiceServer(registrar, memories)
		memsidecarv1.RegisterUserServiceServer(registrar, users)
		memsidecarv1.RegisterSessionServiceServer(registrar, sessions)
		memsidecarv1.RegisterNumberedListServiceServer(registrar, lists)
		memsidecarv1.RegisterDigestServiceServer(registrar, digests)
		memsidecarv1.RegisterTraceServiceServer(registrar, traces)
		memsidecarv1.RegisterAdminServiceServer(registrar, admin)
		healthpb.RegisterHealthServer(registrar, s.health)
		reflection.Register(registrar)
	}
	for _, service := range services {
		s.health.SetServingStatus(service, healthpb.HealthCheckResponse_SERVING)
	}
	readable := parts.Storage.Problem() == ""
	s.SetStorageServing(readable, readable && parts.Storage.WriteProblem() == "")
	return s
}

// tracing records calls as spans, as children of the caller's span if there is one. Health checks are frequent and left out.
func tracing(provider oteltrace.TracerProvider) []grpc.ServerOption {
	if provider == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithFilter(filters.Not(filters.HealthCheck())),
	))}
}

// SetStorageServing reports to health checks whether storage can be read, and whether it can be written to as well.
func (s *Server) SetStorageServing(readable, writable bool) {
	for service, up := range map[string]bool{StorageService: writable, StorageReadService: readable} {
		status := healthpb.HealthCheckResponse_NOT_SERVING
		if up {
			status = healthpb.HealthCheckResponse_SERVING
		}
		s.health.SetServingStatus(service, status)
	}
}

// Serve answers calls on the listener until Stop is called; then it returns nil.
func (s *Server) Serve(listener net.Listener) error { return s.grpc.Serve(listener) }

// EndWatches reports NOT_SERVING to health checks and ends watches. Stop does this too, but edges that wait for their own calls have to be
// stopped before Stop is called.
func (s *Server) EndWatches() { s.health.end() }

// Stop reports NOT_SERVING, accepts no new calls and lets the running ones finish. When the context ends, it cancels those.
func (s *Server) Stop(ctx context.Context) {
	s.health.end()
	stopped := make(chan struct{})
	go func() {
		s.inProcess.GracefulStop()
		s.grpc.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
		s.inProcess.Stop()
		s.grpc.Stop()
		<-stopped
	}
}

// audience returns what a request with this scope may see.
func (o *Options) audience(scope memory.Scope) memory.Audience {
	return o.Visibility.AudienceOf(scope)
}

// viewer returns the caller's view of data that several people share.
func (o *Options) viewer(scope memory.Scope) session.Viewer {
	return session.ViewerOf(scope, o.Visibility)
}
