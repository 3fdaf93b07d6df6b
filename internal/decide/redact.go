package decide

import "github.com/memsidecar/memsidecar/internal/queue"

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
