package sidecartest

import (
	"context"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/observe/logs"
	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// parallel is how many parallel tests run at a time. They are limited by the disk more than by the processor.
const parallel = 8

// Main is the body of TestMain: it runs the tests and returns the exit code. A -parallel flag on the command line takes precedence.
func Main(m *testing.M) (code int) {
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
		panic(err) // the testing package defines the flag
	}
	return m.Run()
}

// Stubs has clients of the services that most tests call.
type Stubs struct {
	memsidecarv1.MemoryServiceClient
	memsidecarv1.UserServiceClient
	memsidecarv1.AdminServiceClient
}

// NewStubs returns clients that call over a connection.
func NewStubs(conn grpc.ClientConnInterface) Stubs {
	return Stubs{
		memsidecarv1.NewMemoryServiceClient(conn),
		memsidecarv1.NewUserServiceClient(conn),
		memsidecarv1.NewAdminServiceClient(conn),
	}
}

// Sidecar is a sidecar in this process, with a free loopback port and its own data folder.
type Sidecar struct {
	Stubs
	Conn *grpc.ClientConn
	Addr string
	HTTP string // address for metrics and health checks, if the settings have one
	API  string // address of JSON over HTTP, if the settings have one
	Dir  string
	Log  *Log
	Late int // number of scrapes without an answer in time
	// Cancel does what SIGTERM does. Stop closes the connection, cancels and waits for the end.
	Cancel, Stop func()
	ended        chan error
}

// Serve starts a sidecar on an empty folder and stops it when the test ends. Settings are KEY=VALUE.
func Serve(t testing.TB, settings ...string) *Sidecar {
	t.Helper()
	return ServeIn(t, t.TempDir(), settings...)
}

// ServeIn is [Serve] on a data folder.
func ServeIn(t testing.TB, dir string, settings ...string) *Sidecar {
	t.Helper()
	return ServeWith(t, dir, nil, settings...)
}

// RelaxedSettings returns settings that make answers independent of the machine's load. A test's settings override them. Benchmarks use the
// defaults.
func RelaxedSettings(t testing.TB) []string {
	if _, measured := t.(*testing.B); measured {
		return nil
	}
	return []string{"retrieval.budget=1m", "queue.max_wait=1h", "session.idle=0", "shutdown_grace=10m"}
}

// ServeWith is [ServeIn] with environment variables.
func ServeWith(t testing.TB, dir string, environ []string, settings ...string) *Sidecar {
	t.Helper()
	return serve(t, nil, dir, environ, settings)
}

// ServeAt is [ServeIn] with a clock.
func ServeAt(t testing.TB, now func() time.Time, dir string, settings ...string) *Sidecar {
	t.Helper()
	return serve(t, now, dir, nil, settings)
}

// FromNoon returns a clock that starts at noon of today, UTC, and runs. With it no test that compares days passes midnight.
func FromNoon() func() time.Time {
	began := time.Now()
	noon := began.UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	return func() time.Time { return noon.Add(time.Since(began)) }
}

// ServeFromNoon is [Serve] with the clock [FromNoon], for users in UTC.
func ServeFromNoon(t testing.TB, settings ...string) *Sidecar {
	t.Helper()
	return ServeAt(t, FromNoon(), t.TempDir(), append(slices.Clone(settings), "time_zone=UTC")...)
}

func serve(t testing.TB, now func() time.Time, dir string, environ, settings []string) *Sidecar {
	t.Helper()
	r, err := launch(now, dir, environ, slices.Concat(settings, RelaxedSettings(t)))
	if err != nil {
		t.Fatal(err)
	}
	r.Conn = Dial(t, r.Addr)
	r.Stubs = NewStubs(r.Conn)
	r.Stop = sync.OnceFunc(func() {
		_ = r.Conn.Close() // so that Stop does not wait for it
		r.Cancel()
		if err := <-r.ended; err != nil {
			t.Errorf("serving ended with %v:\n%s", err, r.Log)
		}
	})
	t.Cleanup(r.Stop)
	return r
}

