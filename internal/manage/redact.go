package manage

import (
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// written converts a text that a caller wrote to one line, and replaces secrets by markers.
func (k *Service) written(text string, v *memory.Violations) string {
	text = k.Redactor.Text(memory.CleanText(text))
	if k.Redactor != nil && redact.Bare(text) {
		v.Add("memory.text", "contains only a secret, and secrets are not stored: say what it is for, or set redact.direct_writes to false")
	}
	return text
}

// redactImported removes secrets from an imported memory, and reports whether nothing else is left in it.
func (k *Service) redactImported(m *memory.Memory) (bare bool) {
	if k.Redactor == nil {
		return false
	}
	for _, text := range []*string{&m.Text, &m.Quarantine, &m.Provenance.Quote, &m.Provenance.Reason} {
		*text = k.Redactor.Text(*text)
	}
	return redact.Bare(m.Text)
}
