package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
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

// TestEveryCallOverHTTP: each call there is can be made, by whom it can be made over gRPC, and is refused in the same words with
// the same details.
func TestEveryCallOverHTTP(t *testing.T) {
	r, tokens := serveGuarded(t, overHTTP)
	unknown := access.NewToken()
	for name, header := range map[string]string{
		"no token": "", "an unknown token": "Bearer " + unknown, "another scheme": "Basic " + tokens["a"],
		"a": "Bearer " + tokens["a"], "b": "Bearer " + tokens["b"], "reader": "Bearer " + tokens["reader"], "admin": "Bearer " + tokens["admin"],
	} {
		known, reaches := tokens[name] != "", name == "a" || name == "admin" || name == "reader"
		over, conn := r.with(t, authorization(header)), r.overJSON(header)
		if header == "" {
			over, conn = r, r.overJSON()
		}
		for _, method := range allMethods(t) {
			request := scopedRequest(t, method, in("a", anywhere("u")))
			_, want := over.call(t, method, request)
			answer, got := callOver(t, conn, method, request)
			// The end of an empty stream is its answer.
			if errors.Is(want, io.EOF) && errors.Is(got, io.EOF) {
				continue
			}
			if !proto.Equal(status.Convert(got).Proto(), status.Convert(want).Proto()) {
				t.Errorf("%s by %s: %v, over gRPC %v", method.Name(), name, got, want)
			}
			if code := status.Code(got); (code == codes.Unauthenticated) == known || code == codes.Unimplemented || known && !reaches && code != codes.PermissionDenied {
				t.Errorf("%s by %s: %v", method.Name(), name, got)
			}
			if got == nil && !answer.ProtoReflect().IsValid() {
				t.Errorf("%s by %s answers nothing", method.Name(), name)
			}
		}
	}
}

// TestOverHTTPAsOverGRPC: one way in shows what the other stored, in the form that other tools print, with its streams.
func TestOverHTTPAsOverGRPC(t *testing.T) {
	r := serve(t, overHTTP)
	web := r.overJSON()
	remembered := web.ask(t, "ConsiderMemorizing", `{"scope": {"user_id": "u"}, "wait": "600s",
		"messages": [{"role": "ROLE_USER", "content": "I am allergic to peanuts. 我喜欢榴莲"}]}`)
	if remembered.status != http.StatusOK || !strings.Contains(remembered.text, `"CONSIDERATION_STATE_REMEMBERED"`) {
		t.Fatal(remembered.text)
	}
	found := web.ask(t, "Retrieve", `{"scope": {"userId": "u"}, "query": "peanuts"}`)
	if found.header.Get("Content-Type") != "application/json" || !strings.Contains(found.text, "promptContext") {
		t.Error(found.header, found.text)
	}
	if got := texts(r.list(t, anywhere("u"))); len(got) == 0 || !strings.Contains(strings.Join(got, " "), "peanuts") {
		t.Errorf("over gRPC it has %q", got)
	}

	far := newStubs(web)
	other := &running{stubs: far}
	if got := must(other.load(t, anywhere("v"), &memsidecarv1.Memory{Text: "Likes tea"}, &memsidecarv1.Memory{Text: "喜欢咖啡"}))(t); got.GetAddedCount() != 2 {
		t.Errorf("importing: %v", got)
	}
	if got := r.export(t, anywhere("v")); len(got.memories) != 2 || len(other.export(t, anywhere("v")).records) != len(got.records) {
		t.Errorf("exporting: %v", got.records)
	}
	audit := must(web.post(t.Context(), "/memsidecar.v1.AdminService/AuditMemories", ""))(t)
	if audit.header.Get("Content-Type") != "application/x-ndjson" {
		t.Error(audit)
	}
	lines := strings.Split(strings.TrimSpace(audit.text), "\n")
	if !strings.Contains(lines[len(lines)-1], `{"result":{"total":{"userCount":"2"`) {
		t.Errorf("the audit ends with %s", lines)
	}
}