// launch starts a sidecar. If a key is set twice, the first setting counts.
func launch(now func() time.Time, dir string, environ, settings []string) (*Sidecar, error) {
	flags := map[string]string{"listen": "127.0.0.1:0", "data_dir": dir}
	for _, setting := range slices.Backward(settings) {
		key, value, _ := strings.Cut(setting, "=")
		flags[key] = value
	}
	loaded, err := config.Load(config.Sources{File: config.Getenv(environ, "MEMSIDECAR_CONFIG"), Environ: environ, Flags: flags})
	if err != nil {
		return nil, err
	}
	cfg := loaded.Config
	r := &Sidecar{Dir: dir, Log: &Log{}, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := sidecar.Start(ctx, cfg, sidecar.Options{Environ: environ, Now: now, Log: logs.New(r.Log, cfg.Log.Level, cfg.Log.Format)})
	if err != nil {
		cancel()
		return nil, err
	}
	r.Addr, r.Cancel = s.Addr.String(), cancel
	if s.HTTPAddr != nil {
		r.HTTP = s.HTTPAddr.String()
	}
	if s.APIAddr != nil {
		r.API = s.APIAddr.String()
	}
	go func() {
		err := s.Wait(ctx)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownGrace)
		defer cancel()
		s.Stop(grace)
		r.ended <- err
	}()
	return r, nil
}

// Dial connects to an address without TLS until the test ends.
func Dial(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Log collects what several goroutines write.
type Log = logstest.Log

// Direct returns the scope of a direct chat with a user.
func Direct(user string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT}
}

// Group returns the scope of a user in a group.
func Group(user, id string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP, ChannelId: id}
}

// Said returns a message of the scope's user.
func Said(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_USER, Content: text}
}

// Answered returns a message of the bot.
func Answered(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_ASSISTANT, Content: text}
}

// LongWait returns a wait that is long enough on every machine.
func LongWait() *durationpb.Duration { return durationpb.New(Timeout) }

// Consider calls ConsiderMemorizing and waits for the outcome.
func (r *Sidecar) Consider(t *testing.T, scope *memsidecarv1.Scope, messages ...*memsidecarv1.Message) *memsidecarv1.Consideration {
	t.Helper()
	resp, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: scope, Messages: messages, Wait: LongWait(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetConsideration()
}

// Texts returns the texts of the memories that Retrieve finds, standing memories like others.
func (r *Sidecar) Texts(t *testing.T, scope *memsidecarv1.Scope, query string) []string {
	t.Helper()
	resp, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: query, ExcludeStanding: true})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range resp.GetMemories() {
		texts = append(texts, m.GetMemory().GetText())
	}
	return texts
}

// MethodNames returns the names of all calls of a service.
func MethodNames(service *grpc.ServiceDesc) []string {
	var names []string
	for _, m := range service.Methods {
		names = append(names, m.MethodName)
	}
	for _, s := range service.Streams {
		names = append(names, s.StreamName)
	}
	return names
}

// AllMemories returns all memories of a scope, from all pages.
func AllMemories(ctx context.Context, t *testing.T, client memsidecarv1.MemoryServiceClient, scope *memsidecarv1.Scope) []*memsidecarv1.Memory {
	t.Helper()
	var all []*memsidecarv1.Memory
	request := &memsidecarv1.ListMemoriesRequest{Scope: scope, PageSize: 1000}
	for {
		resp, err := client.ListMemories(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, resp.GetMemories()...)
		request.PageToken = resp.GetNextPageToken()
		if request.GetPageToken() == "" {
			return all
		}
	}
}

// ShortFolder returns a temporary folder for sockets, whose paths must be short.
func ShortFolder(t *testing.T) string {
	t.Helper()
	dir := Must(os.MkdirTemp("", "ms"))(t) //nolint:usetesting // t.TempDir is too long
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
