package sqlstore

import "github.com/memsidecar/memsidecar/internal/trace"

// otelParent is what the column otel_trace_id of a dialogue has: the trace, and after a hyphen the span in it if it is
// known, in the order that a traceparent header has them. A database from before has traces alone.
func otelParent(c trace.Call) string {
	if c.OTelSpanID == "" {
		return c.OTelTraceID
	}
	return c.OTelTraceID + "-" + c.OTelSpanID
}