// TestHTTPErrors: what is wrong is named, with the status and headers that HTTP has for it.
func TestHTTPErrors(t *testing.T) {
	r := serve(t, overHTTP, "max_request_bytes=65536", "limits.user_rps=0.001", "limits.user_burst=1")
	web := r.overJSON()
	post := func(header, value string) *jsonConn {
		c := r.overJSON()
		c.header.Set(header, value)
		return c
	}
	long := strings.Repeat("榴", 30_000)
	for name, test := range map[string]struct {
		as         *jsonConn
		call, body string
		code       int
		says       []string
	}{
		"an unknown field":       {web, "Retrieve", `{"scope": {"user_id": "u"}, "querry": "q"}`, 400, []string{`"field":"querry"`, "is an unknown field: RetrieveRequest has scope, query, "}},
		"an unknown field below": {web, "Retrieve", `{"scope": {"user": "u"}}`, 400, []string{`"field":"scope.user"`, "is an unknown field: Scope has namespace, user_id, "}},
		"an unknown name":        {web, "ListMemories", `{"states": ["GONE"]}`, 400, []string{`"field":"states[0]"`, `is \"GONE\": use \"active\", `}},
		"a user without a scope": {web, "Retrieve", `{"user_id": "u", "query": "q"}`, 400, []string{`write \"scope\": {\"user_id\": …}`}},
		"no JSON":                {web, "Retrieve", `query=q`, 400, []string{`request cannot be decoded`}},
		"half of it":             {web, "Retrieve", `{"query": "q"`, 400, []string{`request cannot be decoded`}},
		"no object":              {web, "Retrieve", `[]`, 400, []string{`request cannot be decoded`}},
		"two":                    {web, "Retrieve", `{"query": "q"} {}`, 400, []string{`request cannot be decoded`}},
		"a broken text":          {web, "Retrieve", "{\"query\": \"\xff\"}", 400, []string{`invalid UTF-8`}},
		"wrong fields":           {web, "Retrieve", `{"topK": 0}`, 400, []string{`"field":"scope.user_id"`, `"field":"query"`, `"field":"top_k"`, "google.rpc.BadRequest"}},
		"nothing":                {web, "Retrieve", ``, 400, []string{`"field":"query"`}},
		"too large":              {web, "Retrieve", `{"query": "` + long + `"}`, 413, []string{`more than 65536 bytes: send it in parts`, `"field":"request"`}},
		"not there":              {web, "GetMemory", `{"scope": {"user_id": "w"}, "memory_id": "mem_x"}`, 404, []string{`"code":5`}},
		"no call":                {web, "Recall", `{}`, 404, []string{"GET /openapi.json lists them"}},
		"a form":                 {post("Content-Type", "application/x-www-form-urlencoded"), "Retrieve", `{}`, 415, []string{"Content-Type: application/json"}},
		"a simple request":       {post("Content-Type", "text/plain"), "/memsidecar.v1.UserService/ForgetUser", `{"scope": {"user_id": "u"}}`, 415, []string{"application/json"}},
		"a deadline":             {post("Grpc-Timeout", "soon"), "/memsidecar.v1.AdminService/GetStatus", ``, 400, []string{"grpc-timeout"}},
		"the second of a stream": {web, "ImportMemories", `{"scope": {"user_id": "x"}} {"memory": {"words": "w"}}`, 400, []string{`"field":"request[1].memory.words"`, "is an unknown field: Memory has id, text, "}},
		"a large one of a stream": {
			web, "ImportMemories", `{"scope": {"user_id": "y"}}` + "\n" + `{"memory": {"text": "` + long + long + `"}}`, 413,
			[]string{`"field":"request[1]"`, "more than 65536 bytes"},
		},
		"a stream without a scope": {web, "ImportMemories", `{"memory": {"text": "t"}}`, 400, []string{`scope`}},
	} {
		got := test.as.ask(t, test.call, test.body)
		if got.status != test.code {
			t.Errorf("%s: %d, want %d: %s", name, got.status, test.code, got.text)
		}
		for _, part := range test.says {
			if !strings.Contains(got.text, part) {
				t.Errorf("%s: %s does not say %s", name, got.text, part)
			}
		}
	}

	once := func() asked { return web.ask(t, "ListMemories", `{"scope": {"user_id": "often"}}`) }
	if got := once(); got.status != http.StatusOK {
		t.Error(got.text)
	}
	got := once()
	if wait, err := strconv.Atoi(got.header.Get("Retry-After")); got.status != http.StatusTooManyRequests || err != nil || wait < 1 {
		t.Errorf("too often: %d, %v: %s", got.status, got.header, got.text)
	}
	for path, want := range map[string]int{"/memsidecar.v1.MemoryService/Retrieve": 405, "/": 404, "/healthz": 200, "/healthz?service=storage": 200} {
		if got := web.get(t, path); got.status != want || want == 405 && got.header.Get("Allow") != "POST" {
			t.Errorf("GET %s: %d, %v", path, got.status, got.header)
		}
	}
	if got := web.ask(t, "/grpc.health.v1.Health/Check", `{"service": "storage"}`); !strings.Contains(got.text, `"SERVING"`) {
		t.Error(got.text)
	}
}

