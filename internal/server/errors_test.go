package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// settingsFunc is a settings store that answers every Get.
type settingsFunc func() error

func (f settingsFunc) Get(context.Context, memory.User) (memory.Settings, error) {
	return memory.Settings{}, f()
}

func (settingsFunc) Update(context.Context, memory.User, func(*memory.Settings)) (memory.Settings, error) {
	return memory.Settings{}, nil
}

// stubs are clients of the services that most tests call.
type stubs struct {
	memsidecarv1.MemoryServiceClient
	memsidecarv1.UserServiceClient
	memsidecarv1.AdminServiceClient
}

func newStubs(conn grpc.ClientConnInterface) stubs {
	return stubs{
		memsidecarv1.NewMemoryServiceClient(conn),
		memsidecarv1.NewUserServiceClient(conn),
		memsidecarv1.NewAdminServiceClient(conn),
	}
}

// storage is unavailable for this reason. "" means available.
type storage string

func (s storage) Problem() string    { return string(s) }
func (storage) WriteProblem() string { return "" }

// newClient serves the services until the test ends.
func newClient(t *testing.T, parts Deps) (stubs, *logstest.Log) {
	t.Helper()
	log := &logstest.Log{}
	parts.Calls = manage.NewEraser(manage.EraserConfig{})
	if parts.Storage == nil {
		parts.Storage = storage("")
	}
	s := New(parts, Options{MaxRequestBytes: 1 << 20, Visibility: memory.NewVisibility(memory.VisibilityChannel, nil), Log: log.Logger()})
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
	return newStubs(conn), log
}

// TestErrorsHaveCodes: Every error has one code. Unexpected errors are logged, not returned to the caller.
func TestErrorsHaveCodes(t *testing.T) {
	const secret = "open /home/operator/secret.db: key=AIza123"
	const constant = "internal error; the server's log has the details"
	var current func() error
	client, log := newClient(t, Deps{Users: UserDeps{Settings: &manage.Settings{Store: settingsFunc(func() error { return current() })}}})
	for name, test := range map[string]struct {
		answer func() error
		code   codes.Code
		text   string // "" means the error's own text
	}{
		"unknown":           {func() error { return errors.New(secret) }, codes.Internal, constant},
		"panic":             {func() error { panic(secret) }, codes.Internal, constant},
		"panic with error":  {func() error { panic(fmt.Errorf("%w: %s", memory.ErrNotFound, secret)) }, codes.Internal, constant},
		"runtime error":     {func() error { return make([]error, 1)[time.Now().Year()] }, codes.Internal, constant},
		"not found":         {func() error { return fmt.Errorf("memory x: %w", memory.ErrNotFound) }, codes.NotFound, ""},
		"precondition":      {func() error { return fmt.Errorf("%w: it is pending", memory.ErrPrecondition) }, codes.FailedPrecondition, ""},
		"unavailable":       {func() error { return fmt.Errorf("%w: disk full", memory.ErrUnavailable) }, codes.Unavailable, ""},
		"transient":         {func() error { return &memory.TransientError{Err: errors.New("rate limited")} }, codes.Unavailable, ""},
		"invalid":           {func() error { return memory.Invalid("x", "is wrong") }, codes.InvalidArgument, ""},
		"overload":          {func() error { return &memory.OverloadError{Limit: "full", RetryAfter: time.Minute} }, codes.ResourceExhausted, ""},
		"cancelled":         {func() error { return fmt.Errorf("reading: %w", context.Canceled) }, codes.Canceled, "the call was cancelled"},
		"deadline exceeded": {func() error { return context.DeadlineExceeded }, codes.DeadlineExceeded, "the deadline was exceeded"},
	} {
		current = test.answer
		_, err := client.GetUserSettings(t.Context(), &memsidecarv1.GetUserSettingsRequest{Scope: &memsidecarv1.Scope{UserId: "u"}})
		got := status.Convert(err)
		want := test.text
		if want == "" {
			want = test.answer().Error()
		}
		if got.Code() != test.code || got.Message() != want {
			t.Errorf("%s: %s %q, want %s %q", name, got.Code(), got.Message(), test.code, want)
		}
		if logged := log.Take(); strings.Contains(logged, "internal error") != (test.code == codes.Internal) {
			t.Errorf("%s: logged %q", name, logged)
		} else if strings.HasPrefix(name, "panic") && (!strings.Contains(logged, secret) || !strings.Contains(logged, "errors_test.go")) {
			t.Errorf("%s: the log does not say what and where: %q", name, logged)
		}
		for _, detail := range got.Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() != time.Minute {
				t.Errorf("%s: try again in %s", name, info.GetRetryDelay().AsDuration())
			}
		}
	}
	stream, err := client.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: &memsidecarv1.Scope{UserId: "u"}}) // the server has no Exporter
	if err == nil {
		_, err = stream.Recv()
	}
	if got := status.Convert(err); got.Code() != codes.Internal || got.Message() != constant {
		t.Errorf("a panic in a stream is %v", err)
	}
}

// TestUnavailableStorageAdmitsOnlyCallsWithoutIt: While storage is unavailable, only calls that work without it are admitted.
func TestUnavailableStorageAdmitsOnlyCallsWithoutIt(t *testing.T) {
	client, _ := newClient(t, Deps{
		Users:   UserDeps{Settings: &manage.Settings{Store: settingsFunc(func() error { t.Error("a call was let through"); return nil })}},
		Storage: storage("the disk is full"),
	})
	_, err := client.GetUserSettings(t.Context(), &memsidecarv1.GetUserSettingsRequest{Scope: &memsidecarv1.Scope{UserId: "u"}})
	if got := status.Convert(err); got.Code() != codes.Unavailable || !strings.Contains(got.Message(), "the disk is full") {
		t.Errorf("answered %v", err)
	}
}

// TestCallersCannotForgeCodecNotes: A caller cannot forge the note that the codec leaves for the interceptors.
func TestCallersCannotForgeCodecNotes(t *testing.T) {
	client, _ := newClient(t, Deps{Users: UserDeps{Settings: &manage.Settings{Store: settingsFunc(func() error { return nil })}}})
	for _, forged := range []string{`[]`, `null`, `{`, `[{"Field":"f","Problem":"p"}]`} {
		request := &memsidecarv1.GetUserSettingsRequest{Scope: &memsidecarv1.Scope{UserId: "u"}}
		request.ProtoReflect().SetUnknown(problemField([]byte(forged)))
		_, err := client.GetUserSettings(t.Context(), request)
		if code := status.Code(err); code != codes.OK && code != codes.InvalidArgument {
			t.Errorf("%s: %v", forged, err)
		}
	}
}
