package sidecartest

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// HTTPListen is the setting of a sidecar that serves metrics and health checks over HTTP.
const HTTPListen = "http.listen=127.0.0.1:0"

// GetOps sends a GET request to the operators' port and returns the status and the body.
func (r *Sidecar) GetOps(t *testing.T, path string) (int, string) {
	t.Helper()
	req := Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.HTTP+path, http.NoBody))(t)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, string(Must(io.ReadAll(resp.Body))(t))
}

// sample matches a line of the Prometheus format.
var sample = regexp.MustCompile(`(?m)^(memsidecar_\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? (\S+)$`)

// Scrape returns the kind and the labels of each metric in the form of docs/operations.md, and the value of each line.
func (r *Sidecar) Scrape(t *testing.T) (kinds, values map[string]string) {
	t.Helper()
	var text string
	Eventually(t, "the scrape is answered", func() bool {
		var status int
		if status, text = r.GetOps(t, "/metrics"); status != http.StatusOK {
			r.Late++ // the collection has seconds, and the machine may have taken longer
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
			name += m[2] // a counter with a suffix that histograms use
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
