package decide

import (
	"slices"

	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// withoutBare excludes statements that consist only of a marker: they say nothing.
func withoutBare(statements []memory.Statement) []memory.Statement {
	return slices.DeleteFunc(slices.Clone(statements), func(s memory.Statement) bool { return !s.Forget && redact.Bare(s.Text) })
}

// withoutSecrets returns the job with markers instead of the secrets in its dialogue. So no derived data and no model prompt holds a
// secret. note names the kinds of secrets for the reason, never the secrets; it is empty if there were none.
func (c *Considerer) withoutSecrets(job queue.Job) (redacted queue.Job, note string) {
	dialogue, found := c.Redactor.Dialogue(job.Dialogue)
	job.Dialogue = dialogue
	if what := found.String(); what != "" {
		note = "; redacted: " + what
	}
	return job, note
}