// waiting is the body of a call that waits for what does not come, and of whom.
const waiting = `{"scope": {"user_id": "u", "channel_kind": "CHANNEL_KIND_DIRECT"}, "wait": "600s", "messages": [{"role": "ROLE_USER", "content": "after it"}]}`

// serveStuck runs a sidecar in which the direct chat of "u" waits for an earlier dialogue.
func serveStuck(t *testing.T, settings ...string) *running {
	t.Helper()
	dir := t.TempDir()
	seedConsideration(t, dir, direct("u"), "stuck", stuck)
	return serveIn(t, dir, append(settings, overHTTP)...)
}

func (r *running) eventuallyWaits(t *testing.T) {
	t.Helper()
	eventually(t, "the dialogue is taken", func() bool { return len(r.considerations(t, direct("u"))) == 2 })
}

// TestHTTPCallerGivesUp: by hanging up, by a deadline; and when the sidecar stops, those who wait are answered.
func TestHTTPCallerGivesUp(t *testing.T) {
	r := serveStuck(t, "log.level=debug")
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.overJSON().post(metadata.AppendToOutgoingContext(ctx, "x-request-id", "turn-7"), "/memsidecar.v1.MemoryService/ConsiderMemorizing", waiting)
		done <- err
	}()
	r.eventuallyWaits(t)
	hangUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	eventually(t, "the call ends with its caller", func() bool {
		for line := range strings.SplitSeq(r.log.String(), "\n") {
			if strings.Contains(line, "method=ConsiderMemorizing code=Canceled") && strings.Contains(line, "request_id=turn-7") {
				return true
			}
		}
		return false
	})

	late := r.overJSON()
	late.header.Set("Grpc-Timeout", "50m") // milliseconds
	late.header.Set("X-Request-Id", "turn-8")
	if got := late.ask(t, "ConsiderMemorizing", waiting); got.status != http.StatusGatewayTimeout || got.header.Get("X-Request-Id") != "turn-8" {
		t.Errorf("after the deadline: %d, %s", got.status, got.text)
	}
}

func TestHTTPStops(t *testing.T) {
	r := serveStuck(t)
	answered := make(chan asked, 1)
	go func() { answered <- r.overJSON().ask(t, "ConsiderMemorizing", waiting) }()
	r.eventuallyWaits(t)
	r.stop()
	if got := <-answered; got.status != http.StatusOK || !strings.Contains(got.text, "CONSIDERATION_STATE_PENDING") {
		t.Errorf("%d: %s", got.status, got.text)
	}
}

// TestHTTPTraceparent: the call belongs to its caller's trace.
func TestHTTPTraceparent(t *testing.T) {
	const caller = "0af7651916cd43dd8448eb211c80319c"
	r := serve(t, overHTTP)
	web := r.overJSON()
	web.header.Set("Traceparent", "00-"+caller+"-b7ad6b7169203331-01")
	if got := web.ask(t, "Retrieve", `{"scope": {"user_id": "u"}, "query": "q"}`); got.status != http.StatusOK {
		t.Fatal(got.text)
	}
	traces := memsidecarv1.NewTraceServiceClient(r.conn)
	eventually(t, "it is recorded", func() bool {
		list := must(traces.ListTraces(t.Context(), &memsidecarv1.ListTracesRequest{Scope: anywhere("u")}))(t).GetTraces()
		return len(list) == 1 && list[0].GetOtelTraceId() == caller
	})
}

// TestHTTPAndBrowsers: a web page on somebody's screen cannot use the port.
func TestHTTPAndBrowsers(t *testing.T) {
	open := serve(t, overHTTP)
	guarded, tokens := serveGuarded(t, overHTTP)
	for name, test := range map[string]struct {
		r             *running
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
		req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+test.r.api+"/memsidecar.v1.AdminService/GetStatus", strings.NewReader("{}")))(t)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+tokens["a"])
		req.Header.Set(test.header, test.value)
		if test.header == "Host" {
			req.Host = test.value
		}
		got := must(test.r.overJSON().do(req))(t)
		if got.status != test.want || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d, %v", name, got.status, got.header)
		}
	}
}

