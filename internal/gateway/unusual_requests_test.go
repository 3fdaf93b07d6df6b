package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestUnusualHTTPRequestsAreAnswered: Unusual requests of other programs are understood, or refused with an explanation.
func TestUnusualHTTPRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, sidecartest.JSONListen)
	const mark = "\ufeff"
	if got := r.JSON().Ask(t, "Retrieve", mark+`{"scope": {"user_id": "u"}, "query": "q"}`); got.Status != http.StatusOK {
		t.Errorf("a byte order mark: %s", got.Text)
	}
	if got := r.JSON().Ask(t, "ImportMemories", mark+`{"scope": {"user_id": "u"}} {"memory": {"text": "Likes tea"}}`); strings.TrimSpace(
		got.Text,
	) != `{"addedCount":"1"}` {
		t.Errorf("a byte order mark before a stream: %s", got.Text)
	}
	for _, test := range []struct {
		header, value string
		want          int
		says          string
	}{
		{"Content-Encoding", "gzip", 415, "without Content-Encoding"},
		{"Content-Encoding", "identity", 200, "version"},
		{"X-Request-Id", "第七", 400, "the header X-Request-Id is not printable ASCII"},
		{"Traceparent", "\xff", 400, "the header Traceparent"},
		{"Authorization", "Bearer 令牌", 400, "the header Authorization"},
	} {
		web := r.JSON()
		web.Header.Set(test.header, test.value)
		if got := web.Ask(t, "GetStatus", "{}"); got.Status != test.want || !strings.Contains(got.Text, test.says) {
			t.Errorf("%s %s: %d, %s", test.header, test.value, got.Status, got.Text)
		}
	}
	req := sidecartest.Must(http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+r.API+"/healthz", http.NoBody))(t)
	if got := sidecartest.Must(r.JSON().Do(req))(t); got.Status != http.StatusOK || got.Text != "" {
		t.Errorf("HEAD /healthz: %d %s", got.Status, got.Text)
	}
}

// TestStopEndsHealthWatches: Watchers of the health status, over gRPC and HTTP, are notified and do not delay the stop.
func TestStopEndsHealthWatches(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, sidecartest.JSONListen)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), sidecartest.Timeout) // less than shutdown_grace
	defer cancel()
	watch := sidecartest.Must(healthpb.NewHealthClient(r.Conn).Watch(ctx, &healthpb.HealthCheckRequest{}))(t)
	if got := sidecartest.Must(watch.Recv())(t); got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Error(got)
	}
	req := sidecartest.Must(http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.API+"/grpc.health.v1.Health/Watch", strings.NewReader("{}")))(t)
	req.Header.Set("Content-Type", "application/json")
	resp := sidecartest.Must(http.DefaultClient.Do(req))(t) //nolint:bodyclose // it is, below
	defer func() { _ = resp.Body.Close() }()
	r.Cancel()
	if got := sidecartest.Must(watch.Recv())(t); got.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Error(got)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the sidecar is stopping") {
		t.Errorf("it ends with %v", err)
	}
	text := sidecartest.Must(io.ReadAll(resp.Body))(t)
	if lines := strings.Fields(string(text)); len(lines) < 3 || lines[1] != `{"result":{"status":"NOT_SERVING"}}` ||
		!strings.Contains(string(text), "the sidecar is stopping") {
		t.Errorf("over HTTP it says %s", text)
	}
	r.Stop()
}
