package decide

import (
	"slices"

	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// withoutBare leaves out statements of which only a marker is left, whoever made them: they tell nothing.
func withoutBare(statements []memory.Statement) []memory.Statement {
	return slices.DeleteFunc(slices.Clone(statements), func(s memory.Statement) bool { return !s.Forget && redact.Bare(s.Text) })
}

// withoutSecrets is the job with markers in the place of the secrets of its dialogue. Nothing that is derived from it can
// hold one, and no model is given one. note says what there was, for the reason, and never the secrets; it is empty when
// there were none.
func (c *Considerer) withoutSecrets(job queue.Job) (redacted queue.Job, note string) {
	dialogue, found := c.Redactor.Dialogue(job.Dialogue)
	job.Dialogue = dialogue
	if what := found.String(); what != "" {
		note = "; redacted: " + what
	}
	return job, note
}
