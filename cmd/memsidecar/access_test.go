package main

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/listen"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// serveGuarded runs a sidecar that wants tokens, and returns some: "a" and "b" may write in the namespaces of their names,
// "reader" may read in a, "below" may write in all below a, "admin" may do everything, and "head" everything in a.
func serveGuarded(t *testing.T, settings ...string) (*running, map[string]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	tokens := map[string]string{}
	for id, grant := range map[string]access.Grant{
		"a":      {Namespace: "a", Level: access.Write},
		"b":      {Namespace: "b", Level: access.Write},
		"reader": {Namespace: "a", Level: access.Read},
		"below":  {Namespace: "a/*", Level: access.Write},
		"admin":  {Namespace: "*", Level: access.Admin},
		"head":   {Namespace: "a", Level: access.Admin},
	} {
		tokens[id] = addToken(t, file, id, grant)
	}
	return serve(t, append(settings, "auth.tokens_file="+file)...), tokens
}

func addToken(t *testing.T, file, id string, grant access.Grant) string {
	t.Helper()
	grant.ID = id
	token := access.NewToken()
	mustDo(t, access.Add(file, access.NewEntry(grant, token)))
	return token
}

// authorization is metadata that goes with every call.
type authorization string

func (a authorization) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(a)}, nil
}

func (authorization) RequireTransportSecurity() bool { return false }

// as is the same sidecar, called with a token.
func (r *running) as(t *testing.T, token string, options ...grpc.DialOption) *running {
	t.Helper()
	return r.with(t, authorization("Bearer "+token), options...)
}

func (r *running) with(t *testing.T, a authorization, options ...grpc.DialOption) *running {
	t.Helper()
	other := *r
	other.conn = must(grpc.NewClient(r.addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(a))...))(t)
	t.Cleanup(func() { _ = other.conn.Close() })
	other.stubs = newStubs(other.conn)
	return &other
}

// TestWhoMayCall asks every call with tokens that do not allow it.
func TestWhoMayCall(t *testing.T) {
	r, tokens := serveGuarded(t)
	strangers := map[string]*running{"no token": r}
	for name, authorization := range map[string]authorization{
		"an unknown token": authorization("Bearer " + access.NewToken()), "another scheme": authorization("Basic " + tokens["a"]),
		"no scheme": authorization(tokens["a"]), "an id": "Bearer a",
	} {
		strangers[name] = r.with(t, authorization)
	}
	reader, below := r.as(t, tokens["reader"]), r.as(t, tokens["below"])
	for _, method := range allMethods(t) {
		for name, stranger := range strangers {
			_, err := stranger.call(t, method, scopedRequest(t, method, anywhere("u")))
			if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "memsidecar token create") {
				t.Errorf("%s with %s: %v", method.Name(), name, err)
			}
		}
		_, err := reader.call(t, method, scopedRequest(t, method, anywhere("u")))
		want := shows.MatchString(string(method.Name()))
		if code := status.Code(err); code == codes.Unauthenticated || want == (code == codes.PermissionDenied) {
			t.Errorf("%s with a token that may read: %v", method.Name(), err)
		}
		for namespace, want := range map[string]bool{"": false, "a": false, "a/b": true, "a/b/c": true, "ab/c": false} {
			_, err := below.call(t, method, scopedRequest(t, method, in(namespace, anywhere("u"))))
			if want = want && !slices.Contains(operatorCalls, string(method.Name())); (status.Code(err) == codes.PermissionDenied) == want {
				t.Errorf("%s in %q with a token for a/*: %v", method.Name(), namespace, err)
			}
		}
	}

	if got := must(healthpb.NewHealthClient(r.conn).Check(t.Context(), &healthpb.HealthCheckRequest{}))(t); got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("without a token health is %s", got)
	}
	for name, test := range map[string]struct {
		as   *running
		want codes.Code
	}{"no token": {r, codes.Unauthenticated}, "a token": {reader, codes.OK}} {
		stream := must(reflectionpb.NewServerReflectionClient(test.as.conn).ServerReflectionInfo(t.Context()))(t)
		_ = stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
		_, err := stream.Recv()
		if status.Code(err) != test.want {
			t.Errorf("reflection with %s: %v", name, err)
		}
	}
}

// operatorCalls need admin access: they show all users of a namespace.
var operatorCalls = []string{"AuditMemories"}

// shows are the names of calls that only show something.
var shows = regexp.MustCompile(`^(Get|List|Retrieve|Export|Filter|Select)`)

// TestTheNamespaceNeedNotBeSaid: what is stored with a token that has one namespace is stored there, streams included.
func TestTheNamespaceNeedNotBeSaid(t *testing.T) {
	r, tokens := serveGuarded(t)
	a, admin := r.as(t, tokens["a"]), r.as(t, tokens["admin"])
	a.create(t, anywhere("u"), "Likes tea")
	must(a.load(t, anywhere("u"), &memsidecarv1.Memory{Text: "Likes jazz", Scope: in("b", anywhere("v"))}))(t)
	a.importInto(t, within(anywhere("u"), "s"), &memsidecarv1.Session{}, said("hello"))
	admin.create(t, anywhere("u"), "Likes coffee")
	for namespace, want := range map[string][]string{"a": {"Likes jazz", "Likes tea"}, "default": {"Likes coffee"}, "": {"Likes coffee"}, "b": {}} {
		if got := texts(admin.list(t, in(namespace, anywhere("u")))); !slices.Equal(got, want) {
			t.Errorf("%q has %q, want %q", namespace, got, want)
		}
	}
	if got := admin.history(t, in("a", within(anywhere("u"), "s"))); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("the session has %q", got)
	}
}

