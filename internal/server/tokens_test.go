package server_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/listen"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestCallsNeedASuitableToken makes every call with tokens that do not permit it.
func TestCallsNeedASuitableToken(t *testing.T) {
	t.Parallel()
	r, tokens := sidecartest.ServeGuarded(t)
	strangers := map[string]*sidecartest.Sidecar{"no token": r}
	for name, authorization := range map[string]sidecartest.Authorization{
		"an unknown token": sidecartest.Authorization("Bearer " + access.NewToken()), "another scheme": sidecartest.Authorization("Basic " + tokens["a"]),
		"no scheme": sidecartest.Authorization(tokens["a"]), "an id": "Bearer a",
	} {
		strangers[name] = r.With(t, authorization)
	}
	reader, below := r.As(t, tokens["reader"]), r.As(t, tokens["below"])
	for _, method := range sidecartest.AllMethods(t) {
		for name, stranger := range strangers {
			_, err := stranger.Call(t, method, sidecartest.ScopedRequest(t, method, sidecartest.WithoutChannel("u")))
			if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "memsidecar token create") {
				t.Errorf("%s with %s: %v", method.Name(), name, err)
			}
		}
		_, err := reader.Call(t, method, sidecartest.ScopedRequest(t, method, sidecartest.WithoutChannel("u")))
		want := readOnlyCall.MatchString(string(method.Name()))
		if code := status.Code(err); code == codes.Unauthenticated || want == (code == codes.PermissionDenied) {
			t.Errorf("%s with a token that may read: %v", method.Name(), err)
		}
		for namespace, want := range map[string]bool{"": false, "a": false, "a/b": true, "a/b/c": true, "ab/c": false} {
			_, err := below.Call(
				t,
				method,
				sidecartest.ScopedRequest(t, method, sidecartest.InNamespace(namespace, sidecartest.WithoutChannel("u"))),
			)
			if want = want && !slices.Contains(operatorCalls, string(method.Name())); (status.Code(err) == codes.PermissionDenied) == want {
				t.Errorf("%s in %q with a token for a/*: %v", method.Name(), namespace, err)
			}
		}
	}

	if got := sidecartest.Must(healthpb.NewHealthClient(r.Conn).Check(t.Context(),
		&healthpb.HealthCheckRequest{}))(t); got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("without a token health is %s", got)
	}
	for name, test := range map[string]struct {
		as   *sidecartest.Sidecar
		want codes.Code
	}{"no token": {r, codes.Unauthenticated}, "a token": {reader, codes.OK}} {
		stream := sidecartest.Must(reflectionpb.NewServerReflectionClient(test.as.Conn).ServerReflectionInfo(t.Context()))(t)
		_ = stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
		_, err := stream.Recv()
		if status.Code(err) != test.want {
			t.Errorf("reflection with %s: %v", name, err)
		}
	}
}

// operatorCalls need admin access: they show all users of a namespace.
var operatorCalls = []string{"AuditMemories"}

// readOnlyCall are the prefixes of read-only calls.
var readOnlyCall = regexp.MustCompile(`^(Get|List|Retrieve|Export|Filter|Select)`)

// TestNamespaceDefaultsToTheTokens: Data stored with a token for one namespace is stored there, streams included.
func TestNamespaceDefaultsToTheTokens(t *testing.T) {
	t.Parallel()
	r, tokens := sidecartest.ServeGuarded(t)
	a, admin := r.As(t, tokens["a"]), r.As(t, tokens["admin"])
	a.Create(t, sidecartest.WithoutChannel("u"), "Likes tea")
	sidecartest.Must(
		a.Import(
			t,
			sidecartest.WithoutChannel("u"),
			&memsidecarv1.Memory{Text: "Likes jazz", Scope: sidecartest.InNamespace("b", sidecartest.WithoutChannel("v"))},
		),
	)(
		t,
	)
	a.ImportInto(t, sidecartest.InSession(sidecartest.WithoutChannel("u"), "s"), &memsidecarv1.Session{}, sidecartest.Said("hello"))
	admin.Create(t, sidecartest.WithoutChannel("u"), "Likes coffee")
	for namespace, want := range map[string][]string{"a": {"Likes jazz", "Likes tea"}, "default": {"Likes coffee"}, "": {"Likes coffee"}, "b": {}} {
		if got := sidecartest.Texts(admin.Memories(t, sidecartest.InNamespace(namespace, sidecartest.WithoutChannel("u")))); !slices.Equal(
			got,
			want,
		) {
			t.Errorf("%q has %q, want %q", namespace, got, want)
		}
	}
	if got := admin.History(t, sidecartest.InNamespace("a", sidecartest.InSession(sidecartest.WithoutChannel("u"), "s"))); !slices.Equal(
		got,
		[]string{"hello"},
	) {
		t.Errorf("the session has %q", got)
	}
}

