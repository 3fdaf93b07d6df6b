package client_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/client"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// faultyServer is a server that fails as the test wants, and records its calls.
type faultyServer struct {
	memsidecarv1.UnimplementedMemoryServiceServer
	mu        sync.Mutex
	failures  map[string]int // how often each call is UNAVAILABLE before it succeeds; -1: always
	asked     map[string]int
	requestID []string
	left      time.Duration // until the deadline of the last call
	hang      bool          // until the deadline
}

func (s *faultyServer) ask(ctx context.Context, call string) error {
	s.mu.Lock()
	s.asked[call]++
	if deadline, ok := ctx.Deadline(); ok {
		s.left = time.Until(deadline)
	}
	fail, hang := s.failures[call] == -1 || s.asked[call] <= s.failures[call], s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done() // No answer may follow: the deadline may be noticed here before the client notices it.
		return status.FromContextError(ctx.Err()).Err()
	}
	if fail {
		return status.Error(codes.Unavailable, "not now")
	}
	return nil
}

func (s *faultyServer) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[call]
}

func (s *faultyServer) Retrieve(ctx context.Context, _ *memsidecarv1.RetrieveRequest) (*memsidecarv1.RetrieveResponse, error) {
	return &memsidecarv1.RetrieveResponse{
		PromptContext: "likes tea", Degraded: []*memsidecarv1.Degradation{{Reason: "the model is unavailable"}},
	}, s.ask(ctx, "Retrieve")
}

func (s *faultyServer) ConsiderMemorizing(
	ctx context.Context,
	r *memsidecarv1.ConsiderMemorizingRequest,
) (*memsidecarv1.ConsiderMemorizingResponse, error) {
	s.mu.Lock()
	s.requestID = append(s.requestID, r.GetRequestId())
	s.mu.Unlock()
	err := s.ask(ctx, "ConsiderMemorizing")
	return &memsidecarv1.ConsiderMemorizingResponse{Consideration: &memsidecarv1.Consideration{Id: "con_1"}}, err
}

func (s *faultyServer) CreateMemory(ctx context.Context, r *memsidecarv1.CreateMemoryRequest) (*memsidecarv1.CreateMemoryResponse, error) {
	s.mu.Lock()
	s.requestID = append(s.requestID, r.GetRequestId())
	s.mu.Unlock()
	return &memsidecarv1.CreateMemoryResponse{}, s.ask(ctx, "CreateMemory")
}

func (s *faultyServer) ListMemories(ctx context.Context, _ *memsidecarv1.ListMemoriesRequest) (*memsidecarv1.ListMemoriesResponse, error) {
	return &memsidecarv1.ListMemoriesResponse{}, s.ask(ctx, "ListMemories")
}

func (s *faultyServer) UpdateMemory(ctx context.Context, _ *memsidecarv1.UpdateMemoryRequest) (*memsidecarv1.UpdateMemoryResponse, error) {
	return &memsidecarv1.UpdateMemoryResponse{}, s.ask(ctx, "UpdateMemory")
}

