// Package server is the gRPC surface: it translates between the protocol and the commands behind it, and is, with cmd,
// the only package that knows either. One file a group of calls; errors.go alone knows status codes.
package server

import (
	"context"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/memsidecar/memsidecar/internal/budget"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memories"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/notebook"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/results"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/topics"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/vectorize"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// StorageService is the name under which the health service reports storage. The overall status, "", is SERVING while
// the process can answer, because Retrieve degrades and never fails with storage.
const StorageService = "storage"

// Settings keeps users' settings.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
	Update(ctx context.Context, user memory.User, change func(*memory.Settings)) (memory.Settings, error)
}

// Parts is what the server serves.
type Parts struct {
	Retriever  *retrieve.Retriever
	Considerer *decide.Considerer
	Keeper     *memories.Keeper
	Store      vectorstore.Store
	Queue      queue.Store
	Settings   Settings
	// Sessions are the conversations, Conversations what is done with them.
	Sessions      session.Store
	Conversations *session.Keeper
	Topics        *topics.Counter
	Traces        Traces
	Results       *results.Keeper
	// Digests are those of the users' days.
	Digests  *digest.Keeper
	Notebook *notebook.Keeper
	// StorageProblem says why storage is down, or "".
	StorageProblem func() string
	// Components says how the parts are.
	Components func() []Component
	// Fingerprint is that of the embedder in use, "" until it is known.
	Fingerprint func() string
	// Vectorizing says how far the background embedding is.
	Vectorizing func() vectorize.Progress
	// Usage is what the calls of models since a day cost, the newest day first.
	Usage func(ctx context.Context, namespace string, since time.Time) ([]usage.Sum, error)
	// Prices is what models cost.
	Prices usage.Prices
	// Budgets is how the token budgets of a namespace stand, its own first, and of its user if there is one.
	Budgets func(ctx context.Context, user memory.User) ([]budget.Standing, error)
}

// Component is how one part is.
type Component struct {
	Name, Implementation string
	Breaker              memsidecarv1.BreakerState
	Reason               string
	Since                time.Time
	Remote               bool   // texts are handed to another machine
	Choice               string // why this implementation
	Budgeted             bool   // rules do its work when a token budget is used up
}

// Options describes a Server.
type Options struct {
	Version         string
	MaxRequestBytes int // larger requests are answered INVALID_ARGUMENT
	Visibility      memory.VisibilityRule
	// RecordConsidered records dialogues that are considered in their session, too.
	RecordConsidered bool
	// Window are the defaults of GetContext.
	Window session.Limits
	// Defaults of Retrieve.
	TopK            int
	MinScore        float64
	MaxContextChars int
	// NotebookEntries is the default of GetNotebook.
	NotebookEntries int
	Log             *slog.Logger
}

// services are the names of the services with data behind them.
var services = []string{
	memsidecarv1.MemoryService_ServiceDesc.ServiceName, memsidecarv1.SessionService_ServiceDesc.ServiceName,
	memsidecarv1.TraceService_ServiceDesc.ServiceName, memsidecarv1.ResultService_ServiceDesc.ServiceName,
	memsidecarv1.TraceService_ServiceDesc.ServiceName,
	memsidecarv1.DigestService_ServiceDesc.ServiceName,
}

// Server answers gRPC calls.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
}

// transportLimit is what the transport takes into memory before MaxRequestBytes is checked: beyond it grpc answers
// RESOURCE_EXHAUSTED by itself, and below it the caller gets an error that says what to do.
const transportLimit = 64 << 20

// New returns a server that Serve sets going.
func New(parts Parts, options Options) *Server {
	s := &Server{health: health.NewServer()}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(max(transportLimit, options.MaxRequestBytes)),
		grpc.ForceServerCodecV2(newCodec(options.MaxRequestBytes)),
		grpc.ChainUnaryInterceptor(logUnary(options.Log), mapUnary(options.Log), gateUnary(parts.StorageProblem), callUnary()),
		grpc.ChainStreamInterceptor(logStream(options.Log), mapStream(options.Log), gateStream(parts.StorageProblem)),
		// Bots keep one connection for days, through containers and proxies that drop idle ones silently.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
	)
	service := &memoryService{Parts: parts, options: options, started: time.Now()}
	sessions := &sessionService{Parts: parts, options: options}
	memsidecarv1.RegisterMemoryServiceServer(s.grpc, service)
	memsidecarv1.RegisterSessionServiceServer(s.grpc, sessions)
	memsidecarv1.RegisterTraceServiceServer(s.grpc, &traceService{Parts: parts, options: options, describe: sessions.describe})
	memsidecarv1.RegisterResultServiceServer(s.grpc, &resultService{Parts: parts, options: options})
	memsidecarv1.RegisterDigestServiceServer(s.grpc, &digestService{Parts: parts, options: options})
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	for _, service := range services {
		s.health.SetServingStatus(service, healthpb.HealthCheckResponse_SERVING)
	}
	s.SetStorageServing(parts.StorageProblem() == "")
	return s
}

// SetStorageServing reports storage as up or down to health checks.
func (s *Server) SetStorageServing(up bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if up {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(StorageService, status)
}

// Serve answers calls on the listener until Stop; then it returns nil.
func (s *Server) Serve(listener net.Listener) error { return s.grpc.Serve(listener) }

// Stop reports NOT_SERVING, takes no more calls and lets the running ones finish until the context ends; then it cuts
// them off.
func (s *Server) Stop(ctx context.Context) {
	s.health.Shutdown()
	stopped := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
		s.grpc.Stop()
		<-stopped
	}
}

// memoryService implements memsidecarv1.MemoryServiceServer, in the files named after its calls.
type memoryService struct {
	memsidecarv1.UnimplementedMemoryServiceServer
	Parts
	options Options
	started time.Time
}

// audience is what a request with this scope may see.
func (o *Options) audience(scope memory.Scope) memory.Audience {
	return o.Visibility.AudienceOf(scope.Channel)
}

// viewer is who asks, for what is shared by several people.
func (o *Options) viewer(scope memory.Scope) session.Viewer {
	return session.Viewer{Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel, Audience: o.audience(scope)}
}
