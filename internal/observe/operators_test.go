package observe_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestMetricsAreThoseDocumented: After some activity the sidecar exports exactly the documented metrics and labels, with correct values.
func TestMetricsAreThoseDocumented(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 8)
	p.Take(100, 10)
	config := filepath.Join(t.TempDir(), "prices.yaml")
	sidecartest.NoError(t, os.WriteFile(config, []byte("llm:\n  prices:\n    - {model: openai/*, input: 2, output: 8, currency: CNY}\n"), 0o600))
	r := sidecartest.ServeWith(
		t,
		t.TempDir(),
		[]string{"MEMSIDECAR_CONFIG=" + config},
		append(sidecartest.UseProvider("openai", p), sidecartest.HTTPListen, "embedding.dimensions=8", "limits.namespace_memories=1")...)
	user := sidecartest.Direct("anna")
	if c := r.Consider(t, user, sidecartest.Said("我平时爱喝点茶。")); c.GetState() != sidecartest.Remembered {
		t.Fatal(c)
	}
	for range 3 {
		r.Texts(t, user, "喝什么茶")
	}
	// The rules decide instead of the model, and there is no room for what they find.
	p.Fail(providertest.BadRequest, providertest.Decision)
	if c := r.Consider(t, user, sidecartest.Said("我也爱喝咖啡。")); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED {
		t.Fatal(c)
	}
	_, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{})
	sidecartest.WantCode(t, err, codes.InvalidArgument)

	var kinds, values map[string]string
	sidecartest.Eventually(t, "both outcomes are counted", func() bool { // a waiting caller gets the answer before
		kinds, values = r.Scrape(t)
		if kinds["memsidecar_queue_considerations"] == "" {
			r.Late++ // the queue did not answer in time
			return false
		}
		return values["consideration_delay_seconds_count"] == "2" && values[`background_last_success_timestamp_seconds{loop="traces"}`] != "0"
	})
	documented := map[string]string{}
	docs := string(sidecartest.Must(os.ReadFile("../../docs/operations.md"))(t))
	for _, m := range regexp.MustCompile("(?m)^\\| `(memsidecar_\\w+)` \\| (\\w+) \\| ([^|]*?) ?\\|").FindAllStringSubmatch(docs, -1) {
		documented[m[1]] = m[2] + " | " + m[3]
	}
	for name := range maps.Keys(documented) {
		if documented[name] != kinds[name] {
			t.Errorf("docs/operations.md says of %s: %q; it is %q", name, documented[name], kinds[name])
		}
	}
	for name := range maps.Keys(kinds) {
		if documented[name] == "" {
			t.Errorf("docs/operations.md does not have %s: %q", name, kinds[name])
		}
	}
	for line, want := range map[string]string{
		`rpc_requests_total{code="OK",method="memsidecar.v1.MemoryService/Retrieve"}`:              "3",
		`rpc_requests_total{code="InvalidArgument",method="memsidecar.v1.MemoryService/Retrieve"}`: "1",
		`rpc_duration_seconds_count{method="memsidecar.v1.MemoryService/ConsiderMemorizing"}`:      "2",
		`retrievals_total`: "3",
		`retrievals_degraded_total{component="embedding",reason="late"}`:                       "0",
		`embedding_cache_lookups_total{result="hit"}`:                                          "2",
		`embedding_cache_lookups_total{result="miss"}`:                                         "1",
		`considerations_total{outcome="remembered"}`:                                           "1",
		`considerations_total{outcome="failed"}`:                                               "1",
		`consideration_delay_seconds_count`:                                                    "2",
		`queue_considerations{state="failed"}`:                                                 "1",
		`queue_considerations{state="pending"}`:                                                "0",
		`queue_oldest_age_seconds{state="running"}`:                                            "0",
		`model_calls_total{model="openai/model-of-decision",part="decision",result="ok"}`:      "1",
		`model_calls_total{model="openai/model-of-decision",part="decision",result="error"}`:   "1",
		`model_tokens_total{direction="input",model="openai/model-of-summary",part="summary"}`: "100",
		`model_cost_total{currency="CNY",model="openai/model-of-summary",part="summary"}`:      "0.00028",
		`breaker_state{component="storage",state="closed"}`:                                    "1",
		`breaker_state{component="storage",state="open"}`:                                      "0",
		`index_cache_users`: "1",
	} {
		if values[line] != want {
			t.Errorf("%s is %q, want %s", line, values[line], want)
		}
	}
	if problems, err := strconv.Atoi(values["scrape_problems_total"]); err != nil || problems > r.Late {
		t.Errorf("%s problems are counted, and %d scrapes were late", values["scrape_problems_total"], r.Late)
	}
	for _, line := range []string{
		"database_size_bytes", "database_wal_size_bytes", "index_cache_bytes", "commit_writes_count", `queue_oldest_age_seconds{state="failed"}`,
		`background_last_success_timestamp_seconds{loop="considerations"}`, `background_last_success_timestamp_seconds{loop="traces"}`,
	} {
		if v := values[line]; v == "" || v == "0" {
			t.Errorf("%s is %q", line, v)
		}
	}
	if _, text := r.GetOps(t, "/metrics"); strings.Contains(text, "anna") || strings.Contains(text, "default") || !strings.Contains(text, "\ngo_goroutines ") {
		t.Error("the metrics name users or namespaces, or lack those of the process")
	}
}

