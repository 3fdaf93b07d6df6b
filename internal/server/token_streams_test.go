package server_test

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/memsidecar/memsidecar/internal/access"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestProfilesNeedAnAdminToken: A profile covers the whole process, so it needs an admin token for all namespaces.
func TestProfilesNeedAnAdminToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	hour := time.Now().Add(time.Hour)
	tokens := map[string]string{"none": "", "wrong": access.NewToken()}
	for id, grant := range map[string]access.Grant{
		"read":    {Namespace: "*", Level: access.Read},
		"write":   {Namespace: "*", Level: access.Write},
		"head":    {Namespace: "a", Level: access.Admin},
		"below":   {Namespace: "a/*", Level: access.Admin},
		"expired": {Namespace: "*", Level: access.Admin, Expires: hour.Add(-2 * time.Hour)},
		"admin":   {Namespace: "*", Level: access.Admin, Expires: hour},
	} {
		tokens[id] = sidecartest.AddToken(t, file, id, grant)
	}
	r := sidecartest.Serve(t, sidecartest.HTTPListen, "http.pprof=true", "auth.tokens_file="+file)
	check := func(path string, authorization ...string) (int, http.Header, string) {
		t.Helper()
		req := sidecartest.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.HTTP+path, http.NoBody))(t)
		req.Header["Authorization"] = authorization
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode, resp.Header, string(sidecartest.Must(io.ReadAll(resp.Body))(t))
	}
	for id, want := range map[string]struct {
		status int
		says   string
	}{
		"none":    {http.StatusUnauthorized, "memsidecar token create"},
		"wrong":   {http.StatusUnauthorized, "does not know the token"},
		"expired": {http.StatusUnauthorized, "expired on"},
		"read":    {http.StatusForbidden, "has read access"},
		"write":   {http.StatusForbidden, "has write access"},
		"head":    {http.StatusForbidden, "for the namespace a,"},
		"below":   {http.StatusForbidden, "for the namespace a/*,"},
		"admin":   {http.StatusOK, "goroutine"},
	} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline"} {
			authorization := []string{"Bearer " + tokens[id]}
			if id == "none" {
				authorization = nil
			}
			got, header, text := check(path, authorization...)
			if got != want.status || got != http.StatusOK && !strings.Contains(text, want.says) {
				t.Errorf("%s with the token %q: %d %q, want %d and %q", path, id, got, text, want.status, want.says)
			}
			if (header.Get("WWW-Authenticate") != "") != (got == http.StatusUnauthorized) {
				t.Errorf("%s with the token %q: %d with WWW-Authenticate %q", path, id, got, header.Get("WWW-Authenticate"))
			}
		}
	}
	for name, test := range map[string]struct {
		authorization []string
		want          int
	}{
		"small letters":  {[]string{"bearer " + tokens["admin"]}, http.StatusOK},
		"two tokens":     {[]string{"Bearer " + tokens["read"], "Bearer " + tokens["admin"]}, http.StatusUnauthorized},
		"another scheme": {[]string{"Basic " + tokens["admin"]}, http.StatusUnauthorized},
		"no scheme":      {[]string{tokens["admin"]}, http.StatusUnauthorized},
	} {
		if got, _, _ := check("/debug/pprof/", test.authorization...); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if got, _, _ := check(path); got != http.StatusOK {
			t.Errorf("%s needs a token: %d", path, got)
		}
	}
}

// TestRevokedTokenEndsItsStreams: A stream ends when its token is revoked, in either direction.
func TestRevokedTokenEndsItsStreams(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	ids := []string{"exports", "imports", "asks"}
	clients := map[string]*sidecartest.Sidecar{}
	sidecartest.AddToken(t, file, "stays", access.Grant{Namespace: "a", Level: access.Write})
	tokens := map[string]string{}
	for _, id := range ids {
		tokens[id] = sidecartest.AddToken(t, file, id, access.Grant{Namespace: "a", Level: access.Write})
	}
	r := sidecartest.Serve(t, "auth.tokens_file="+file)
	for _, id := range ids {
		// A fixed window, so that a fast connection does not buffer more.
		clients[id] = r.As(t, tokens[id], grpc.WithStaticStreamWindowSize(64<<10))
	}

	// More than fits into buffers: the sidecar is in the middle of it until the client reads.
	long := strings.Repeat("a long story ", 2000)
	for range 6 {
		var messages []*memsidecarv1.Message
		for range 20 {
			messages = append(messages, sidecartest.Said(long))
		}
		clients["exports"].AppendTo(t, sidecartest.InSession(sidecartest.WithoutChannel("u"), "long"), messages...)
	}
	exporting := sidecartest.Must(clients["exports"].Sessions().ExportSession(t.Context(),
		&memsidecarv1.ExportSessionRequest{Scope: sidecartest.InSession(sidecartest.WithoutChannel("u"), "long")}))(t)
	sidecartest.Must(exporting.Recv())(t)
	importing := sidecartest.Must(clients["imports"].Sessions().ImportSession(t.Context()))(t)
	sidecartest.NoError(t, importing.Send(&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Session{
		Session: &memsidecarv1.ImportedSession{Scope: sidecartest.InSession(sidecartest.WithoutChannel("u"), "imported")},
	}}))
	asking := sidecartest.Must(reflectionpb.NewServerReflectionClient(clients["asks"].Conn).ServerReflectionInfo(t.Context()))(t)
	ask := func() error {
		question := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}
		if err := asking.Send(question); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		_, err := asking.Recv()
		return err
	}
	sidecartest.NoError(t, ask())

	for _, id := range ids {
		sidecartest.NoError(t, access.Remove(file, id))
	}
	revoked := time.Now()
	var err error
	sidecartest.Eventually(t, "the stream that asks ends", func() bool {
		err = ask()
		return err != nil
	})
	sidecartest.WantCode(t, err, codes.Unauthenticated)
	sidecartest.Eventually(t, "the stream that imports ends", func() bool {
		_, err := clients["imports"].GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}) // one message a call
		sidecartest.WantCode(t, err, codes.Unauthenticated)
		return importing.Send(&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Message{Message: sidecartest.Said("hello")}}) != nil
	})
	_, err = importing.CloseAndRecv()
	sidecartest.WantCode(t, err, codes.Unauthenticated)
	// The tokens file is checked again within a second, and so are streams.
	sidecartest.Eventually(t, "both have been looked at again", func() bool { return time.Since(revoked) > 2500*time.Millisecond })
	for err = nil; err == nil; {
		_, err = exporting.Recv()
	}
	sidecartest.WantCode(t, err, codes.Unauthenticated)
}