// TestHTTPEncrypted: with certificates, both ways in are encrypted and ask for clients' certificates, and JSON comes by HTTP/2, too.
func TestHTTPEncrypted(t *testing.T) {
	dir := t.TempDir()
	ca := must(sidecartest.NewAuthority(dir, "ca"))(t)
	mustDo(t, ca.Leaf("server", "memsidecar.test"))
	mustDo(t, ca.Leaf("client", "memsidecar.test"))
	file := func(name string) string { return filepath.Join(dir, name) }
	r := serve(t, overHTTP, "tls.cert_file="+file("server.pem"), "tls.key_file="+file("server.key"), "tls.client_ca_file="+file("ca.pem"))
	config := &tls.Config{RootCAs: must(listen.Pool(file("ca.pem")))(t), ServerName: "memsidecar.test"}
	call := func(config *tls.Config, http2 bool) (string, error) {
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}
		defer transport.CloseIdleConnections()
		web := &jsonConn{client: &http.Client{Transport: transport}, base: "https://" + r.api, header: http.Header{}}
		got, err := web.post(t.Context(), "/memsidecar.v1.AdminService/GetStatus", "{}")
		if err == nil && got.status != http.StatusOK {
			t.Error(got.text)
		}
		return got.version, err
	}
	if _, err := call(config, false); err == nil {
		t.Error("somebody without a certificate is answered")
	}
	config.Certificates = []tls.Certificate{must(tls.LoadX509KeyPair(file("client.pem"), file("client.key")))(t)}
	for http2, want := range map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"} {
		if got, err := call(config.Clone(), http2); err != nil || got != want {
			t.Errorf("%s: %v, want %s", got, err, want)
		}
	}
	got, err := r.overJSON().post(t.Context(), "/memsidecar.v1.AdminService/GetStatus", "{}")
	if err == nil && got.status == http.StatusOK {
		t.Errorf("without encryption: %s", got.text)
	}
}

// shortFolder is for sockets, whose addresses are short.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir := must(os.MkdirTemp("", "ms"))(t) //nolint:usetesting // t.TempDir is too long
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestHTTPOverSocket(t *testing.T) {
	path := filepath.Join(shortFolder(t), "api")
	serve(t, "api.listen=unix:"+path)
	web := &jsonConn{base: "http://memsidecar", header: http.Header{}, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}}
	defer web.client.CloseIdleConnections()
	if got := web.ask(t, "GetStatus", ""); got.status != http.StatusOK {
		t.Error(got.text)
	}
}

// TestOpenAPI: the document that is served has every call, at the path where it is answered.
func TestOpenAPI(t *testing.T) {
	r, tokens := serveGuarded(t, overHTTP)
	if got := r.overJSON().get(t, "/openapi.json"); got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("a stranger: %d %v", got.status, got.header)
	}
	var document struct {
		Info  struct{ Title string }
		Paths map[string]any
	}
	mustDo(t, json.Unmarshal([]byte(r.overJSON("Bearer "+tokens["reader"]).get(t, "/openapi.json").text), &document))
	want := []string{}
	for _, method := range allMethods(t) {
		want = append(want, fullName(method))
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

// TestAPIAddress: as for gRPC, outside of loopback there is none without encryption and tokens.
func TestAPIAddress(t *testing.T) {
	for _, test := range []struct{ settings, says string }{
		{"api.listen=0.0.0.0:0", "api.listen: is reached from outside of this machine"},
		{"api.listen=somewhere", "api.listen: is \"somewhere\""},
		{"api.listen=unix:s", "api.listen: is \"unix:s\", which is not an absolute path"},
		{"api.mcp=true", "api.mcp: is on without a port"},
		{"api.listen=127.0.0.1:0 api.mcp_user=u", "api.mcp_user: is set, and api.mcp is off"},
		{"api.listen=0.0.0.0:0 insecure=true", ""},
		{"api.listen=127.0.0.1:0 api.mcp=true api.mcp_user=u", ""},
	} {
		args := []string{"config", "check"}
		for setting := range strings.FieldsSeq(test.settings) {
			args = append(args, "--set", setting)
		}
		code, _, errs := runMain(t, args...)
		if (code == 0) != (test.says == "") || !strings.Contains(strings.ReplaceAll(errs, " (from --set)", ""), test.says) {
			t.Errorf("%s: exit code %d, %s", test.settings, code, errs)
		}
	}
}