// TestReadinessFollowsStorage: While storage is down, the process is alive but not ready, and says why. It becomes ready again without a
// restart.
func TestReadinessFollowsStorage(t *testing.T) {
	t.Parallel() // waits for the next attempt to open the database
	dir := filepath.Join(t.TempDir(), "data")
	corrupt := sidecartest.Outages["corrupt"]
	corrupt.Cause(t, dir)
	r := sidecartest.ServeIn(t, dir, sidecartest.HTTPListen)
	want := func(path string, status int, says string) {
		t.Helper()
		if got, text := r.GetOps(t, path); got != status || !strings.Contains(text, says) {
			t.Errorf("%s is answered %d: %q", path, got, text)
		}
	}
	want("/healthz", http.StatusOK, "ok")
	want("/readyz", http.StatusServiceUnavailable, "storage: ")
	want("/readyz", http.StatusServiceUnavailable, corrupt.Reason)
	want("/debug/pprof/", http.StatusNotFound, "")
	kinds, values := r.Scrape(t) // without the queue, and with a note about it
	if kinds["memsidecar_queue_considerations"] != "" || values[`breaker_state{component="storage",state="open"}`] == "" ||
		values["scrape_problems_total"] == "" {
		t.Errorf("during an outage %v", values)
	}
	corrupt.Cure(t, dir)
	sidecartest.Eventually(t, "ready", func() bool {
		status, _ := r.GetOps(t, "/readyz")
		return status == http.StatusOK
	})
	want("/healthz", http.StatusOK, "ok")
}

// TestProfilesAreServedWhenEnabled: Profiles are served only if they are enabled.
func TestProfilesAreServedWhenEnabled(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, sidecartest.HTTPListen, "http.pprof=true")
	for path, says := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile:", "/debug/pprof/cmdline": ""} {
		if status, text := r.GetOps(t, path); status != http.StatusOK || !strings.Contains(text, says) {
			t.Errorf("%s is answered %d: %.100q", path, status, text)
		}
	}
	if status, _ := r.GetOps(t, "/"); status != http.StatusNotFound {
		t.Errorf("/ is answered %d", status)
	}
}

// TestLogHasNoUserText: At the usual level, the log of a busy run has no user text, one line per failed call, and for an outage of the
// models one line at its start and one at its end.
func TestLogHasNoUserText(t *testing.T) {
	t.Parallel()
	const secret = "紫罗兰XYZZY"
	p := providertest.Start(t, 8)
	p.Say("用户喜欢" + secret)
	// The first of two settings of a key counts.
	r := sidecartest.Serve(
		t,
		append([]string{"log.level=info", "embedding.dimensions=8", "session.memorize_every=2"}, sidecartest.UseProvider("openai", p)...)...)
	user := sidecartest.Direct("anna")
	user.SessionId = "s"
	r.Consider(t, user, sidecartest.Said("我喜欢"+secret), sidecartest.Answered(secret+"!"))
	r.Texts(t, user, secret)

	p.Fail(providertest.ServerError, providertest.Decision, providertest.Summary, providertest.Embedding)
	for i := range 20 {
		_, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: sidecartest.Direct(fmt.Sprint("u", i)), Messages: []*memsidecarv1.Message{sidecartest.Said(secret)},
		})
		sidecartest.NoError(t, err)
	}
	sidecartest.Eventually(t, "the decision model is unavailable", func() bool {
		return r.Component(t, "decision").GetBreaker() == memsidecarv1.BreakerState_BREAKER_STATE_OPEN
	})
	r.Texts(t, user, secret+"?")
	p.Fail(providertest.NoFault, providertest.Decision, providertest.Summary, providertest.Embedding)
	sidecartest.Eventually(t, "the queue is empty", func() bool { return r.Status(t).GetQueue().GetPendingCount() == 0 })
	p.Fail(providertest.BrokenJSON, providertest.Decision)
	r.Consider(t, user, sidecartest.Said("又是"+secret))

	const traceID = "0af7651916cd43dd8448eb211c80319c"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+traceID+"-b7ad6b7169203331-01")
	for range 30 {
		_, err := r.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Query: secret})
		sidecartest.WantCode(t, err, codes.InvalidArgument)
	}
	_, err := r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: user, Filter: "text = " + secret + " ("})
	sidecartest.WantCode(t, err, codes.InvalidArgument)
	r.Stop()

	log := r.Log.String()
	if strings.Contains(log, secret) || strings.Contains(log, "XYZZY") {
		t.Errorf("the log contains user text:\n%s", log)
	}
	failing := regexp.MustCompile(`level=INFO msg=call method=Retrieve code=InvalidArgument duration=\S+ otel_trace_id=` + traceID + "\n")
	if n := len(failing.FindAllString(log, -1)); n != 10 {
		t.Errorf("%d lines of 30 calls that failed, want 10:\n%s", n, log)
	}
	for text, want := range map[string]int{
		`msg="circuit breaker opened" component=decision`: 1, `msg="circuit breaker closed" component=decision`: 1,
		"postponed": 0, "without vectors": 0, "method=ListMemories code=InvalidArgument": 1, `msg="consideration failed"`: 0, "code=OK": 0,
	} {
		if got := strings.Count(log, text); got != want {
			t.Errorf("%q is written %d times, want %d:\n%s", text, got, want, log)
		}
	}
}
