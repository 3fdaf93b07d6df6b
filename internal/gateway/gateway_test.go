package gateway_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/listen"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// TestEveryCallOverHTTP: Every call works over HTTP with the same access as over gRPC, and is refused with the same message and details.
func TestEveryCallOverHTTP(t *testing.T) {
	t.Parallel()
	r, tokens := sidecartest.ServeGuarded(t, sidecartest.JSONListen)
	unknown := access.NewToken()
	for name, header := range map[string]string{
		"no token": "", "an unknown token": "Bearer " + unknown, "another scheme": "Basic " + tokens["a"],
		"a": "Bearer " + tokens["a"], "b": "Bearer " + tokens["b"], "reader": "Bearer " + tokens["reader"], "admin": "Bearer " + tokens["admin"],
	} {
		known, reaches := tokens[name] != "", name == "a" || name == "admin" || name == "reader"
		over, conn := r.With(t, sidecartest.Authorization(header)), r.JSON(header)
		if header == "" {
			over, conn = r, r.JSON()
		}
		for _, method := range sidecartest.AllMethods(t) {
			request := sidecartest.ScopedRequest(t, method, sidecartest.InNamespace("a", sidecartest.WithoutChannel("u")))
			_, want := over.Call(t, method, request)
			answer, got := sidecartest.CallOver(t, conn, method, request)
			// An empty stream's answer is its end.
			if errors.Is(want, io.EOF) && errors.Is(got, io.EOF) {
				continue
			}
			if !proto.Equal(status.Convert(got).Proto(), status.Convert(want).Proto()) {
				t.Errorf("%s by %s: %v, over gRPC %v", method.Name(), name, got, want)
			}
			if code := status.Code(got); (code == codes.Unauthenticated) == known || code == codes.Unimplemented ||
				known && !reaches && code != codes.PermissionDenied {
				t.Errorf("%s by %s: %v", method.Name(), name, got)
			}
			if got == nil && !answer.ProtoReflect().IsValid() {
				t.Errorf("%s by %s answers nothing", method.Name(), name)
			}
		}
	}
}

// TestJSONAndGRPCShowTheSameData: Each protocol shows what the other stored, streams included, in protobuf's standard JSON.
func TestJSONAndGRPCShowTheSameData(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, sidecartest.JSONListen)
	web := r.JSON()
	remembered := web.Ask(t, "ConsiderMemorizing", `{"scope": {"user_id": "u"}, "wait": "600s",
		"messages": [{"role": "ROLE_USER", "content": "I am allergic to peanuts. 我喜欢榴莲"}]}`)
	if remembered.Status != http.StatusOK || !strings.Contains(remembered.Text, `"CONSIDERATION_STATE_REMEMBERED"`) {
		t.Fatal(remembered.Text)
	}
	found := web.Ask(t, "Retrieve", `{"scope": {"userId": "u"}, "query": "peanuts"}`)
	if found.Header.Get("Content-Type") != "application/json" || !strings.Contains(found.Text, "promptContext") {
		t.Error(found.Header, found.Text)
	}
	if got := sidecartest.Texts(r.Memories(t, sidecartest.WithoutChannel("u"))); len(got) == 0 ||
		!strings.Contains(strings.Join(got, " "), "peanuts") {
		t.Errorf("over gRPC it has %q", got)
	}

	far := sidecartest.NewStubs(web)
	other := &sidecartest.Sidecar{Stubs: far}
	if got := sidecartest.Must(other.Import(
		t, sidecartest.WithoutChannel("v"), &memsidecarv1.Memory{Text: "Likes tea"},
		&memsidecarv1.Memory{Text: "喜欢咖啡"},
	))(t); got.GetAddedCount() != 2 {
		t.Errorf("importing: %v", got)
	}
	if got := r.Export(t, sidecartest.WithoutChannel("v")); len(got.Memories) != 2 ||
		len(other.Export(t, sidecartest.WithoutChannel("v")).Records) != len(got.Records) {
		t.Errorf("exporting: %v", got.Records)
	}
	audit := sidecartest.Must(web.Post(t.Context(), "/memsidecar.v1.AdminService/AuditMemories", ""))(t)
	if audit.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Error(audit)
	}
	lines := strings.Split(strings.TrimSpace(audit.Text), "\n")
	if !strings.Contains(lines[len(lines)-1], `{"result":{"total":{"userCount":"2"`) {
		t.Errorf("the audit ends with %s", lines)
	}
}

