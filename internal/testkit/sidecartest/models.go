package sidecartest

import (
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
)

// ProviderKey is the API key of [UseProvider]. It must never be shown.
const ProviderKey = "sk-never-to-be-shown"

// Protocols returns the protocols of the model providers.
func Protocols() []string { return []string{"gemini", "openai"} }

// UseProvider returns settings that use a provider for all models. Failed calls are retried soon. Timeouts are long, because the machine
// may be slow.
func UseProvider(protocol string, p *providertest.Server) []string {
	settings := []string{
		"queue.backoff_min=10ms", "queue.backoff_max=20ms", "breaker.failures=2", "breaker.open_for=100ms", "log.level=debug",
	}
	for _, part := range []string{"embedding", "decision", "summary"} {
		settings = append(settings, part+".provider="+protocol, part+".endpoint="+p.URL, part+".api_key="+ProviderKey,
			part+".model=model-of-"+part, part+".timeout=10m")
	}
	return settings
}

// ShortTimeouts returns settings by which a model has one second to answer. They go before those of [UseProvider].
func ShortTimeouts(part providertest.Part) []string { return []string{string(part) + ".timeout=1s"} }
