package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// ContextRequest asks for the conversation part of the next prompt.
type ContextRequest struct {
	Scope   memory.Scope // SessionID "" means the current session
	Viewer  Viewer
	AgentID *string // only messages with this agent; nil: with any
	Limits
	Tools    bool // include tool messages, and arguments and results of tool calls
	System   bool // include system messages
	Language string
	Labels   map[string]string // names by the id of a user or an agent
}

// Context is the conversation part of the next prompt.
type Context struct {
	SessionID     string // "" if there is none
	Messages      []Message
	PromptContext string
	Summary       *Summary // of the messages before the window
	Dropped       int64    // number of messages cut from the start of the window
	NewestTooLong bool
	Expired       bool
	Degraded      []trace.Degradation
	TraceID       string

	noted []trace.Degradation // reported in the trace only
}

// storageComponent is the part that can be unavailable, see retrieve.Storage.
const storageComponent = "storage"

var errLate = errors.New("no answer within the budget")

// Context returns the conversation part of the next prompt. It never fails: without storage it is empty and degraded. A session that
// does not exist, or that the viewer may not see, is empty.
func (k *Service) Context(ctx context.Context, r ContextRequest) Context {
	ctx, recording := trace.Begin(ctx, r.Scope)
	c := Context{}
	if k.Policy(r.Scope.Namespace).Enabled {
		c = k.within(ctx, r)
	}
	c.TraceID = recording.ID()
	if k.Traces.Enabled() {
		record := recording.End(nil)
		record.Degraded = slices.Concat(c.Degraded, c.noted)
		if c.SessionID != "" {
			record.Scope.SessionID = c.SessionID
		}
		record.Context = r.detail(&c)
		k.Traces.Record(record)
	}
	return c
}

func (r *ContextRequest) detail(c *Context) *trace.ContextDetail {
	d := &trace.ContextDetail{
		MaxMessages: r.MaxMessages, MaxTurns: r.MaxTurns, MaxRunes: r.MaxRunes, Messages: len(c.Messages), Dropped: c.Dropped,
	}
	if len(c.Messages) > 0 {
		d.First, d.Last = c.Messages[0].Position, c.Messages[len(c.Messages)-1].Position
	}
	if c.Summary != nil {
		d.SummaryLast = c.Summary.Last
	}
	return d
}

// within reads the window within the time budget.
func (k *Service) within(ctx context.Context, r ContextRequest) Context {
	budget, cancel := context.WithTimeoutCause(ctx, k.options.Budget, errLate)
	defer cancel()
	type answer struct {
		context Context
		err     error
	}
	answered := make(chan answer, 1)
	go func() {
		c, err := k.look(budget, r)
		answered <- answer{c, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-budget.Done():
		select { // prefer a result that arrived at the last moment
		case a = <-answered:
		default:
			a.err = context.Cause(budget)
		}
	}
	switch problem := k.Storage.Problem(); {
	case a.err == nil:
	case errors.Is(a.err, memory.ErrNotFound):
		return Context{}
	case problem != "":
		return Context{Degraded: []trace.Degradation{{Component: storageComponent, Reason: problem}}}
	default:
		return Context{Degraded: []trace.Degradation{{Component: storageComponent, Reason: k.explain(a.err)}}}
	}
	if problem := k.Storage.WriteProblem(); problem != "" { // recent messages could not be stored
		a.context.Degraded = append(a.context.Degraded, trace.Degradation{Component: storageComponent, Reason: problem})
	}
	return a.context
}

// explain words an error for a caller. An unexpected error is logged and not shown.
func (k *Service) explain(err error) string {
	switch {
	case errors.Is(err, errLate), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s (%s)", errLate, k.options.Budget)
	case errors.Is(err, context.Canceled), errors.Is(err, memory.ErrUnavailable), errors.Is(err, memory.ErrDamaged):
		return err.Error()
	}
	k.options.Log.Error("reading a conversation", "error", err)
	return "internal error"
}

// look reads the window, then cuts and renders it.
func (k *Service) look(ctx context.Context, r ContextRequest) (c Context, err error) {
	id := r.Scope.SessionID
	if id == "" {
		if id, err = k.Store.Current(ctx, r.Viewer); err != nil || id == "" {
			return c, err
		}
	}
	w, err := k.Store.Window(ctx, r.Viewer, id, WindowQuery{Limit: r.MaxMessages, AgentID: r.AgentID, Tools: r.Tools, System: r.System})
	if err != nil {
		return c, err
	}
	c.SessionID = w.Session.ID
	if w.ReadAt.IsZero() && k.extractsFirst() {
		k.markLater(&w.Session)
	}
	if k.expired(&w.Session) {
		c.Expired = true
		return c, nil
	}
	if !r.Tools {
		withoutPayloads(w.Messages)
	}
	var start int
	start, c.NewestTooLong = r.cut(w.Messages)
	c.Messages = w.Messages[start:]
	c.Dropped = dropped(&w.Session, c.Messages)
	if c.Dropped > 0 {
		agent := ""
		if r.AgentID != nil {
			agent = *r.AgentID
		}
		c.noted = k.summaryFallback(w.Summary)
		if c.Summary, err = k.bridge(ctx, &w, c.Messages, agent); err != nil {
			return c, err
		}
		if c.Summary != nil && c.Summary.Text == "" {
			c.Summary = nil
		}
	}
	if r.Language == "" {
		r.Language = k.language(ctx, r.Scope, &c)
	}
	c.PromptContext = k.labels(&w.Session, k.options.Wordings.of(r.Language), r.Labels).block(c.Summary, c.Messages, r.Tools)
	return c, nil
}

// dropped returns how many messages of the window were cut. Deleted messages leave gaps in the positions, so the result may be too
// high.
func dropped(s *Session, left []Message) int64 {
	first := s.Last + 1
	if len(left) > 0 {
		first = left[0].Position
	}
	return max(0, min(first-s.WindowStart, s.Messages-int64(len(left))))
}

// language is the user's setting, else the language of the conversation.
func (k *Service) language(ctx context.Context, scope memory.Scope, c *Context) string {
	if scope.UserID != "" {
		// On an error use the conversation's own language.
		if settings, err := k.Settings.Get(ctx, scope.User()); err == nil && settings.Language != "" {
			return settings.Language
		}
	}
	if len(c.Messages) == 0 && c.Summary != nil {
		return languageOf([]Message{{Message: memory.Message{Content: c.Summary.Text}}})
	}
	return languageOf(c.Messages)
}
