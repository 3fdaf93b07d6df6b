package server

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/inflight"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// boundedClient serves settings with a separate bound for large requests.
func boundedClient(t *testing.T, bytes *inflight.Bytes) stubs {
	t.Helper()
	s := New(Deps{
		Users:   UserDeps{Settings: &manage.Settings{Store: settingsFunc(func() error { return memory.ErrNotFound })}},
		Storage: storage(""),
		Calls:   manage.NewEraser(manage.EraserConfig{}),
	}, Options{MaxRequestBytes: 1 << 20, Bytes: bytes, Log: (&logstest.Log{}).Logger()})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		s.Stop(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return newStubs(conn)
}

// TestLargeRequestsAreRefusedWhenThereIsNoRoom: Small requests are answered normally, and each call releases its memory.
func TestLargeRequestsAreRefusedWhenThereIsNoRoom(t *testing.T) {
	bytes := inflight.NewBytes(1 << 20)
	client := boundedClient(t, bytes)
	send := func(size int, options ...grpc.CallOption) error {
		_, err := client.GetUserSettings(t.Context(), &memsidecarv1.GetUserSettingsRequest{
			Scope: &memsidecarv1.Scope{UserId: "u", AgentId: strings.Repeat("x", size)},
		}, options...)
		return err
	}
	const small, large = 10, 512 << 10 // the large one is an invalid id, which is only detected after reading
	want := func(err error, code codes.Code) {
		t.Helper()
		if status.Code(err) != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
	packed := grpc.UseCompressor(gzip.Name)
	other := bytes.Open(nil)
	if err := other.Grow(64<<20 - large); err != nil {
		t.Fatal(err)
	}
	want(send(small), codes.NotFound)
	want(send(small, packed), codes.NotFound)
	want(send(large), codes.ResourceExhausted)
	want(send(large, packed), codes.ResourceExhausted)
	other.Release()
	want(send(large), codes.InvalidArgument)
	want(send(large, packed), codes.InvalidArgument)
	for _, options := range [][]grpc.CallOption{nil, {packed}} {
		err := send(1<<20, options...)
		want(err, codes.InvalidArgument)
		if !strings.Contains(status.Convert(err).Message(), "send it in parts") {
			t.Errorf("has no remedy: %v", err)
		}
	}
	for deadline := time.Now().Add(time.Minute); bytes.Used() > 0 && time.Now().Before(deadline); { // a call ends after its answer
		time.Sleep(time.Millisecond)
	}
	if bytes.Used() != 0 {
		t.Errorf("%d bytes are counted after the calls", bytes.Used())
	}
}

// TestRequestsAreReadInParts: grpc does not document the methods that read a message in parts. Without them requests would be counted
// only after they are in memory.
func TestRequestsAreReadInParts(t *testing.T) {
	found := false
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		_, found = grpc.ServerTransportStreamFromContext(stream.Context()).(partReader)
		return nil
	}))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Invoke(t.Context(), "/any/call", &memsidecarv1.GetStatusRequest{}, &memsidecarv1.GetStatusResponse{})
	_ = conn.Close()
	s.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if !found {
		t.Error("grpc's transport stream has other methods than those that are used")
	}
}
