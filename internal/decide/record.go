package decide

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/span"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// Traces records considerations.
type Traces interface {
	Enabled() bool
	Record(record trace.Record)
}

var errPanicked = errors.New("internal error while considering")

// attempt considers one speaker's words and records a trace.
func (c *Considerer) attempt(ctx context.Context, job queue.Job) (state memory.State, outcome memory.Outcome, err error) {
	job, redacted := c.withoutSecrets(job)
	ctx, end := span.Later(ctx, c.tracer, "consider", job.Call, attribute.Int("memsidecar.attempt", job.Consideration.Attempts),
		attribute.Int("memsidecar.messages", len(job.Dialogue.Messages)), attribute.String("memsidecar.consideration", job.Consideration.ID))
	ctx, recording := trace.Begin(trace.WithCall(ctx, job.Call), job.Consideration.Scope)
	err = errPanicked // unless handle returns
	defer func() {
		oteltrace.SpanFromContext(ctx).SetAttributes(attribute.String("memsidecar.outcome", string(state)))
		end(err)
		// A cancelled job is retried later, or its user is being forgotten.
		if c.Traces.Enabled() && ctx.Err() == nil {
			c.Traces.Record(c.record(job, recording, state, outcome, err))
		}
	}()
	state, outcome, err = c.handle(ctx, job)
	if err == nil {
		outcome.Reason += redacted
	}
	return state, outcome, err
}

func (c *Considerer) record(job queue.Job, recording *trace.Recording, state memory.State, outcome memory.Outcome, err error) trace.Record {
	record := recording.End(err)
	switch {
	case err == nil:
	case c.options.Pool.Postpones(job, err, c.options.Now()):
		state = memory.StatePending
	default:
		state = memory.StateFailed
	}
	record.ToolCalls = trace.ToolCalls(job.Dialogue.Messages, trace.Alone(job.Dialogue))
	record.Consider = &trace.ConsiderDetail{
		ConsiderationID: job.Consideration.ID, Attempt: job.Consideration.Attempts, Messages: len(job.Dialogue.Messages),
		State: state, Reason: outcome.Reason, DecidedBy: outcome.DecidedBy, Changes: outcome.Changes,
		Prompts: recording.Prompts(),
	}
	return record
}