// TestJSONErrorsHaveHTTPStatusAndHeaders: Errors name the problem, with the status and headers that HTTP has for it.
func TestJSONErrorsHaveHTTPStatusAndHeaders(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, sidecartest.JSONListen, "max_request_bytes=65536", "limits.user_rps=0.001", "limits.user_burst=1")
	web := r.JSON()
	post := func(header, value string) *sidecartest.JSONClient {
		c := r.JSON()
		c.Header.Set(header, value)
		return c
	}
	long := strings.Repeat("榴", 30_000)
	for name, test := range map[string]struct {
		as         *sidecartest.JSONClient
		call, body string
		code       int
		says       []string
	}{
		"an unknown field": {
			web, "Retrieve", `{"scope": {"user_id": "u"}, "querry": "q"}`, 400,
			[]string{`"field":"querry"`, "is an unknown field: RetrieveRequest has scope, query, "},
		},
		"an unknown field below": {
			web, "Retrieve", `{"scope": {"user": "u"}}`, 400,
			[]string{`"field":"scope.user"`, "is an unknown field: Scope has namespace, user_id, "},
		},
		"an unknown name": {web, "ListMemories", `{"states": ["GONE"]}`, 400, []string{`"field":"states[0]"`, `is \"GONE\": use \"active\", `}},
		"a user without a scope": {
			web, "Retrieve", `{"user_id": "u", "query": "q"}`, 400, []string{`write \"scope\": {\"user_id\": …}`},
		},
		"no JSON":       {web, "Retrieve", `query=q`, 400, []string{`request cannot be decoded`}},
		"half of it":    {web, "Retrieve", `{"query": "q"`, 400, []string{`request cannot be decoded`}},
		"no object":     {web, "Retrieve", `[]`, 400, []string{`request cannot be decoded`}},
		"two":           {web, "Retrieve", `{"query": "q"} {}`, 400, []string{`request cannot be decoded`}},
		"a broken text": {web, "Retrieve", "{\"query\": \"\xff\"}", 400, []string{`invalid UTF-8`}},
		"wrong fields":  {web, "Retrieve", `{"topK": 0}`, 400, []string{`"field":"scope.user_id"`, `"field":"query"`, `"field":"top_k"`, "google.rpc.BadRequest"}},
		"nothing":       {web, "Retrieve", ``, 400, []string{`"field":"query"`}},
		"too large":     {web, "Retrieve", `{"query": "` + long + `"}`, 413, []string{`more than 65536 bytes: send it in parts`, `"field":"request"`}},
		"not there":     {web, "GetMemory", `{"scope": {"user_id": "w"}, "memory_id": "mem_x"}`, 404, []string{`"code":5`}},
		"no call":       {web, "Recall", `{}`, 404, []string{"GET /openapi.json lists them"}},
		"a form":        {post("Content-Type", "application/x-www-form-urlencoded"), "Retrieve", `{}`, 415, []string{"Content-Type: application/json"}},
		"a simple request": {
			post("Content-Type", "text/plain"), "/memsidecar.v1.UserService/ForgetUser",
			`{"scope": {"user_id": "u"}}`, 415,
			[]string{"application/json"},
		},
		"a deadline": {post("Grpc-Timeout", "soon"), "/memsidecar.v1.AdminService/GetStatus", ``, 400, []string{"grpc-timeout"}},
		"the second of a stream": {
			web, "ImportMemories", `{"scope": {"user_id": "x"}} {"memory": {"words": "w"}}`, 400,
			[]string{`"field":"request[1].memory.words"`, "is an unknown field: Memory has id, text, "},
		},
		"a large one of a stream": {
			web, "ImportMemories", `{"scope": {"user_id": "y"}}` + "\n" + `{"memory": {"text": "` + long + long + `"}}`, 413,
			[]string{`"field":"request[1]"`, "more than 65536 bytes"},
		},
		"a stream without a scope": {web, "ImportMemories", `{"memory": {"text": "t"}}`, 400, []string{`scope`}},
	} {
		got := test.as.Ask(t, test.call, test.body)
		if got.Status != test.code {
			t.Errorf("%s: %d, want %d: %s", name, got.Status, test.code, got.Text)
		}
		for _, part := range test.says {
			if !strings.Contains(got.Text, part) {
				t.Errorf("%s: %s does not say %s", name, got.Text, part)
			}
		}
	}

	once := func() sidecartest.Answer { return web.Ask(t, "ListMemories", `{"scope": {"user_id": "often"}}`) }
	if got := once(); got.Status != http.StatusOK {
		t.Error(got.Text)
	}
	got := once()
	if wait, err := strconv.Atoi(got.Header.Get("Retry-After")); got.Status != http.StatusTooManyRequests || err != nil || wait < 1 {
		t.Errorf("too often: %d, %v: %s", got.Status, got.Header, got.Text)
	}
	for path, want := range map[string]int{"/memsidecar.v1.MemoryService/Retrieve": 405, "/": 404, "/healthz": 200, "/healthz?service=storage": 200} {
		if got := web.Get(t, path); got.Status != want || want == 405 && got.Header.Get("Allow") != "POST" {
			t.Errorf("GET %s: %d, %v", path, got.Status, got.Header)
		}
	}
	if got := web.Ask(t, "/grpc.health.v1.Health/Check", `{"service": "storage"}`); !strings.Contains(got.Text, `"SERVING"`) {
		t.Error(got.Text)
	}
}

