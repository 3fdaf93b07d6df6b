package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type traceCommands struct {
	List traceList `cmd:"" help:"List traces, newest first."`
	Show traceShow `cmd:"" help:"Show the trace of a call or of a consideration: request, candidates, model calls and outcome."`
}

type traceList struct {
	Kind    string  `enum:",${traces}" default:"" placeholder:"KIND" help:"Only of this kind: ${tracelist}."`
	Turn    string  `placeholder:"ID" help:"Only of this turn of the bot."`
	After   timeArg `placeholder:"TIME" help:"Only what began at or after this time."`
	Before  timeArg `placeholder:"TIME" help:"Only what began before this time."`
	Session string  `group:"scope" placeholder:"ID" help:"Only of this session."`

	pages
	conversation
	calls
	output
}

// traceHelp is the help that all commands about traces share.
const traceHelp = `Without --user, the command works on traces without a user.
`

// Help implements kong.HelpProvider.
func (traceList) Help() string {
	return `Without --user, lists traces without a user. Traces are written in the background: a crash loses the last second.
With --json every line is one trace.

Examples:

    memsidecar trace list -u alice
    memsidecar trace list -u alice --kind retrieve --after 2026-11-20 --turn turn-7`
}

// Run lists the traces.
func (c traceList) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	scope.SessionId = c.Session
	t := &table{
		columns: []column{
			{name: "id"},
			{name: "kind"},
			{name: "when"},
			{name: "took", right: true},
			{name: "turn"},
			{name: "session"},
			{name: "outcome", wraps: true},
		},
	}
	list := listing[*memsidecarv1.Trace]{
		table: t,
		page: func(size int32, token string) ([]*memsidecarv1.Trace, string, error) {
			resp, err := conn.ListTraces(ctx, &memsidecarv1.ListTracesRequest{
				Scope: scope, PageSize: size, PageToken: token, TurnId: c.Turn, AfterTime: c.After.timestamp(), BeforeTime: c.Before.timestamp(),
				Kind: memsidecarv1.TraceKind(valueOf(memsidecarv1.TraceKind_value, tracePrefix, c.Kind)),
			})
			return resp.GetTraces(), resp.GetNextPageToken(), err
		},
		row: func(trace *memsidecarv1.Trace) []any {
			return []any{
				trace.GetId(), traceName(trace), date(trace.GetStartTime()), formatDuration(trace.GetDuration().AsDuration()), trace.GetTurnId(),
				trace.GetScope().GetSessionId(), outcome(trace),
			}
		},
	}
	return list.show(p, c.pages, c.output)
}

func traceName(t *memsidecarv1.Trace) string { return nameOf(t.GetKind().String(), tracePrefix) }

// formatDuration returns a duration with three digits.
func formatDuration(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// outcome summarises the outcome in a line.
func outcome(t *memsidecarv1.Trace) cell {
	switch {
	case t.GetError() != "":
		return cell{t.GetError(), red}
	case t.GetRetrieve() != nil:
		r := t.GetRetrieve()
		text := count(r.GetMemoryCount(), "memory", "memories")
		if n := r.GetMessageCount(); n > 0 {
			text += ", " + count(n, "message", "messages")
		}
		return degradedCell(t, fmt.Sprintf("%s for %q", text, r.GetQuery()))
	case t.GetConsider() != nil:
		r := t.GetConsider()
		text := stateName(r.GetState())
		if r.GetReason() != "" {
			text += ": " + r.GetReason()
		}
		return degradedCell(t, text)
	case t.GetContext() != nil:
		return degradedCell(t, count(t.GetContext().GetMessageCount(), "message", "messages"))
	}
	return cell{}
}

func degradedCell(t *memsidecarv1.Trace, text string) cell {
	if len(t.GetDegraded()) == 0 {
		return cell{text, ""}
	}
	return cell{text + " (degraded)", yellow}
}

type traceShow struct {
	ID          string `arg:"" help:"The trace's id."`
	WithSession bool   `help:"Include the session and its newest messages."`

	conversation
	calls
	output
}

// Help implements kong.HelpProvider.
func (traceShow) Help() string {
	return traceHelp + `Candidates are shown with their current texts. Answers contain the id, for example that of retrieve --json.

Examples:

    memsidecar trace show -u alice trc_01a1fb4c-7a87-7bd7-b080-eadf931609f9
    memsidecar trace show -u alice --with-session "$(memsidecar retrieve -u alice --json tea | jq -r .trace_id)"`
}

// Run shows the trace.
func (c traceShow) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.GetTrace(ctx, &memsidecarv1.GetTraceRequest{Scope: scope, TraceId: c.ID, IncludeSession: c.WithSession})
	if isNotFound(err) && scope.GetUserId() == "" {
		return &Error{Code: ExitNotFound, Message: err.Error() + "; if the call named a user, add --user", cause: err}
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return c.json(p, resp)
	}
	texts := &candidateTexts{conn: conn, scope: scope}
	for _, candidate := range resp.GetTrace().GetRetrieve().GetCandidates() {
		if err := texts.find(ctx, candidate); err != nil {
			return err
		}
	}
	return c.show(p, resp, func(s *screen) {
		s.trace(resp.GetTrace(), texts.found)
		if c.WithSession && resp.GetSession() == nil {
			s.heading("session")
			s.say("  none, or deleted\n")
		} else if resp.GetSession() != nil {
			s.heading("session")
			s.sessionWithMessages(resp.GetSession())
		}
	})
}

