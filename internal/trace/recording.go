package trace

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Call names the larger operation of a call. All fields may be empty.
type Call struct {
	TurnID      string // the caller's id of the bot's turn
	OTelTraceID string // of the OpenTelemetry trace, 32 hexadecimal digits
	OTelSpanID  string // of the span in it, 16 hexadecimal digits; a consideration that runs later is linked to it
}

type callKey struct{}

// WithCall sets the larger operation of the calls made with the context.
func WithCall(ctx context.Context, c Call) context.Context {
	if c == (Call{}) {
		return ctx
	}
	return context.WithValue(ctx, callKey{}, c)
}

// CallOf returns the Call set by WithCall.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Recording is the record of a running call.
type Recording struct {
	record Record
	models *usage.Collector

	mu       sync.Mutex
	degraded []Degradation
	prompts  []Prompt
}

type recordingKey struct{}

// Degrade notes in the context's running record, if any, that a component was unavailable.
func Degrade(ctx context.Context, component, reason string) {
	if r, ok := ctx.Value(recordingKey{}).(*Recording); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.degraded = append(r.degraded, Degradation{Component: component, Reason: reason})
	}
}

// Prompted notes in the context's running record, if any, that a model is sent a prompt.
func Prompted(ctx context.Context, p Prompt) {
	if r, ok := ctx.Value(recordingKey{}).(*Recording); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.prompts = append(r.prompts, p)
	}
}

// Begin starts a record. Model calls made with the returned context belong to it.
func Begin(ctx context.Context, scope memory.Scope) (context.Context, *Recording) {
	call := CallOf(ctx)
	ctx, models := usage.Collect(usage.WithUser(ctx, scope.User()))
	r := &Recording{models: models, record: Record{
		ID: NewID(), Scope: scope, TurnID: call.TurnID, OTelTraceID: call.OTelTraceID, At: time.Now(),
	}}
	return context.WithValue(ctx, recordingKey{}, r), r
}

// ID returns the id of the record.
func (r *Recording) ID() string { return r.record.ID }

// At returns when the call began.
func (r *Recording) At() time.Time { return r.record.At }

// Prompts returns the prompts noted so far.
func (r *Recording) Prompts() []Prompt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.prompts)
}

// End returns the record, to which the caller adds the result. err is why the call failed, or nil; its text is shown.
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

// MaxToolRunes limits the arguments and the result of a tool call in a record, in characters.
const MaxToolRunes = 2000

// ToolCalls returns the tool calls of the messages, cut to MaxToolRunes. Their arguments and results may concern any person in the
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
