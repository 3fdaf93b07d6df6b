package trace

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Call says which larger thing a call is a part of. All of it may be empty.
type Call struct {
	TurnID      string // the caller's id of the bot's turn
	OTelTraceID string // of the OpenTelemetry trace, 32 hexadecimal digits
	OTelSpanID  string // of the span in it, 16 hexadecimal digits; a consideration that runs later is linked to it
}

type callKey struct{}

// WithCall says what the calls made with the context are a part of.
func WithCall(ctx context.Context, c Call) context.Context {
	if c == (Call{}) {
		return ctx
	}
	return context.WithValue(ctx, callKey{}, c)
}

// CallOf is what WithCall said.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Recording is a record that is being made, of a call that has not ended.
type Recording struct {
	record Record
	models *usage.Collector

	mu       sync.Mutex
	degraded []Degradation
}

type recordingKey struct{}

// Degrade notes in the record that is being made, if there is one, that something was missing.
func Degrade(ctx context.Context, component, reason string) {
	if r, ok := ctx.Value(recordingKey{}).(*Recording); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.degraded = append(r.degraded, Degradation{Component: component, Reason: reason})
	}
}

// Begin begins a record. Calls of models that are made with the context it returns belong to it.
func Begin(ctx context.Context, scope memory.Scope) (context.Context, *Recording) {
	call := CallOf(ctx)
	ctx, models := usage.Collect(usage.WithUser(ctx, scope.User()))
	r := &Recording{models: models, record: Record{
		ID: NewID(), Scope: scope, TurnID: call.TurnID, OTelTraceID: call.OTelTraceID, At: time.Now(),
	}}
	return context.WithValue(ctx, recordingKey{}, r), r
}

// ID is that of the record to come.
func (r *Recording) ID() string { return r.record.ID }

// At is when it began.
func (r *Recording) At() time.Time { return r.record.At }

// End returns the record, to which the caller adds what came of it. err is why it failed, or nil; its text is shown.
func (r *Recording) End(err error) Record {
	record := r.record
	record.Duration = time.Since(record.At)
	record.ModelCalls = r.models.Calls()
	r.mu.Lock()
	record.Degraded = slices.Clone(r.degraded)
	r.mu.Unlock()
	if err != nil {
		record.Error = err.Error()
	}
	return record
}

// MaxToolRunes is how much of a tool call's arguments, and of its result, a record keeps, in characters.
const MaxToolRunes = 2000

// ToolCalls are the tool calls of the messages, cut to MaxToolRunes. Their arguments and results may concern any person in the
// channel. Without payloads only names, status and times are kept.
func ToolCalls(messages []memory.Message, payloads bool) []memory.ToolCall {
	var calls []memory.ToolCall
	for _, m := range messages {
		for _, c := range m.Tools {
			if payloads {
				c.Arguments, c.Result = clip(c.Arguments), clip(c.Result)
			} else {
				c.Arguments, c.Result = "", ""
			}
			calls = append(calls, c)
		}
	}
	return calls
}

func clip(s string) string {
	n := 0
	for i := range s {
		if n++; n > MaxToolRunes {
			return s[:i]
		}
	}
	return s
}

// Alone reports whether the dialogue seems to hold only the messages of one person and of the bot. A message that was emptied
// (Dialogue.Without) belonged to another person.
func Alone(d memory.Dialogue) bool {
	return d.Scope.Channel.Kind != memory.ChannelGroup && len(d.Speakers()) == 1 &&
		!slices.ContainsFunc(d.Messages, func(m memory.Message) bool {
			return m.Role == memory.RoleSystem && m.Content == "" && len(m.Tools) == 0
		})
}