// startFaulty starts the server and connects to it.
func startFaulty(t *testing.T, failures map[string]int, options ...client.Option) (*faultyServer, *client.Client) {
	t.Helper()
	s := &faultyServer{failures: failures, asked: map[string]int{}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	memsidecarv1.RegisterMemoryServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return s, dial(t, listener.Addr().String(), options...)
}

// dial connects with long timeouts for slow machines, unless the options set others.
func dial(t *testing.T, target string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Dial(target, append([]client.Option{
		client.WithTimeout(
			sidecartest.Timeout,
		), client.WithRecallTimeout(sidecartest.Timeout), client.WithRememberTimeout(sidecartest.Timeout),
		client.WithOnError(func(context.Context, string, error) {}),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestSafeCallsAreRetried: When the sidecar is unavailable, the client repeats calls that are safe to repeat, with the same request id, and no
// others.
func TestSafeCallsAreRetried(t *testing.T) {
	s, c := startFaulty(t, map[string]int{"Retrieve": 2, "ListMemories": 4, "ConsiderMemorizing": 3, "CreateMemory": 1, "UpdateMemory": 1})
	ctx, scope := t.Context(), client.Direct("anna")

	if r := c.Recall(ctx, scope, "tea"); r.PromptContext != "likes tea" || r.Reason != "the model is unavailable" {
		t.Errorf("recalled %+v", r)
	}
	if _, err := c.Memory.ListMemories(ctx, &memsidecarv1.ListMemoriesRequest{Scope: scope}); err != nil {
		t.Error(err)
	}
	if got := c.Remember(ctx, scope, client.Said("I like tea.")); got.GetId() != "con_1" {
		t.Errorf("remembered as %v", got)
	}
	if ids := s.requestID; len(ids) != 4 || ids[0] == "" || len(slices.Compact(slices.Clone(ids))) != 1 {
		t.Errorf("the attempts had the request ids %q", ids)
	}
	c.Remember(ctx, scope, client.Said("I like tea."))
	if ids := s.requestID; ids[4] == ids[3] {
		t.Error("another dialogue has the same request id")
	}
	create := &memsidecarv1.CreateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Text: "The user likes tea."}, RequestId: "mine"}
	if _, err := c.Memory.CreateMemory(ctx, create); err != nil {
		t.Error(err)
	}
	if ids := s.requestID[5:]; !slices.Equal(ids, []string{"mine", "mine"}) {
		t.Errorf("the bot's own request id became %q", ids)
	}
	create.RequestId = ""
	if _, err := c.Memory.CreateMemory(ctx, create); err != nil || create.GetRequestId() != "" {
		t.Errorf("%v; the bot's request was changed to %v", err, create)
	}
	if _, err := c.Memory.UpdateMemory(ctx, &memsidecarv1.UpdateMemoryRequest{Scope: scope}); status.Code(err) != codes.Unavailable ||
		s.count("UpdateMemory") != 1 {
		t.Errorf("%v after %d attempts", err, s.count("UpdateMemory"))
	}
}

// TestErrorHookIsOptional: Without an error hook the bot still continues.
func TestErrorHookIsOptional(t *testing.T) {
	_, c := startFaulty(t, map[string]int{"Retrieve": -1, "ConsiderMemorizing": -1}, client.WithOnError(nil))
	if r := c.Recall(t.Context(), client.Direct("anna"), "tea"); r.Reason == "" {
		t.Errorf("recalled %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := c.Remember(ctx, client.Direct("anna"), client.Said("tea")); got != nil {
		t.Errorf("remembered %v", got)
	}
}

// TestRetriesAreLimited: When the sidecar remains unavailable, a call that waits for it makes three attempts.
func TestRetriesAreLimited(t *testing.T) {
	s, c := startFaulty(t, map[string]int{"Retrieve": -1})
	if r := c.Recall(t.Context(), client.Direct("anna"), "tea"); r.PromptContext != "" || !strings.Contains(r.Reason, "not now") {
		t.Errorf("recalled %+v", r)
	}
	if n := s.count("Retrieve"); n != 3 {
		t.Errorf("%d attempts", n)
	}
}

// TestCallsHaveDeadlines: Every call has a deadline: the caller's, or the default.
func TestCallsHaveDeadlines(t *testing.T) {
	const most, wait = time.Hour, 10 * time.Hour
	s, c := startFaulty(t, nil, client.WithTimeout(most), client.WithRecallTimeout(2*most), client.WithRememberTimeout(3*most))
	own, cancel := context.WithTimeout(t.Context(), 5*most)
	defer cancel()
	scope := client.Direct("anna")
	for name, test := range map[string]struct {
		call func() error
		want time.Duration
	}{
		"none": {func() error {
			_, err := c.Memory.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: scope})
			return err
		}, most},
		"its own": {func() error {
			_, err := c.Memory.ListMemories(own, &memsidecarv1.ListMemoriesRequest{Scope: scope})
			return err
		}, 5 * most},
		"one that waits": {func() error {
			_, err := c.Memory.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{Scope: scope, Wait: durationpb.New(wait)})
			return err
		}, most + wait},
		"Recall":   {func() error { c.Recall(own, scope, "tea"); return nil }, 2 * most},
		"Remember": {func() error { c.Remember(own, scope, client.Said("tea")); return nil }, 3 * most},
	} {
		if err := test.call(); err != nil {
			t.Error(err)
		}
		if s.left > test.want || s.left < test.want-most/2 {
			t.Errorf("%s: %s were left, want %s", name, s.left, test.want)
		}
	}
}

// TestRecallTimeout: When the timeout for recall passes, the bot continues and the hook gets the error.
func TestRecallTimeout(t *testing.T) {
	var reported []string
	s, c := startFaulty(t, nil, client.WithRecallTimeout(time.Millisecond), client.WithRememberTimeout(time.Millisecond),
		client.WithOnError(func(_ context.Context, call string, err error) {
			reported = append(reported, call+" "+status.Code(err).String())
		}))
	s.hang = true
	if r := c.Recall(t.Context(), client.Direct("anna"), "tea"); r.PromptContext != "" || r.Reason == "" {
		t.Errorf("recalled %+v", r)
	}
	if got := c.Remember(t.Context(), client.Direct("anna"), client.Said("tea")); got != nil {
		t.Errorf("remembered %v", got)
	}
	if want := []string{"Recall DeadlineExceeded", "Remember DeadlineExceeded"}; !slices.Equal(reported, want) {
		t.Errorf("the hook got %q, want %q", reported, want)
	}
}

// TestClientReconnectsAfterRestart: While the sidecar is stopped, the bot recalls nothing and gets the reason. After a restart on the same Unix socket the
// same client recalls earlier memories, and sends the dialogues of the meantime.
func TestClientReconnectsAfterRestart(t *testing.T) {
	sidecartest.Binary(t) // built before, so that no timeout runs meanwhile
	dir := t.TempDir()
	socket := "unix://" + filepath.Join(dir, "s")
	start := func() *sidecartest.Process {
		return sidecartest.StartProcess(
			t,
			sidecartest.ProcessOptions{Dir: filepath.Join(dir, "data"), Listen: "unix:" + filepath.Join(dir, "s")},
		)
	}
	c, scope := dial(t, socket), client.Direct("alice")
	if r := c.Recall(t.Context(), scope, "tea"); r.PromptContext != "" || r.Reason == "" {
		t.Errorf("recalled before there was a sidecar: %+v", r)
	}
	remembered := make(chan *memsidecarv1.Consideration, 1)
	for round := range 3 {
		go func() {
			remembered <- c.Remember(t.Context(), scope, client.Said("Remember that my tea is lapsang souchong."))
		}()
		s := start()
		if (<-remembered) == nil {
			t.Fatal("messages sent during the outage are not remembered")
		}
		ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Timeout)
		for r := c.Recall(ctx, scope, "tea"); r.Reason != ""; r = c.Recall(ctx, scope, "tea") {
			if ctx.Err() != nil {
				t.Fatalf("it is not found again: %s", r.Reason)
			}
		}
		settle(ctx, c, scope)
		if r := c.Recall(ctx, scope, "Which tea?"); !strings.Contains(r.PromptContext, "lapsang") || len(r.Memories) != 1 ||
			r.TraceID == "" {
			t.Errorf("round %d: recalled %+v", round, r)
		}
		cancel()
		s.Kill()
		if r := c.Recall(t.Context(), scope, "tea"); r.PromptContext != "" || r.Reason == "" {
			t.Errorf("recalled from a sidecar that is gone: %+v", r)
		}
	}
}

