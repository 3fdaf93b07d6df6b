package trace

import "github.com/memsidecar/memsidecar/internal/lang/redact"

// redacted returns the record with markers instead of secrets. The results of a consideration have none already.
func (r Record) redacted(by *redact.Redactor) Record {
	r.Error = by.Text(r.Error)
	r.ToolCalls = by.Tools(r.ToolCalls)
	if r.Retrieve != nil {
		detail := *r.Retrieve
		detail.Query = by.Text(detail.Query)
		r.Retrieve = &detail
	}
	return r
}
