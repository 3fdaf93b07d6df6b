//go:build !race && unix

package main

import (
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestConfigurationFromEnvironmentAlone runs the real binary with providers that are configured by environment variables alone, as in
// docs/getting-started.md. Each part has its own provider.
func TestConfigurationFromEnvironmentAlone(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	process := spawn(t, t.TempDir(),
		"GEMINI_API_KEY="+sidecartest.ProviderKey, "DEEPSEEK_API_KEY="+sidecartest.ProviderKey,
		"MEMSIDECAR_EMBEDDING_PROVIDER=gemini", "MEMSIDECAR_EMBEDDING_ENDPOINT="+p.URL+"/v1beta/models/embedding-001:embedContent",
		"MEMSIDECAR_DECISION_MODEL=deepseek/deepseek-chat", "MEMSIDECAR_DECISION_ENDPOINT="+p.URL,
		"MEMSIDECAR_SUMMARY_PROVIDER=ollama", "MEMSIDECAR_SUMMARY_MODEL=qwen3", "MEMSIDECAR_SUMMARY_ENDPOINT="+p.URL,
	)
	resp, err := process.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: sidecartest.Direct("u"), Messages: []*memsidecarv1.Message{sidecartest.Said("我平时爱喝点茶。")}, Wait: sidecartest.LongWait(),
	})
	if err != nil || resp.GetConsideration().GetState() != memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED {
		t.Fatalf("%v, %v\n%s", resp, err, process.log)
	}
	for part, want := range map[providertest.Part]string{
		providertest.Embedding: "/v1beta/models/embedding-001:batchEmbedContents",
		providertest.Decision:  "/chat/completions", providertest.Summary: "/chat/completions",
	} {
		requests := p.Requests(part)
		if len(requests) == 0 || requests[0].Path != want {
			t.Errorf("%s: %+v, want a call of %s", part, requests, want)
		}
	}
	for _, want := range []string{"by=gemini/embedding-001@768#1", "by=deepseek/deepseek-chat", "by=ollama/qwen3"} {
		if !strings.Contains(process.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, process.log)
		}
	}
	if strings.Contains(process.log.String(), sidecartest.ProviderKey) {
		t.Errorf("the log shows the key:\n%s", process.log)
	}
}