// waiting is the body of a call that waits for an outcome that never comes, and its user.
const waiting = `{"scope": {"user_id": "u", "channel_kind": "CHANNEL_KIND_DIRECT"}, "wait": "600s", "messages": [{"role": "ROLE_USER", ` +
	`"content": "after it"}]}`

// serveStuck runs a sidecar in which the direct chat of "u" waits for an earlier dialogue.
func serveStuck(t *testing.T, settings ...string) *sidecartest.Sidecar {
	t.Helper()
	dir := t.TempDir()
	sidecartest.SeedConsideration(t, dir, sidecartest.Direct("u"), "stuck", sidecartest.Stuck)
	return sidecartest.ServeIn(t, dir, append(settings, sidecartest.JSONListen)...)
}

func eventuallyWaits(t *testing.T, r *sidecartest.Sidecar) {
	t.Helper()
	sidecartest.Eventually(t, "the dialogue is taken", func() bool { return len(r.Considerations(t, sidecartest.Direct("u"))) == 2 })
}

// TestCallEndsWhenItsCallerLeaves: A call ends when its caller hangs up or its deadline passes. When the sidecar stops, waiting callers
// get an answer.
func TestCallEndsWhenItsCallerLeaves(t *testing.T) {
	t.Parallel()
	r := serveStuck(t, "log.level=debug")
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.JSON().
			Post(metadata.AppendToOutgoingContext(ctx, "x-request-id", "turn-7"), "/memsidecar.v1.MemoryService/ConsiderMemorizing", waiting)
		done <- err
	}()
	eventuallyWaits(t, r)
	hangUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	sidecartest.Eventually(t, "the call ends with its caller", func() bool {
		for line := range strings.SplitSeq(r.Log.String(), "\n") {
			if strings.Contains(line, "method=ConsiderMemorizing code=Canceled") && strings.Contains(line, "request_id=turn-7") {
				return true
			}
		}
		return false
	})

	late := r.JSON()
	late.Header.Set("Grpc-Timeout", "50m") // milliseconds
	late.Header.Set("X-Request-Id", "turn-8")
	if got := late.Ask(t, "ConsiderMemorizing", waiting); got.Status != http.StatusGatewayTimeout ||
		got.Header.Get("X-Request-Id") != "turn-8" {
		t.Errorf("after the deadline: %d, %s", got.Status, got.Text)
	}
}

func TestStopAnswersWaitingJSONCalls(t *testing.T) {
	t.Parallel()
	r := serveStuck(t)
	answered := make(chan sidecartest.Answer, 1)
	go func() { answered <- r.JSON().Ask(t, "ConsiderMemorizing", waiting) }()
	eventuallyWaits(t, r)
	r.Stop()
	if got := <-answered; got.Status != http.StatusOK || !strings.Contains(got.Text, "CONSIDERATION_STATE_PENDING") {
		t.Errorf("%d: %s", got.Status, got.Text)
	}
}

// TestTraceparentHeaderIsPropagated: The call's span belongs to its caller's trace.
func TestTraceparentHeaderIsPropagated(t *testing.T) {
	t.Parallel()
	const caller = "0af7651916cd43dd8448eb211c80319c"
	r := sidecartest.Serve(t, sidecartest.JSONListen)
	web := r.JSON()
	web.Header.Set("Traceparent", "00-"+caller+"-b7ad6b7169203331-01")
	if got := web.Ask(t, "Retrieve", `{"scope": {"user_id": "u"}, "query": "q"}`); got.Status != http.StatusOK {
		t.Fatal(got.Text)
	}
	traces := memsidecarv1.NewTraceServiceClient(r.Conn)
	sidecartest.Eventually(t, "it is recorded", func() bool {
		list := sidecartest.Must(traces.ListTraces(t.Context(), &memsidecarv1.ListTracesRequest{Scope: sidecartest.WithoutChannel("u")}))(
			t,
		).GetTraces()
		return len(list) == 1 && list[0].GetOtelTraceId() == caller
	})
}

