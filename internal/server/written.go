package server

import (
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// writtenText converts a text that a caller wrote to one line, and replaces secrets by markers.
func (o *Options) writtenText(text string, v *memory.Violations) string {
	text = o.RedactWrites.Text(memory.CleanText(text))
	if o.RedactWrites != nil && redact.Bare(text) {
		v.Add("memory.text", "contains only a secret, and secrets are not stored: say what it is for, or set redact.direct_writes to false")
	}
	return text
}

// redactWritten removes secrets from an imported memory, and reports whether nothing else is left in it.
func (o *Options) redactWritten(m *memory.Memory) (bare bool) {
	if o.RedactWrites == nil {
		return false
	}
	for _, text := range []*string{&m.Text, &m.Quarantine, &m.Provenance.Quote, &m.Provenance.Reason} {
		*text = o.RedactWrites.Text(*text)
	}
	return redact.Bare(m.Text)
}