// candidateTexts finds the texts of candidates: a trace only has their ids.
type candidateTexts struct {
	conn  *connection
	scope *memsidecarv1.Scope
	found []string
}

// missingText replaces the text of a deleted or invisible memory.
const missingText = "(deleted since)"

func (c *candidateTexts) find(ctx context.Context, candidate *memsidecarv1.TraceCandidate) error {
	text := missingText
	var err error
	if candidate.GetMemoryId() != "" {
		var resp *memsidecarv1.GetMemoryResponse
		if resp, err = c.conn.GetMemory(ctx, &memsidecarv1.GetMemoryRequest{Scope: c.scope, MemoryId: candidate.GetMemoryId()}); err == nil {
			text = resp.GetMemory().GetText()
		}
	} else {
		scope := &memsidecarv1.Scope{
			Namespace: c.scope.GetNamespace(), UserId: c.scope.GetUserId(), ChannelId: c.scope.GetChannelId(),
			ChannelKind: c.scope.GetChannelKind(), SessionId: candidate.GetSessionId(),
		}
		var resp *memsidecarv1.ListMessagesResponse
		if resp, err = c.conn.ListMessages(ctx, &memsidecarv1.ListMessagesRequest{Scope: scope, PageSize: 1, StartPosition: candidate.GetPosition()}); err == nil {
			for _, m := range resp.GetMessages() {
				if m.GetPosition() == candidate.GetPosition() {
					text = speakerName(m.GetMessage()) + ": " + m.GetMessage().GetContent()
				}
			}
		}
	}
	if err != nil && isFatal(err) {
		return err
	}
	c.found = append(c.found, text)
	return nil
}

func (s *screen) heading(text string) { s.say("\n%s\n", s.paint(strings.ToUpper(text), bold)) }

func (s *screen) trace(t *memsidecarv1.Trace, texts []string) {
	var degraded []string
	for _, d := range t.GetDegraded() {
		degraded = append(degraded, degradation(d))
	}
	scope := t.GetScope()
	s.fields(
		"trace", t.GetId(), "of", cell{traceName(t), bold}, "user", cmp.Or(scope.GetUserId(), "none"), "namespace", scope.GetNamespace(),
		"channel", channelName(scope), "agent", scope.GetAgentId(), "session", scope.GetSessionId(), "turn", t.GetTurnId(),
		"OpenTelemetry", t.GetOtelTraceId(), "began", preciseTime(t), "took", formatDuration(t.GetDuration().AsDuration()),
		"error", cell{t.GetError(), red}, "degraded", cell{strings.Join(degraded, "; "), yellow},
	)
	switch {
	case t.GetRetrieve() != nil:
		s.retrieveTrace(t.GetRetrieve(), texts)
	case t.GetConsider() != nil:
		s.considerTrace(t.GetConsider())
	case t.GetContext() != nil:
		s.contextTrace(t.GetContext())
	}
	s.modelCalls(t)
	s.toolCalls(t)
}

// preciseTime returns the start with milliseconds, for comparison with logs.
func preciseTime(t *memsidecarv1.Trace) string {
	return t.GetStartTime().AsTime().Local().Format("2006-01-02 15:04:05.000")
}

