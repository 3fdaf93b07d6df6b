package server

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// healthService is grpc's, except that who watches is told that the server stops, and does not hold that up: the library's watches
// only end with their callers, who wait for more.
type healthService struct {
	*health.Server
	stopping chan struct{}
	once     sync.Once
}

func newHealthService() *healthService {
	return &healthService{Server: health.NewServer(), stopping: make(chan struct{})}
}

// end reports NOT_SERVING from now on, and ends all watches.
func (s *healthService) end() {
	s.Shutdown()
	s.once.Do(func() { close(s.stopping) })
}

// Watch implements healthpb.HealthServer.
func (s *healthService) Watch(in *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	w := &watch{Health_WatchServer: stream, ctx: ctx}
	err := s.Server.Watch(in, w)
	select {
	case <-s.stopping:
	default:
		return err
	}
	if w.last == healthpb.HealthCheckResponse_SERVING { // that it no longer serves may not have been sent before the end
		if err := stream.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}); err != nil {
			return err
		}
	}
	return status.Error(codes.Unavailable, "the sidecar stops")
}

// watch is a stream that ends earlier than its caller, and knows what was sent last.
type watch struct {
	healthpb.Health_WatchServer
	ctx  context.Context //nolint:containedctx // that of the stream
	last healthpb.HealthCheckResponse_ServingStatus
}

// Context implements grpc.ServerStream.
func (w *watch) Context() context.Context { return w.ctx }

// Send implements healthpb.Health_WatchServer.
func (w *watch) Send(m *healthpb.HealthCheckResponse) error {
	w.last = m.GetStatus()
	return w.Health_WatchServer.Send(m)
}