// TestBrowsersCannotUseTheAPI: A web page in a user's browser cannot use the port.
func TestBrowsersCannotUseTheAPI(t *testing.T) {
	t.Parallel()
	open := sidecartest.Serve(t, sidecartest.JSONListen)
	guarded, tokens := sidecartest.ServeGuarded(t, sidecartest.JSONListen)
	for name, test := range map[string]struct {
		r             *sidecartest.Sidecar
		header, value string
		want          int
	}{
		"another origin":             {open, "Origin", "https://evil.example", 403},
		"another site":               {open, "Sec-Fetch-Site", "cross-site", 403},
		"another host":               {open, "Host", "evil.example", 403},
		"another host with tokens":   {guarded, "Host", "memory.example", 200},
		"another origin with tokens": {guarded, "Origin", "https://evil.example", 403},
		"localhost":                  {open, "Host", "localhost:1", 200},
		"localhost, as people write": {open, "Host", "LocalHost:1", 200},
		"IPv6":                       {open, "Host", "[::1]", 200},
		"a program":                  {open, "User-Agent", "curl", 200},
	} {
		req := sidecartest.Must(
			http.NewRequestWithContext(
				t.Context(),
				http.MethodPost,
				"http://"+test.r.API+"/memsidecar.v1.AdminService/GetStatus",
				strings.NewReader("{}"),
			),
		)(
			t,
		)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+tokens["a"])
		req.Header.Set(test.header, test.value)
		if test.header == "Host" {
			req.Host = test.value
		}
		got := sidecartest.Must(test.r.JSON().Do(req))(t)
		if got.Status != test.want || got.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d, %v", name, got.Status, got.Header)
		}
	}
}

// TestJSONOverTLS: With certificates, both protocols are encrypted and require client certificates, and JSON also works over HTTP/2.
func TestJSONOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := sidecartest.Must(sidecartest.NewAuthority(dir, "ca"))(t)
	sidecartest.NoError(t, ca.Leaf("server", "memsidecar.test"))
	sidecartest.NoError(t, ca.Leaf("client", "memsidecar.test"))
	file := func(name string) string { return filepath.Join(dir, name) }
	r := sidecartest.Serve(
		t,
		sidecartest.JSONListen,
		"tls.cert_file="+file("server.pem"),
		"tls.key_file="+file("server.key"),
		"tls.client_ca_file="+file("ca.pem"),
	)
	config := &tls.Config{RootCAs: sidecartest.Must(listen.LoadCertPool(file("ca.pem")))(t), ServerName: "memsidecar.test"}
	call := func(config *tls.Config, http2 bool) (string, error) {
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}
		defer transport.CloseIdleConnections()
		web := &sidecartest.JSONClient{Client: &http.Client{Transport: transport}, Base: "https://" + r.API, Header: http.Header{}}
		got, err := web.Post(t.Context(), "/memsidecar.v1.AdminService/GetStatus", "{}")
		if err == nil && got.Status != http.StatusOK {
			t.Error(got.Text)
		}
		return got.Version, err
	}
	if _, err := call(config, false); err == nil {
		t.Error("a client without a certificate gets an answer")
	}
	config.Certificates = []tls.Certificate{sidecartest.Must(tls.LoadX509KeyPair(file("client.pem"), file("client.key")))(t)}
	for http2, want := range map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"} {
		if got, err := call(config.Clone(), http2); err != nil || got != want {
			t.Errorf("%s: %v, want %s", got, err, want)
		}
	}
	got, err := r.JSON().Post(t.Context(), "/memsidecar.v1.AdminService/GetStatus", "{}")
	if err == nil && got.Status == http.StatusOK {
		t.Errorf("without encryption: %s", got.Text)
	}
}

func TestJSONOverUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(sidecartest.ShortFolder(t), "api")
	sidecartest.Serve(t, "api.listen=unix:"+path)
	web := &sidecartest.JSONClient{Base: "http://memsidecar", Header: http.Header{}, Client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}}
	defer web.Client.CloseIdleConnections()
	if got := web.Ask(t, "GetStatus", ""); got.Status != http.StatusOK {
		t.Error(got.Text)
	}
}

// TestOpenAPIDocumentHasEveryCall: The served document has every call at its real path.
func TestOpenAPIDocumentHasEveryCall(t *testing.T) {
	t.Parallel()
	r, tokens := sidecartest.ServeGuarded(t, sidecartest.JSONListen)
	if got := r.JSON().Get(t, "/openapi.json"); got.Status != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("a stranger: %d %v", got.Status, got.Header)
	}
	var document struct {
		Info  struct{ Title string }
		Paths map[string]any
	}
	sidecartest.NoError(t, json.Unmarshal([]byte(r.JSON("Bearer "+tokens["reader"]).Get(t, "/openapi.json").Text), &document))
	want := []string{}
	for _, method := range sidecartest.AllMethods(t) {
		want = append(want, sidecartest.FullName(method))
	}
	slices.Sort(want)
	got := slices.Sorted(maps.Keys(document.Paths))
	if !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}
	if document.Info.Title != "memsidecar" {
		t.Errorf("it is about %q", document.Info.Title)
	}
}