// TestWhatConcernsAllIsForAdmins: how much of all namespaces waits is not for a bot's token.
func TestWhatConcernsAllIsForAdmins(t *testing.T) {
	r, tokens := serveGuarded(t)
	for name, told := range map[string]bool{"reader": false, "a": false, "head": true, "admin": true} {
		status := must(r.as(t, tokens[name]).GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
		if got := status.GetQueue().GetTotal() != nil; got != told || status.GetQueue() == nil {
			t.Errorf("%s is told of all queues: %v, of its own: %v", name, got, status.GetQueue() != nil)
		}
	}
}

// TestTokensComeAndGo without a restart.
func TestTokensComeAndGo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	bot := addToken(t, file, "bot", access.Grant{Namespace: "a", Level: access.Write})
	r := serve(t, "auth.tokens_file="+file)
	reaches := func(token string) bool {
		_, err := r.as(t, token).GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{})
		if err != nil {
			wantCode(t, err, codes.Unauthenticated)
		}
		return err == nil
	}
	other := addToken(t, file, "other", access.Grant{Namespace: "a", Level: access.Read})
	if !reaches(bot) || !reaches(other) {
		t.Error("one that was just made is not known")
	}
	mustDo(t, access.Remove(file, "bot"))
	eventually(t, "the revoked token is refused", func() bool { return !reaches(bot) })
	mustDo(t, os.WriteFile(file, []byte("rubbish"), 0o600))
	eventually(t, "the broken file is logged", func() bool {
		_ = reaches(bot)
		return strings.Contains(r.log.String(), "line 1: the second word")
	})
	if !reaches(other) {
		t.Error("a broken file locks everybody out")
	}
}

// TestLimits: who calls too often is told when to try again, and nobody else is concerned.
func TestLimits(t *testing.T) {
	r := serve(t, "limits.user_rps=0.001", "limits.user_burst=2", "limits.namespace_rps=0.001", "limits.namespace_burst=5")
	tries := func(n int, want codes.Code, scope *memsidecarv1.Scope) {
		t.Helper()
		for range n {
			_, err := r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: scope})
			wantCode(t, err, want)
			if err != nil && retryDelay(err) <= 0 {
				t.Errorf("does not say when to try again: %v", err)
			}
		}
	}
	tries(2, codes.OK, direct("ann"))
	tries(2, codes.ResourceExhausted, direct("ann"))
	stream := must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: anywhere("ann")}))(t)
	_, err := stream.Recv()
	wantCode(t, err, codes.ResourceExhausted)
	tries(2, codes.OK, direct("ben"))
	tries(1, codes.OK, direct("eve"))
	tries(1, codes.ResourceExhausted, direct("eve"))
	tries(1, codes.OK, in("elsewhere", direct("ann")))
	must(healthpb.NewHealthClient(r.conn).Check(t.Context(), &healthpb.HealthCheckRequest{}))(t)
}

func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// TestTooMuchWaitsInANamespace: the limit holds for the namespace's users together.
func TestTooMuchWaitsInANamespace(t *testing.T) {
	dir := t.TempDir()
	seedConsideration(t, dir, direct("u"), "waits", stuck)
	r := serveIn(t, dir, "queue.max_pending_per_namespace=1")
	_, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{Scope: direct("v"), Messages: []*memsidecarv1.Message{said("hello")}})
	wantCode(t, err, codes.ResourceExhausted)
	if retryDelay(err) <= 0 {
		t.Errorf("does not say when to try again: %v", err)
	}
	r.consider(t, in("other", direct("v")), said("hello"))
}

// TestCertificatesAreReadAgain: a new certificate is shown to new connections, and a key that does not fit breaks nothing.
func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	ca := must(sidecartest.NewAuthority(dir, "ca"))(t)
	mustDo(t, ca.Leaf("server", "memsidecar.test"))
	r := serve(t, "tls.cert_file="+filepath.Join(dir, "server.pem"), "tls.key_file="+filepath.Join(dir, "server.key"))
	pool := must(listen.Pool(filepath.Join(dir, "ca.pem")))(t)
	serial := func() int64 {
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "memsidecar.test", NextProtos: []string{"h2"}}}
		conn := must(dialer.DialContext(t.Context(), "tcp", r.addr))(t)
		defer func() { _ = conn.Close() }()
		state := conn.(*tls.Conn).ConnectionState() //nolint:errcheck // it is one
		if state.Version != tls.VersionTLS13 {
			t.Errorf("the version is %x", state.Version)
		}
		return state.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 2 {
		t.Fatalf("the certificate has the number %d", got)
	}
	old := must(os.ReadFile(filepath.Join(dir, "server.key")))(t)
	mustDo(t, ca.Leaf("server", "memsidecar.test"))
	fresh := must(os.ReadFile(filepath.Join(dir, "server.key")))(t)
	mustDo(t, os.WriteFile(filepath.Join(dir, "server.key"), old, 0o600))
	eventually(t, "that they do not fit is logged", func() bool {
		if got := serial(); got != 2 {
			t.Fatalf("with a key that does not fit, the certificate has the number %d", got)
		}
		return strings.Contains(r.log.String(), "certificates cannot be read again")
	})
	mustDo(t, os.WriteFile(filepath.Join(dir, "server.key"), fresh, 0o600))
	eventually(t, "the new certificate is shown", func() bool { return serial() == 3 })
	plain := dial(t, r.addr)
	_, err := memsidecarv1.NewAdminServiceClient(plain).GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{})
	wantCode(t, err, codes.Unavailable)
}