// TestTokenAndTLS: This is an encrypted connection with a token to a sidecar that requires both.
func TestTokenAndTLS(t *testing.T) {
	dir := t.TempDir()
	ca, err := sidecartest.NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Leaf("server", "memsidecar.test"); err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(dir, "tokens")
	token, err := sidecartest.Run(t.Context(), "token", "create", "--namespace", "cooks", "--file", tokens)
	if err != nil {
		t.Fatal(err)
	}
	token = strings.TrimSpace(token)
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{Settings: []string{
		"tls.cert_file=" + filepath.Join(
			dir,
			"server.pem",
		), "tls.key_file=" + filepath.Join(dir, "server.key"), "auth.tokens_file=" + tokens,
	}})
	encrypted := client.WithTLS(trustingConfig(t, filepath.Join(dir, "ca.pem")))
	scope := client.Direct("alice")

	given := ""
	c := dial(t, s.Addr, encrypted, client.WithTokenFrom(func(context.Context) (string, error) { return given, nil }))
	if r := c.Recall(t.Context(), scope, "tea"); !strings.Contains(r.Reason, "not authenticated") {
		t.Errorf("without a token: %+v", r)
	}
	given = token // the next call has it
	if r := c.Recall(t.Context(), scope, "tea"); r.Reason != "" {
		t.Errorf("with a token: %+v", r)
	}
	considered := dial(t, s.Addr, encrypted, client.WithToken(token)).Remember(t.Context(), scope, client.Said("I like tea."))
	if got := considered.GetScope().GetNamespace(); got != "cooks" {
		t.Errorf("remembered in the namespace %q", got)
	}
	if r := dial(t, s.Addr, encrypted, client.WithToken("\t"+token+"\r\n")).Recall(t.Context(), scope, "tea"); r.Reason != "" {
		t.Errorf("with a token as a file has it: %+v", r)
	}
	if r := dial(t, s.Addr, encrypted, client.WithToken("令牌")).Recall(t.Context(), scope, "tea"); !strings.Contains(
		r.Reason,
		"invalid characters",
	) {
		t.Errorf("with an invalid token: %+v", r)
	}
	broken := dial(t, s.Addr, encrypted, client.WithTokenFrom(func(context.Context) (string, error) { return "", errors.New("no vault") }))
	if r := broken.Recall(t.Context(), scope, "tea"); !strings.Contains(r.Reason, "no vault") {
		t.Errorf("with no token to be had: %+v", r)
	}
	if r := dial(t, s.Addr).Recall(t.Context(), scope, "tea"); r.Reason == "" {
		t.Error("recalled without encryption")
	}
}

