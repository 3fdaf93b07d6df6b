package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// failingSidecar is a sidecar that answers every GetMemory with an error.
type failingSidecar struct {
	memsidecarv1.UnimplementedMemoryServiceServer
	err error
}

func (a failingSidecar) GetMemory(context.Context, *memsidecarv1.GetMemoryRequest) (*memsidecarv1.GetMemoryResponse, error) {
	return nil, a.err
}

func get(t *testing.T, addr string) error {
	t.Helper()
	command := memoriesGet{ID: "m"}
	command.User, command.Addr, command.Timeout = "u", addr, sidecartest.Timeout
	return command.Run(t.Context(), &Program{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
}

func TestStatusCodesBecomeMessages(t *testing.T) {
	exhausted, err := status.New(codes.ResourceExhausted, "too much waits").
		WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := status.New(codes.InvalidArgument, "invalid").
		WithDetails(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "scope.user_id", Description: "scope.user_id is \x1b[31mtoo long"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		err  error
		code int
		says string
	}{
		"overload":    {exhausted.Err(), ExitUnavailable, "too much waits; try again in 7s"},
		"wrong field": {wrong.Err(), ExitUsage, `--user is \u{1b}[31mtoo long`},
		"storage down": {
			status.Error(codes.Unavailable, "storage is unavailable: the disk is full"), ExitUnavailable,
			"cannot do that now: storage is unavailable: the disk is full",
		},
		"not found":      {status.Error(codes.NotFound, `memory "m": not found`), ExitNotFound, `memory "m": not found`},
		"precondition":   {status.Error(codes.FailedPrecondition, "failed precondition: not now"), ExitFailure, "not now"},
		"internal":       {status.Error(codes.Internal, "internal error"), ExitFailure, "internal error"},
		"other version":  {status.Error(codes.Unimplemented, "unknown method"), ExitFailure, "is of another version"},
		"out of time":    {status.Error(codes.DeadlineExceeded, "the deadline was exceeded"), ExitUnavailable, "did not answer in time"},
		"somebody's end": {status.Error(codes.Canceled, "the call was cancelled"), ExitFailure, "the call was cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			memsidecarv1.RegisterMemoryServiceServer(server, failingSidecar{err: test.err})
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
			if got := get(t, listener.Addr().String()); ExitCode(got) != test.code || !strings.Contains(got.Error(), test.says) {
				t.Errorf("%d, %q, want %d, %q", ExitCode(got), got, test.code, test.says)
			}
		})
	}
}

func TestOtherServerIsNamedInTheError(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	addr := web.Listener.Addr().String()
	if err := get(t, addr); ExitCode(err) != ExitUnavailable ||
		!strings.Contains(err.Error(), "the server at "+addr+" is not a sidecar") {
		t.Errorf("%d, %q", ExitCode(err), err)
	}
	if err := get(t, "nowhere.invalid:7420"); ExitCode(err) != ExitUnavailable || !strings.Contains(err.Error(), "check that it is running there") {
		t.Errorf("%d, %q", ExitCode(err), err)
	}
}