func (s *screen) retrieveTrace(r *memsidecarv1.RetrieveTrace, texts []string) {
	s.heading("asked")
	s.fields(
		"query",
		r.GetQuery(),
		"top k",
		r.GetTopK(),
		"min relevance",
		fmt.Sprintf("%.2f", r.GetMinRelevance()),
		"as of",
		date(r.GetReadTime()),
		"returned",
		fmt.Sprintf("%s, %s", count(r.GetMemoryCount(), "memory", "memories"), count(r.GetMessageCount(), "message", "messages")),
	)
	s.heading("candidates")
	if len(r.GetCandidates()) == 0 {
		s.say("none\n")
		return
	}
	t := &table{
		columns: []column{
			{name: "score", right: true},
			{name: "returned"},
			{name: "what"},
			{name: "text", wraps: true},
			{name: "why", wraps: true},
		},
	}
	for i, candidate := range r.GetCandidates() {
		what := candidate.GetMemoryId()
		if what == "" {
			what = messageLocation(candidate.GetSessionId(), candidate.GetPosition())
		}
		score, returned := cell{fmt.Sprintf("%.2f", candidate.GetScore()), dim}, cell{"no", dim}
		if candidate.GetReturned() {
			score.style, returned = green, cell{"yes", green}
		}
		t.row(score, returned, what, texts[i], cell{scoreText(candidate.GetParts()), dim})
	}
	s.print(t)
}

func (s *screen) considerTrace(r *memsidecarv1.ConsiderTrace) {
	s.heading("considered")
	s.fields("consideration", r.GetConsiderationId(), "attempt", r.GetAttempt(), "messages", r.GetMessageCount(),
		"outcome", stateCell(r.GetState()), "because", r.GetReason(), "decided by", r.GetDecidedBy())
	for _, prompt := range r.GetPrompts() {
		s.fields(prompt.GetPart()+" prompt", fmt.Sprintf("%s, with %s and %s", prompt.GetVersion(),
			count(prompt.GetKnownMemoryCount(), "known memory", "known memories"), count(prompt.GetEarlierMessageCount(), "earlier message", "earlier messages")))
	}
	s.changes(r.GetChanges())
}

func (s *screen) contextTrace(r *memsidecarv1.ContextTrace) {
	returned := count(r.GetMessageCount(), "message", "messages")
	if r.GetMessageCount() > 0 {
		returned += fmt.Sprintf(", #%d to #%d", r.GetFirstPosition(), r.GetLastPosition())
	}
	summary := "none"
	if r.GetSummaryLastPosition() > 0 {
		summary = fmt.Sprintf("up to #%d", r.GetSummaryLastPosition())
	}
	s.heading("window")
	s.fields("limits", fmt.Sprintf("%d messages, %d turns, %d characters", r.GetMaxMessages(), r.GetMaxTurns(), r.GetMaxChars()),
		"returned", returned, "left out", r.GetDroppedCount(), "summary", summary)
}

func (s *screen) modelCalls(t *memsidecarv1.Trace) {
	if len(t.GetModelCalls()) == 0 {
		return
	}
	s.heading("model calls")
	calls := &table{columns: []column{
		{name: "after", right: true},
		{name: "part"},
		{name: "model"},
		{name: "took", right: true},
		{name: "tokens in", right: true},
		{name: "tokens out", right: true},
		{name: "outcome", wraps: true},
	}}
	for _, call := range t.GetModelCalls() {
		result := cell{"ok", green}
		if call.GetError() != "" {
			result = cell{call.GetError(), red}
		}
		calls.row(formatDuration(call.GetStartTime().AsTime().Sub(t.GetStartTime().AsTime())), call.GetPart(), call.GetModel(),
			formatDuration(call.GetLatency().AsDuration()), call.GetInputTokenCount(), call.GetOutputTokenCount(), result)
	}
	s.print(calls)
}

func (s *screen) toolCalls(t *memsidecarv1.Trace) {
	if len(t.GetToolCalls()) == 0 {
		return
	}
	s.heading("tool calls of the bot")
	calls := &table{
		columns: []column{
			{name: "tool"},
			{name: "arguments", wraps: true},
			{name: "result", wraps: true},
			{name: "status"},
			{name: "took", right: true},
		},
	}
	for _, call := range t.GetToolCalls() {
		duration := ""
		if call.GetDuration() != nil {
			duration = formatDuration(call.GetDuration().AsDuration())
		}
		calls.row(call.GetName(), call.GetArgumentsJson(), call.GetResult(), call.GetStatus(), duration)
	}
	s.print(calls)
}
