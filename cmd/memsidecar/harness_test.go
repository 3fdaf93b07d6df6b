package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/observe/logs"
	"github.com/memsidecar/memsidecar/internal/observe/logs/logstest"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// stubs are the services that most tests call.
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

// running is a sidecar in this process, on a free port of loopback and a folder of its own.
type running struct {
	stubs
	conn *grpc.ClientConn
	addr string
	http string // address of the operators' port, if there is one
	api  string // address of the API over HTTP, if there is one
	dir  string
	log  *syncBuffer
	late int // scrapes that were not answered in time
	// cancel is what SIGTERM does; stop also waits for the end, with the connection closed.
	cancel, stop func()
	ended        chan error
}

// serve runs `memsidecar serve` in this process until the test ends. Settings are KEY=VALUE pairs.
func serve(t testing.TB, settings ...string) *running {
	t.Helper()
	return serveIn(t, t.TempDir(), settings...)
}

func serveIn(t testing.TB, dir string, settings ...string) *running {
	t.Helper()
	return serveWith(t, dir, nil, settings...)
}

// unhurried are settings by which what is answered does not depend on how busy the machine is. Those of a test go before them, and
// benchmarks measure the defaults.
func unhurried(t testing.TB) []string {
	if _, measured := t.(*testing.B); measured {
		return nil
	}
	return []string{"retrieval.budget=1m", "queue.max_wait=1h", "shutdown_grace=10m"}
}

// serveWith has an environment, too.
func serveWith(t testing.TB, dir string, environ []string, settings ...string) *running {
	t.Helper()
	r, err := launch(dir, environ, slices.Concat(settings, unhurried(t)))
	if err != nil {
		t.Fatal(err)
	}
	r.conn = dial(t, r.addr)
	r.stubs = newStubs(r.conn)
	r.stop = sync.OnceFunc(func() {
		_ = r.conn.Close() // so that stopping need not wait for it
		r.cancel()
		if err := <-r.ended; err != nil {
			t.Errorf("serving ended with %v:\n%s", err, r.log)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// launch starts a sidecar. The first of two settings of a key counts.
func launch(dir string, environ, settings []string) (*running, error) {
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
	r := &running{dir: dir, log: &syncBuffer{}, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := sidecar.Start(ctx, cfg, sidecar.Options{Environ: environ, Log: logs.New(r.log, cfg.Log.Level, cfg.Log.Format)})
	if err != nil {
		cancel()
		return nil, err
	}
	r.addr, r.cancel = s.Addr.String(), cancel
	if s.HTTPAddr != nil {
		r.http = s.HTTPAddr.String()
	}
	if s.APIAddr != nil {
		r.api = s.APIAddr.String()
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

func dial(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// syncBuffer collects output that several goroutines write.
type syncBuffer = logstest.Log

// direct is the scope of a direct chat with the user.
func direct(user string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT}
}

func group(user, id string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP, ChannelId: id}
}

// said is a message of the scope's user.
func said(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_USER, Content: text}
}

// answered is a message of the bot.
func answered(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_ASSISTANT, Content: text}
}

// patiently is a time to wait for an outcome that no machine is too slow for.
func patiently() *durationpb.Duration { return durationpb.New(sidecartest.Patience) }

// consider hands over a dialogue and waits for its outcome.
func (r *running) consider(t *testing.T, scope *memsidecarv1.Scope, messages ...*memsidecarv1.Message) *memsidecarv1.Consideration {
	t.Helper()
	resp, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: scope, Messages: messages, Wait: patiently(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetConsideration()
}

// retrieve returns the texts that are retrieved for a query.
func (r *running) retrieve(t *testing.T, scope *memsidecarv1.Scope, query string) []string {
	t.Helper()
	resp, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: query})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range resp.GetMemories() {
		texts = append(texts, m.GetMemory().GetText())
	}
	return texts
}

// methodNames lists every call of a service.
func methodNames(service *grpc.ServiceDesc) []string {
	var names []string
	for _, m := range service.Methods {
		names = append(names, m.MethodName)
	}
	for _, s := range service.Streams {
		names = append(names, s.StreamName)
	}
	return names
}

func allMemories(ctx context.Context, t *testing.T, client memsidecarv1.MemoryServiceClient, scope *memsidecarv1.Scope) []*memsidecarv1.Memory {
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
