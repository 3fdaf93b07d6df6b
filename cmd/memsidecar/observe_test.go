package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// observed are the settings of a sidecar that a test looks into.
const observed = "http.listen=127.0.0.1:0"

// look asks the operators' port and returns the status and the answer.
func (r *running) look(t *testing.T, path string) (int, string) {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.http+path, http.NoBody))(t)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, string(must(io.ReadAll(resp.Body))(t))
}

// sample is a line of what Prometheus is told.
var sample = regexp.MustCompile(`(?m)^(memsidecar_\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? (\S+)$`)

// scrape returns the kind and the labels of each metric, as in the documentation, and the values of the lines.
func (r *running) scrape(t *testing.T) (kinds, values map[string]string) {
	t.Helper()
	var text string
	eventually(t, "the scrape is answered", func() bool {
		var status int
		if status, text = r.look(t, "/metrics"); status != http.StatusOK {
			r.late++ // it has seconds, and the machine may have taken longer
		}
		return status == http.StatusOK
	})
	kinds, values = map[string]string{}, map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (memsidecar_\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
		kinds[m[1]] = m[2]
	}
	labels := map[string][]string{}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		values[strings.TrimPrefix(m[0][:strings.LastIndexByte(m[0], ' ')], "memsidecar_")] = m[4]
		name := m[1]
		if kinds[name] == "" {
			name += m[2] // a counter that ends like a part of a histogram
		}
		labels[name] = nil
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[3], -1) {
			if l[1] != "le" {
				labels[name] = append(labels[name], l[1])
			}
		}
	}
	for name, list := range labels {
		slices.Sort(list)
		kinds[name] += " | " + strings.Join(list, ", ")
	}
	return kinds, values
}

// TestMetrics: all that the documentation promises is exported once the sidecar has done something, with the labels that it
// names, and nothing else; and the numbers are right.
func TestMetrics(t *testing.T) {
	p := providertest.Start(t, 8)
	p.Take(100, 10)
	config := filepath.Join(t.TempDir(), "prices.yaml")
	mustDo(t, os.WriteFile(config, []byte("llm:\n  prices:\n    - {model: openai/*, input: 2, output: 8, currency: CNY}\n"), 0o600))
	r := serveWith(t, t.TempDir(), []string{"MEMSIDECAR_CONFIG=" + config}, append(useProvider("openai", p), observed, "embedding.dimensions=8")...)
	user := direct("anna")
	if c := r.consider(t, user, said("我平时爱喝点茶。")); c.GetState() != remembered {
		t.Fatal(c)
	}
	for range 3 {
		r.retrieve(t, user, "喝什么茶")
	}
	p.Fail(providertest.BadRequest, providertest.Decision)
	if c := r.consider(t, user, said("我也爱喝咖啡。")); c.GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED {
		t.Fatal(c)
	}
	_, err := r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{})
	wantCode(t, err, codes.InvalidArgument)

	var kinds, values map[string]string
	eventually(t, "both outcomes are counted", func() bool { // the one who waits is answered before
		kinds, values = r.scrape(t)
		if kinds["memsidecar_queue_considerations"] == "" {
			r.late++ // the queue could not be asked in time
			return false
		}
		return values["consideration_delay_seconds_count"] == "2" && values[`background_last_success_timestamp_seconds{loop="traces"}`] != "0"
	})
	documented := map[string]string{}
	docs := string(must(os.ReadFile("../../docs/operations.md"))(t))
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
	if problems, err := strconv.Atoi(values["scrape_problems_total"]); err != nil || problems > r.late {
		t.Errorf("%s problems are counted, and %d scrapes were late", values["scrape_problems_total"], r.late)
	}
	for _, line := range []string{
		"database_size_bytes", "database_wal_size_bytes", "index_cache_bytes", "commit_writes_count", `queue_oldest_age_seconds{state="failed"}`,
		`background_last_success_timestamp_seconds{loop="considerations"}`, `background_last_success_timestamp_seconds{loop="traces"}`,
	} {
		if v := values[line]; v == "" || v == "0" {
			t.Errorf("%s is %q", line, v)
		}
	}
	if _, text := r.look(t, "/metrics"); strings.Contains(text, "anna") || strings.Contains(text, "default") || !strings.Contains(text, "\ngo_goroutines ") {
		t.Error("the metrics tell of users or namespaces, or nothing of the process")
	}
}

// TestReadiness: the process lives while storage is down, is not ready, and says why; and is ready again without a restart.
func TestReadiness(t *testing.T) {
	t.Parallel() // it waits for the next attempt to open the database
	dir := filepath.Join(t.TempDir(), "data")
	corrupt := outages["corrupt"]
	corrupt.cause(t, dir)
	r := serveIn(t, dir, observed)
	want := func(path string, status int, says string) {
		t.Helper()
		if got, text := r.look(t, path); got != status || !strings.Contains(text, says) {
			t.Errorf("%s is answered %d: %q", path, got, text)
		}
	}
	want("/healthz", http.StatusOK, "ok")
	want("/readyz", http.StatusServiceUnavailable, "storage: ")
	want("/readyz", http.StatusServiceUnavailable, corrupt.reason)
	want("/debug/pprof/", http.StatusNotFound, "")
	kinds, values := r.scrape(t) // without the queue, and told so
	if kinds["memsidecar_queue_considerations"] != "" || values[`breaker_state{component="storage",state="open"}`] == "" ||
		values["scrape_problems_total"] == "" {
		t.Errorf("during an outage %v", values)
	}
	corrupt.cure(t, dir)
	eventually(t, "ready", func() bool {
		status, _ := r.look(t, "/readyz")
		return status == http.StatusOK
	})
	want("/healthz", http.StatusOK, "ok")
}

