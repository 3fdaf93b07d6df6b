package server

import (
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// writtenText is a memory's text as a caller wrote it, on one line, with markers in the place of secrets.
func (o *Options) writtenText(text string, v *memory.Violations) string {
	text = o.RedactWrites.Text(memory.CleanText(text))
	if o.RedactWrites != nil && redact.Bare(text) {
		v.Add("memory.text", "holds a secret and nothing else, and secrets are not stored: say what it is for, or set redact.direct_writes to false")
	}
	return text
}

// redactWritten takes secrets out of a memory that is imported, and reports whether there is nothing else in it.
func (o *Options) redactWritten(m *memory.Memory) (bare bool) {
	if o.RedactWrites == nil {
		return false
	}
	for _, text := range []*string{&m.Text, &m.Quarantine, &m.Provenance.Quote, &m.Provenance.Reason} {
		*text = o.RedactWrites.Text(*text)
	}
	return redact.Bare(m.Text)
}
