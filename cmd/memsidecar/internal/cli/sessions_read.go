package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// transcriptFlags select the agents whose messages count, and the speakers' labels.
type transcriptFlags struct {
	agentFlag
	AgentOnly bool              `help:"Only messages exchanged with --agent."`
	Language  string            `placeholder:"LANGUAGE" help:"BCP 47 language of the text, for example zh. By default that of the conversation."`
	Label     map[string]string `mapsep:"none" placeholder:"ID=NAME" help:"Name to show for a user or agent id. Can be repeated."`
}

func (f transcriptFlags) filter() (memsidecarv1.AgentFilter, error) {
	if !f.AgentOnly {
		return memsidecarv1.AgentFilter_AGENT_FILTER_ANY, nil
	}
	if f.Agent == "" {
		return 0, usage("--agent-only needs --agent")
	}
	return memsidecarv1.AgentFilter_AGENT_FILTER_THIS, nil
}

type sessionsMessages struct {
	ID          string `arg:"" optional:"" help:"The session's id."`
	NewestFirst bool   `help:"List the newest messages first."`
	Start       int64  `placeholder:"N" help:"Start at this position (the first column)."`
	Text        bool   `help:"Print the messages as text, oldest first."`

	transcriptFlags
	pages `set:"page=20"`
	conversation
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsMessages) Help() string {
	return currentHelp + `With --json every line is one message with all its fields.

Examples:

    memsidecar sessions messages -u alice chat-1
    memsidecar sessions messages -u alice chat-1 --newest-first --limit 5
    memsidecar sessions messages -u 小林 --all --text --label ancestor_yan=严氏先祖`
}

// Run lists messages of the session.
func (c sessionsMessages) Run(ctx context.Context, p *Program) error {
	if c.Text && c.JSON {
		return usage("--text and --json exclude each other")
	}
	scope, err := c.sessionScope(c.ID)
	if err != nil {
		return err
	}
	scope.AgentId = c.Agent
	filter, err := c.filter()
	if err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	var total int64
	var texts []string
	var found []*memsidecarv1.SessionMessage
	shown := 0
	more, err := c.each(func(size int32, token string) (int, string, error) {
		resp, err := conn.ListMessages(ctx, &memsidecarv1.ListMessagesRequest{
			Scope: scope, PageSize: size, PageToken: token, NewestFirst: c.NewestFirst, StartPosition: c.Start, Agent: filter,
			RenderText: c.Text, Language: c.Language, Labels: c.Label,
		})
		if err != nil {
			return 0, "", err
		}
		total = resp.GetTotalSize()
		n := len(resp.GetMessages())
		shown += n
		switch {
		case c.Text && n > 0:
			texts = append(texts, resp.GetText())
		case c.JSON:
			for _, m := range resp.GetMessages() {
				if err := c.json(p, m); err != nil {
					return 0, "", err
				}
			}
		default:
			found = append(found, resp.GetMessages()...)
		}
		return n, resp.GetNextPageToken(), nil
	})
	if err != nil {
		return err
	}
	if c.NewestFirst {
		slices.Reverse(texts)
	}
	screen := c.screen(p)
	if len(texts) > 0 {
		screen.promptBlock(p, strings.TrimSuffix(strings.Join(texts, "\n"), "\n"))
	}
	if len(found) > 0 {
		screen.messages(found)
	}
	switch {
	case shown == 0:
		p.note("nothing found")
	case more:
		p.note("%d of %s; there are more; add --all or a higher --limit", shown, count(total, "message", "messages"))
	default:
		p.note("%d of %s", shown, count(total, "message", "messages"))
	}
	return nil
}

// messages shows messages of one session.
func (s *screen) messages(list []*memsidecarv1.SessionMessage) {
	t := &table{columns: []column{{name: "#", right: true}, {name: "when"}, {name: "who"}, {name: "text", wraps: true}, {name: "note", wraps: true}}}
	noted := false
	for _, m := range list {
		text := cell{m.GetMessage().GetContent(), ""}
		if m.GetWithheld() {
			text.style = dim
		}
		notes := messageNotes(m)
		noted = noted || notes != ""
		t.row(m.GetPosition(), date(m.GetMessage().GetSendTime()), speakerName(m.GetMessage()), text, cell{notes, dim})
	}
	if !noted {
		t.columns = t.columns[:len(t.columns)-1]
		for i := range t.rows {
			t.rows[i] = t.rows[i][:len(t.columns)]
		}
	}
	s.print(t)
}

// speakerName returns the speaker of a message.
func speakerName(m *memsidecarv1.Message) string {
	role := nameOf(m.GetRole().String(), "ROLE_")
	switch {
	case m.GetSpeakerId() != "":
		return m.GetSpeakerId()
	case m.GetRole() == memsidecarv1.Role_ROLE_ASSISTANT && m.GetAgentId() != "":
		return m.GetAgentId()
	case m.GetRole() == memsidecarv1.Role_ROLE_ASSISTANT:
		return "bot"
	}
	return role
}