// TestProfiles: they are served when they are asked for.
func TestProfiles(t *testing.T) {
	r := serve(t, observed, "http.pprof=true")
	for path, says := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile:", "/debug/pprof/cmdline": ""} {
		if status, text := r.look(t, path); status != http.StatusOK || !strings.Contains(text, says) {
			t.Errorf("%s is answered %d: %.100q", path, status, text)
		}
	}
	if status, _ := r.look(t, "/"); status != http.StatusNotFound {
		t.Errorf("/ is answered %d", status)
	}
}

// TestHTTPAddress: the port is for this machine unless the operator says otherwise, and profiles in any case.
func TestHTTPAddress(t *testing.T) {
	for _, test := range []struct{ settings, says string }{
		{"http.listen=0.0.0.0:0", "http.listen: is 0.0.0.0:0, outside of loopback"},
		{"http.listen=:7421", "set http.allow_remote"},
		{"http.listen=somewhere", "http.listen: is \"somewhere\""},
		{"http.listen=0.0.0.0:0 http.allow_remote=true http.pprof=true", "http.pprof: is on, and http.listen, 0.0.0.0:0, is outside of loopback"},
		{"http.pprof=true", "http.pprof: is on without a port"},
		{"otel.endpoint=127.0.0.1:4317", "otel.endpoint: is \"127.0.0.1:4317\": use a URL"},
		{"http.listen=0.0.0.0:0 http.allow_remote=true", ""},
		{"http.listen=[::1]:0 http.pprof=true", ""},
		{"http.listen=localhost:0", ""},
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

// TestLog: a busy run at the usual level writes down nothing that anybody said, a line for each call that fails, and of an
// outage of the models one line when it begins and one when it ends.
func TestLog(t *testing.T) {
	const secret = "紫罗兰XYZZY"
	p := providertest.Start(t, 8)
	p.Say("用户喜欢" + secret)
	// The first of two settings of a key counts.
	r := serve(t, append([]string{"log.level=info", "embedding.dimensions=8", "session.memorize_every=2"}, useProvider("openai", p)...)...)
	user := direct("anna")
	user.SessionId = "s"
	r.consider(t, user, said("我喜欢"+secret), answered(secret+"!"))
	r.retrieve(t, user, secret)

	p.Fail(providertest.ServerError, providertest.Decision, providertest.Summary, providertest.Embedding)
	for i := range 20 {
		_, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
			Scope: direct(fmt.Sprint("u", i)), Messages: []*memsidecarv1.Message{said(secret)},
		})
		mustDo(t, err)
	}
	eventually(t, "the decision model is away", func() bool {
		return r.component(t, "decision").GetBreaker() == memsidecarv1.BreakerState_BREAKER_STATE_OPEN
	})
	r.retrieve(t, user, secret+"?")
	p.Fail(providertest.NoFault, providertest.Decision, providertest.Summary, providertest.Embedding)
	eventually(t, "the queue is empty", func() bool { return r.status(t).GetQueue().GetPendingCount() == 0 })
	p.Fail(providertest.BrokenJSON, providertest.Decision)
	r.consider(t, user, said("又是"+secret))

	const traceID = "0af7651916cd43dd8448eb211c80319c"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+traceID+"-b7ad6b7169203331-01")
	for range 30 {
		_, err := r.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Query: secret})
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err := r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: user, Filter: "text = " + secret + " ("})
	wantCode(t, err, codes.InvalidArgument)
	r.stop()

	log := r.log.String()
	if strings.Contains(log, secret) || strings.Contains(log, "XYZZY") {
		t.Errorf("the log has what people said:\n%s", log)
	}
	failing := regexp.MustCompile(`level=INFO msg=call method=Retrieve code=InvalidArgument duration=\S+ otel_trace_id=` + traceID + "\n")
	if n := len(failing.FindAllString(log, -1)); n != 10 {
		t.Errorf("%d lines of 30 calls that failed, want 10:\n%s", n, log)
	}
	for text, want := range map[string]int{
		`msg="circuit breaker opened" component=decision`: 1, `msg="circuit breaker closed" component=decision`: 1,
		"postponed": 0, "without vectors": 0, "method=ListMemories code=InvalidArgument": 1, `msg="consideration failed"`: 1, "code=OK": 0,
	} {
		if got := strings.Count(log, text); got != want {
			t.Errorf("%q is written %d times, want %d:\n%s", text, got, want, log)
		}
	}
}