// TestGroup: A direct chat is not recalled in a group, nor one group in another. Dial's grpc options apply to these calls, and the
// connection can be used for other services.
func TestGroup(t *testing.T) {
	s := sidecartest.StartProcess(t, sidecartest.ProcessOptions{})
	var called []string
	c, err := client.Dial(s.Addr, client.WithRecallTimeout(sidecartest.Timeout), client.WithDialOptions(grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			called = append(called, method[strings.LastIndexByte(method, '/')+1:])
			return invoke(ctx, method, req, reply, cc, opts...)
		},
	)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()

	tavern := client.Group("alice", "tavern")
	for said, where := range map[string]*memsidecarv1.Scope{
		"I am allergic to peanuts.": client.Direct("alice"), "I am allergic to celery.": tavern,
	} {
		if _, err := c.Memory.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: where, Messages: []*memsidecarv1.Message{client.Said(said)}, Wait: durationpb.New(sidecartest.Timeout),
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		scope *memsidecarv1.Scope
		want  []string
	}{
		"alone": {client.Direct("alice"), []string{"celery", "peanuts"}}, "in the group": {tavern, []string{"celery"}},
		"in another": {client.Group("alice", "library"), nil},
	} {
		var got []string
		for _, m := range c.Recall(t.Context(), test.scope, "What am I allergic to?").Standing {
			text := strings.TrimSuffix(m.GetText(), ".")
			got = append(got, text[strings.LastIndexByte(text, ' ')+1:])
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q is recalled, want %q", name, got, test.want)
		}
	}
	if want := []string{"ConsiderMemorizing", "ConsiderMemorizing", "Retrieve", "Retrieve", "Retrieve"}; !slices.Equal(called, want) {
		t.Errorf("the interceptor was called for %q, want %q", called, want)
	}
	if h, err := grpc_health_v1.NewHealthClient(c.Conn()).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil ||
		h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health by the same connection: %v, %v", h, err)
	}
}

// TestDialRefuses: Targets that cannot work, and connections that would expose users' messages, are errors with a remedy.
func TestDialRefuses(t *testing.T) {
	for _, test := range []struct {
		target  string
		options []client.Option
		want    string // "" means no error
	}{
		{"", nil, ""},
		{"localhost:7420", nil, ""},
		{"[::1]:7420", nil, ""},
		{"dns:///127.0.0.1:7420", nil, ""},
		{"unix:///run/memsidecar.sock", nil, ""},
		{"unix:/run/memsidecar.sock", nil, ""},
		{"memsidecar:7420", []client.Option{client.WithPlaintext()}, ""},
		{"memsidecar:7420", []client.Option{client.WithTLS(nil)}, ""},
		{"memsidecar:7420", nil, "WithPlaintext"},
		{"memsidecar:7420", []client.Option{client.WithToken("secret")}, "WithTLS"},
		{"memsidecar:7420", []client.Option{client.WithTLS(nil), client.WithPlaintext()}, "exclude"},
		{"localhost", nil, "write host:port"},
		{"http://localhost:7420", []client.Option{client.WithPlaintext()}, "write host:port"},
		{"unix:memsidecar.sock", nil, "not an absolute path"},
		{"", []client.Option{client.WithTimeout(0), client.WithRecallTimeout(-1), client.WithRememberTimeout(0)}, "WithRecallTimeout"},
	} {
		c, err := client.Dial(test.target, test.options...)
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.target, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error contains the token: %v", err)
		}
	}
}

// TestRetriedReadsNeedOnlyReadAccess: The calls that the client repeats without a request id are the calls that a read-only token permits.
func TestRetriedReadsNeedOnlyReadAccess(t *testing.T) {
	guard, err := os.ReadFile("../internal/server/guard.go")
	if err != nil {
		t.Fatal(err)
	}
	levels := map[string]string{}
	for _, m := range regexp.MustCompile(`memsidecarv1\.\w+Service_(\w+)_FullMethodName:\s+access\.(\w+)`).FindAllStringSubmatch(string(guard), -1) {
		levels[m[1]] = m[2]
	}
	repeated := client.Repeated()
	if len(repeated) < 20 || len(levels) < 40 {
		t.Fatalf("%d calls are repeated, %d are guarded", len(repeated), len(levels))
	}
	for method, level := range levels {
		want := level == "Read" || method == "ConsiderMemorizing" || method == "CreateMemory"
		if slices.Contains(repeated, method) != want {
			t.Errorf("%s, which needs access to %s, is repeated: %t", method, level, !want)
		}
	}
}
