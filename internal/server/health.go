package server

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// healthService is grpc's health service with one difference: it ends its watches when the server stops. The library's watches end only
// with their callers and would delay the stop.
type healthService struct {
	*health.Server
	stopping chan struct{}
	once     sync.Once
}

func newHealthService() *healthService {
	return &healthService{Server: health.NewServer(), stopping: make(chan struct{})}
}

// end reports NOT_SERVING and ends all watches.
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
	if w.last == healthpb.HealthCheckResponse_SERVING { // the watch may have ended before NOT_SERVING was sent
		if err := stream.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}); err != nil {
			return err
		}
	}
	return status.Error(codes.Unavailable, "the sidecar is stopping")
}

// watch is a stream with its own end. It remembers the status that it sent last.
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