// TestTotalsOfAllNamespacesAreForAdmins: A bot's token does not see how much is pending in all namespaces.
func TestTotalsOfAllNamespacesAreForAdmins(t *testing.T) {
	t.Parallel()
	r, tokens := sidecartest.ServeGuarded(t)
	for name, visible := range map[string]bool{"reader": false, "a": false, "head": true, "admin": true} {
		status := sidecartest.Must(r.As(t, tokens[name]).GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
		if got := status.GetQueue().GetTotal() != nil; got != visible || status.GetQueue() == nil {
			t.Errorf("%s sees all queues: %v, of its own: %v", name, got, status.GetQueue() != nil)
		}
	}
}

// TestTokenFileIsReloaded: No restart is needed.
func TestTokenFileIsReloaded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	bot := sidecartest.AddToken(t, file, "bot", access.Grant{Namespace: "a", Level: access.Write})
	r := sidecartest.Serve(t, "auth.tokens_file="+file)
	reaches := func(token string) bool {
		_, err := r.As(t, token).GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{})
		if err != nil {
			sidecartest.WantCode(t, err, codes.Unauthenticated)
		}
		return err == nil
	}
	other := sidecartest.AddToken(t, file, "other", access.Grant{Namespace: "a", Level: access.Read})
	if !reaches(bot) || !reaches(other) {
		t.Error("a new token is not accepted")
	}
	sidecartest.NoError(t, access.Remove(file, "bot"))
	sidecartest.Eventually(t, "the revoked token is refused", func() bool { return !reaches(bot) })
	sidecartest.NoError(t, os.WriteFile(file, []byte("rubbish"), 0o600))
	sidecartest.Eventually(t, "the broken file is logged", func() bool {
		_ = reaches(bot)
		return strings.Contains(r.Log.String(), "line 1: the second word")
	})
	if !reaches(other) {
		t.Error("a broken file revokes all tokens")
	}
}

// TestRateLimitNamesTheRetryDelay: A caller above the limit learns when to retry. Other callers are not affected.
func TestRateLimitNamesTheRetryDelay(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "limits.user_rps=0.001", "limits.user_burst=2", "limits.namespace_rps=0.001", "limits.namespace_burst=5")
	tries := func(n int, want codes.Code, scope *memsidecarv1.Scope) {
		t.Helper()
		for range n {
			_, err := r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: scope})
			sidecartest.WantCode(t, err, want)
			if err != nil && retryDelay(err) <= 0 {
				t.Errorf("does not say when to try again: %v", err)
			}
		}
	}
	tries(2, codes.OK, sidecartest.Direct("ann"))
	tries(2, codes.ResourceExhausted, sidecartest.Direct("ann"))
	stream := sidecartest.Must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: sidecartest.WithoutChannel("ann")}))(t)
	_, err := stream.Recv()
	sidecartest.WantCode(t, err, codes.ResourceExhausted)
	tries(2, codes.OK, sidecartest.Direct("ben"))
	tries(1, codes.OK, sidecartest.Direct("eve"))
	tries(1, codes.ResourceExhausted, sidecartest.Direct("eve"))
	tries(1, codes.OK, sidecartest.InNamespace("elsewhere", sidecartest.Direct("ann")))
	sidecartest.Must(healthpb.NewHealthClient(r.Conn).Check(t.Context(), &healthpb.HealthCheckRequest{}))(t)
}

func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// TestPendingLimitOfANamespace: All users of a namespace share the limit.
func TestPendingLimitOfANamespace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sidecartest.SeedConsideration(t, dir, sidecartest.Direct("u"), "waits", sidecartest.Stuck)
	r := sidecartest.ServeIn(t, dir, "queue.max_pending_per_namespace=1")
	_, err := r.ConsiderMemorizing(
		t.Context(),
		&memsidecarv1.ConsiderMemorizingRequest{
			Scope:    sidecartest.Direct("v"),
			Messages: []*memsidecarv1.Message{sidecartest.Said("hello")},
		},
	)
	sidecartest.WantCode(t, err, codes.ResourceExhausted)
	if retryDelay(err) <= 0 {
		t.Errorf("does not say when to try again: %v", err)
	}
	r.Consider(t, sidecartest.InNamespace("other", sidecartest.Direct("v")), sidecartest.Said("hello"))
}

// TestCertificatesAreReloaded: New connections get the new certificate. A key that does not match changes nothing.
func TestCertificatesAreReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := sidecartest.Must(sidecartest.NewAuthority(dir, "ca"))(t)
	sidecartest.NoError(t, ca.Leaf("server", "memsidecar.test"))
	r := sidecartest.Serve(t, "tls.cert_file="+filepath.Join(dir, "server.pem"), "tls.key_file="+filepath.Join(dir, "server.key"))
	pool := sidecartest.Must(listen.LoadCertPool(filepath.Join(dir, "ca.pem")))(t)
	serial := func() int64 {
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "memsidecar.test", NextProtos: []string{"h2"}}}
		conn := sidecartest.Must(dialer.DialContext(t.Context(), "tcp", r.Addr))(t)
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
	old := sidecartest.Must(os.ReadFile(filepath.Join(dir, "server.key")))(t)
	sidecartest.NoError(t, ca.Leaf("server", "memsidecar.test"))
	fresh := sidecartest.Must(os.ReadFile(filepath.Join(dir, "server.key")))(t)
	sidecartest.NoError(t, os.WriteFile(filepath.Join(dir, "server.key"), old, 0o600))
	sidecartest.Eventually(t, "that they do not fit is logged", func() bool {
		if got := serial(); got != 2 {
			t.Fatalf("with a key that does not fit, the certificate has the number %d", got)
		}
		return strings.Contains(r.Log.String(), "certificates cannot be read again")
	})
	sidecartest.NoError(t, os.WriteFile(filepath.Join(dir, "server.key"), fresh, 0o600))
	sidecartest.Eventually(t, "the new certificate is shown", func() bool { return serial() == 3 })
	plain := sidecartest.Dial(t, r.Addr)
	_, err := memsidecarv1.NewAdminServiceClient(plain).GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{})
	sidecartest.WantCode(t, err, codes.Unavailable)
}
