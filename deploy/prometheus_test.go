package deploy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// The folder with the programs prometheus and promtool. Without it the tests that need them are skipped. .ci/run sets it.
const prometheusVariable = "PROMETHEUS_DIR"

// timeout is the longest time that any step may take on a loaded machine.
const timeout = 5 * time.Minute

func program(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv(prometheusVariable)
	if dir == "" {
		t.Skip("set " + prometheusVariable + " to the folder of prometheus and promtool")
	}
	return filepath.Join(dir, name)
}

// TestAlerts: The alert rules are valid, and fire when they should and only then.
func TestAlerts(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "prometheus-alerts.yaml"}, {"test", "rules", "prometheus-alerts_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), program(t, "promtool"), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestAlertsAreExplained: The documentation says for each alert, and for no other, what to check.
func TestAlertsAreExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (Memsidecar\w+) \|`).FindAllStringSubmatch(read(t, "../docs/operations.md"), -1) {
		explained[m[1]] = true
	}
	rules := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(read(t, "prometheus-alerts.yaml"), -1)
	for _, m := range rules {
		if !explained[m[1]] {
			t.Errorf("docs/operations.md does not explain the alert %s", m[1])
		}
	}
	if len(rules) != len(explained) || len(rules) == 0 {
		t.Errorf("%d alerts, %d explained", len(rules), len(explained))
	}
}

// TestDashboard: A real Prometheus scrapes a real sidecar that does all kinds of work. Each query of the dashboard and of the alert rules
// has an answer; the dashboard's answers are numbers.
func TestDashboard(t *testing.T) {
	prometheus := program(t, "prometheus")
	grpcAddr, httpAddr := startSidecar(t)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	server := startPrometheus(t, prometheus, httpAddr)
	// Retry: a rate needs two scrapes with an event between them, and a scrape may time out.
	comes := func(q string, enough func(values []string) bool) bool {
		for !enough(query(t.Context(), t, server, q)) {
			work(t.Context(), t, grpcAddr)
			select {
			case <-ctx.Done():
				return false
			case <-time.After(200 * time.Millisecond):
			}
		}
		return true
	}
	if q := `up{job="memsidecar"}`; !comes(q, func(values []string) bool { return slices.Equal(values, []string{"1"}) }) {
		t.Fatal("Prometheus does not scrape the sidecar")
	}
	queries := dashboardQueries(t)
	if len(queries) < 25 {
		t.Errorf("the dashboard has %d panels", len(queries))
	}
	for title, list := range queries {
		for _, q := range list {
			if !comes(q, func(values []string) bool { return slices.ContainsFunc(values, isNumber) }) {
				t.Fatalf("panel %q has no data: %s", title, q)
			}
		}
	}
	if rules := request(t.Context(), t, server+"/api/v1/rules"); strings.Contains(rules, `"health":"err"`) || strings.Count(rules, `"type":"alerting"`) != 10 {
		t.Errorf("the rules: %s", rules)
	}
}

// isNumber reports false for NaN, the result of dividing zero by zero.
func isNumber(value string) bool { return value != "NaN" }

// dashboardQueries returns the panels' queries by title, with Grafana's variables filled in.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana-dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := map[string][]string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries[p.Title] = append(queries[p.Title], strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(target.Expr))
		}
	}
	return queries
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startSidecar runs the program with a fake model provider, and returns its two addresses.
func startSidecar(t *testing.T) (grpcAddr, httpAddr string) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "memsidecar")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/memsidecar").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := providertest.Start(t, 8)
	p.Take(100, 10)
	settings := []string{
		"listen=127.0.0.1:0", "http.listen=127.0.0.1:0", "data_dir=" + filepath.Join(dir, "data"), "log.format=json", "embedding.dimensions=8",
	}
	for _, part := range []string{"embedding", "decision", "summary"} {
		settings = append(settings, part+".provider=openai", part+".model=model", part+".endpoint="+p.URL, part+".api_key=key")
	}
	config := filepath.Join(dir, "memsidecar.yaml")
	if err := os.WriteFile(config, []byte("llm: {prices: [{model: openai/*, input: 2, output: 8, currency: CNY}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"serve", "--config", config}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	lines := start(t, exec.CommandContext(t.Context(), binary, args...))
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch line.Msg {
		case "memsidecar is ready":
			grpcAddr = line.Address
		case "health checks and metrics are served":
			httpAddr = line.Address
		}
		if grpcAddr != "" && httpAddr != "" {
			go drain(lines)
			return grpcAddr, httpAddr
		}
	}
	t.Fatal("the sidecar did not start")
	return "", ""
}

// start runs a program until the test ends and returns the lines of its standard error.
func start(t *testing.T, command *exec.Cmd) *bufio.Scanner {
	t.Helper()
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	out, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() }) // interrupted by the test's context, which ends before
	return bufio.NewScanner(out)
}

// drain keeps a program from blocking on unread output.
func drain(lines *bufio.Scanner) {
	for lines.Scan() {
	}
}

// work makes the sidecar remember and recall.
func work(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	memories := memsidecarv1.NewMemoryServiceClient(conn)
	scope := &memsidecarv1.Scope{UserId: "anna"}
	_, err = memories.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
		Scope: scope, Wait: durationpb.New(10 * time.Second),
		Messages: []*memsidecarv1.Message{{Role: memsidecarv1.Role_ROLE_USER, Content: "我平时爱喝点茶。"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := memories.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: "喝什么"}); err != nil {
		t.Fatal(err)
	}
}

// startPrometheus runs Prometheus with the alerts, and returns its URL once it answers.
func startPrometheus(t *testing.T, program, target string) string {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("prometheus-alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: memsidecar, static_configs: [{targets: [%q]}]}]\n", rules, target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := start(t, exec.CommandContext(t.Context(), program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0"))
	var log strings.Builder
	for lines.Scan() {
		if addresses := listening.FindStringSubmatch(lines.Text()); addresses != nil {
			go drain(lines)
			return "http://" + addresses[1]
		}
		log.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("Prometheus does not start:\n%s", log.String())
	return ""
}

// listening matches the log line with Prometheus's address.
var listening = regexp.MustCompile(`msg="?Listening on"? .*?address="?(127\.0\.0\.1:[1-9]\d*)`)

// query returns the values of a Prometheus query.
func query(ctx context.Context, t *testing.T, server, expr string) (values []string) {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          struct{ Result []struct{ Value [2]any } }
	}
	text := request(ctx, t, server+"/api/v1/query?"+url.Values{"query": {expr}}.Encode())
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Status != "success" {
		if strings.Contains(text, "Service Unavailable") {
			return nil // it is starting
		}
		t.Fatalf("%s: %v %s", expr, err, text)
	}
	for _, r := range answer.Data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values
}

func request(ctx context.Context, t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var text strings.Builder
	if _, err := bufio.NewReader(resp.Body).WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
