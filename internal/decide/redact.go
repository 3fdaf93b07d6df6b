package decide

import (
	"slices"

	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// withoutBare excludes ops whose statements consist only of a marker: they say nothing. left reports whether any op is left.
func withoutBare(ops []Op) (_ []Op, left bool) {
	ops = slices.Clone(ops)
	for i := range ops {
		if ops[i].Action != OpForget && redact.Bare(ops[i].Statement.Text) {
			ops[i].Action = opExcluded
		}
		left = left || ops[i].Action != opExcluded
	}
	return ops, left
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
