package sidecartest

import (
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
)

const ProviderKey = "sk-never-to-be-shown"

// Protocols are the ways to reach a provider.
func Protocols() []string { return []string{"gemini", "openai"} }

// UseProvider are the settings that let the provider do every part, impatient with what fails, and not with what is slow: that may
// be the machine.
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

// Impatient are the settings that give a part's model a second to answer, for one that never does. They go before useProvider's.
func Impatient(part providertest.Part) []string { return []string{string(part) + ".timeout=1s"} }