func messageNotes(m *memsidecarv1.SessionMessage) string {
	var notes []string
	for _, call := range m.GetMessage().GetToolCalls() {
		note := "called " + call.GetName()
		if call.GetStatus() != "" {
			note += ": " + call.GetStatus()
		}
		notes = append(notes, note)
	}
	if m.GetWithheld() {
		notes = append(notes, strings.TrimSuffix("withheld: "+nameOf(m.GetWithheldReason().String(), "WITHHELD_REASON_"), ": unspecified"))
	}
	return strings.Join(notes, "; ")
}

type sessionsContext struct {
	ID          string `arg:"" optional:"" help:"The session's id."`
	MaxMessages *int32 `placeholder:"N" help:"At most this many messages, 1 to 1000. By default as configured."`
	MaxTurns    *int32 `placeholder:"N" help:"At most this many turns, 1 to 1000. By default as configured."`
	MaxChars    *int32 `placeholder:"N" help:"At most this many characters of messages, 1 to 1000000. By default as configured."`
	Tools       bool   `help:"Include tool messages, and the arguments and results of tool calls."`
	System      bool   `help:"Include system messages."`
	Turn        string `placeholder:"ID" help:"Id of the bot's turn; the traces of its calls share it."`

	transcriptFlags
	conversation
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsContext) Help() string {
	return currentHelp + `With --json the messages and the summary are separate fields.

Examples:

    memsidecar sessions context -u alice chat-1 >> prompt.txt
    memsidecar sessions context -u 小林 --max-turns 3 --language zh --label ancestor_yan=严氏先祖`
}

// Run prints the block.
func (c sessionsContext) Run(ctx context.Context, p *Program) error {
	scope, err := c.sessionScope(c.ID)
	if err != nil {
		return err
	}
	scope.AgentId = c.Agent
	filter, err := c.filter()
	if err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.GetContext(ctx, &memsidecarv1.GetContextRequest{
		Scope: scope, MaxMessages: c.MaxMessages, MaxTurns: c.MaxTurns, MaxChars: c.MaxChars, Agent: filter,
		IncludeTools: c.Tools, IncludeSystem: c.System, Language: c.Language, Labels: c.Label, TurnId: c.Turn,
	})
	if err != nil {
		return err
	}
	p.degraded(resp.GetDegraded())
	switch {
	case resp.GetExpired():
		p.note("the window expired, because the last message is too old. List the messages with: memsidecar sessions messages")
	case resp.GetPromptContext() == "":
		p.note("nothing found")
	}
	if resp.GetNewestTooLong() {
		p.note("the newest message alone exceeds the character limit; it is returned anyway")
	}
	if n := resp.GetDroppedCount(); n > 0 {
		p.note("%s before the window left out", count(n, "message", "messages"))
	}
	return c.show(p, resp, func(s *screen) {
		if resp.GetPromptContext() != "" {
			s.promptBlock(p, resp.GetPromptContext())
		}
	})
}

// degraded prints which parts of an answer were missing.
func (p *Program) degraded(list []*memsidecarv1.Degradation) {
	for _, d := range list {
		p.note("degraded: %s", degradation(d))
	}
}

func degradation(d *memsidecarv1.Degradation) string {
	return fmt.Sprintf("%s: %s", nameOf(d.GetComponent().String(), "DEGRADED_COMPONENT_"), d.GetReason())
}

type sessionsTopics struct {
	ID     string  `arg:"" optional:"" help:"The session's id."`
	After  timeArg `placeholder:"TIME" help:"Only what was said at or after this time. By default in the last seven days."`
	Before timeArg `placeholder:"TIME" help:"Only what was said before this time."`
	Top    *int32  `placeholder:"N" help:"At most this many, 1 to 100 (10)."`

	conversation
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsTopics) Help() string {
	return `Counts the topics of a session; without an id those of the user, and without --user those of the namespace, as far as the
channel may see them. BEFORE is the number of messages in the preceding period of the same length.

Examples:

    memsidecar sessions topics -u alice chat-1
    memsidecar sessions topics --channel g1 --channel-kind group --after 2026-11-01 --before 2026-12-01 --top 20`
}

// Run shows the topics, the most prominent first.
func (c sessionsTopics) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	scope.SessionId = c.ID
	resp, err := conn.GetTopics(ctx, &memsidecarv1.GetTopicsRequest{
		Scope: scope, AfterTime: c.After.timestamp(), BeforeTime: c.Before.timestamp(), MaxTopics: c.Top,
	})
	if err != nil {
		return err
	}
	if len(resp.GetTopics()) == 0 {
		p.note("nothing found")
	}
	newest := ""
	if resp.GetTruncated() {
		newest = ", the newest ones"
	}
	p.note("counted %s%s", count(resp.GetMessageCount(), "user message", "user messages"), newest)
	return c.show(p, resp, func(s *screen) {
		if len(resp.GetTopics()) == 0 {
			return
		}
		t := &table{columns: []column{{name: "topic", wraps: true}, {name: "messages", right: true}, {name: "before", right: true}}}
		for _, topic := range resp.GetTopics() {
			t.row(topic.GetText(), topic.GetMessageCount(), topic.GetPreviousCount())
		}
		s.print(t)
	})
}
