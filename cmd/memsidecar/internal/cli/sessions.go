package cli

import (
	"context"
	"fmt"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type sessionsCommands struct {
	List     sessionsList     `cmd:"" help:"List the sessions, the one that changed last first."`
	Get      sessionsGet      `cmd:"" help:"Show a session with its newest messages."`
	Messages sessionsMessages `cmd:"" help:"Page through a session's messages."`
	Context  sessionsContext  `cmd:"" help:"Print the part of a conversation for the next prompt."`
	Topics   sessionsTopics   `cmd:"" help:"Show the most frequent topics."`
	Append   sessionsAppend   `cmd:"" help:"Add messages at the end of a session."`
	Switch   sessionsSwitch   `cmd:"" help:"Make a session the user's current one in a channel."`
	Update   sessionsUpdate   `cmd:"" help:"Change a session's title, metadata or how often it is considered."`
	Delete   sessionsDelete   `cmd:"" help:"Delete sessions with their messages."`
	Export   sessionsExport   `cmd:"" help:"Write a session as JSON or JSONL."`
	Import   sessionsImport   `cmd:"" help:"Import a session from JSON or JSONL."`
}

// sessionsHelp is the help that all commands about sessions share.
const sessionsHelp = `Without --user, the command works on sessions without a user.
`

// currentHelp is the help that commands with an optional id share.
const currentHelp = sessionsHelp + `Without an id, it works on the current session of the channel.
`

// conversation selects the user and channel of a session.
type conversation struct{ place }

// readScope returns the scope for showing sessions: all that the user can see, unless a channel is given.
func (f conversation) readScope() (*memsidecarv1.Scope, error) {
	return f.withChannel(f.optionalScope(), memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT)
}

// writeScope returns the scope for adding to sessions: that of a bot without channels, unless a channel is given.
func (f conversation) writeScope() (*memsidecarv1.Scope, error) {
	return f.withChannel(f.optionalScope(), memsidecarv1.ChannelKind_CHANNEL_KIND_UNSPECIFIED)
}

// sessionScope returns the scope for showing a session. The current session depends on the channel.
func (f conversation) sessionScope(id string) (scope *memsidecarv1.Scope, err error) {
	if scope, err = f.readScope(); id == "" {
		scope, err = f.writeScope()
	}
	if err == nil {
		scope.SessionId = id
	}
	return scope, err
}

// ownSessionScope returns the scope for changing a session, which only its own channel may do. Without --channel-kind it is looked up.
func (f conversation) ownSessionScope(ctx context.Context, conn *connection, id string) (*memsidecarv1.Scope, error) {
	scope, err := f.sessionScope(id)
	if err != nil || id == "" || f.ChannelKind != "" {
		return scope, err
	}
	resp, err := conn.GetSession(ctx, &memsidecarv1.GetSessionRequest{Scope: scope, RecentMessages: new(int32)})
	if err != nil {
		return nil, err
	}
	scope.ChannelId, scope.ChannelKind = resp.GetSession().GetChannelId(), resp.GetSession().GetChannelKind()
	return scope, nil
}

type sessionsList struct {
	pages
	conversation
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsList) Help() string {
	return `Without --user, lists sessions without a user. Without --channel-kind, lists sessions of all channels. With --json every line is
one session.

Examples:

    memsidecar sessions list -u alice
    memsidecar sessions list -u alice --channel g1 --channel-kind group`
}

// Run lists sessions.
func (c sessionsList) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	current, err := c.current(ctx, conn)
	if err != nil {
		return err
	}
	t := &table{columns: []column{
		{name: "id"},
		{name: "title", wraps: true},
		{name: "channel"},
		{name: "people", wraps: true},
		{name: "messages", right: true},
		{name: "unconsidered", right: true},
		{name: "changed"},
		{},
	}}
	list := listing[*memsidecarv1.Session]{
		table: t,
		page: func(size int32, token string) ([]*memsidecarv1.Session, string, error) {
			resp, err := conn.ListSessions(ctx, &memsidecarv1.ListSessionsRequest{Scope: scope, PageSize: size, PageToken: token})
			return resp.GetSessions(), resp.GetNextPageToken(), err
		},
		row: func(s *memsidecarv1.Session) []any {
			mark := cell{}
			if s.GetId() == current {
				mark = cell{"current", green}
			}
			return []any{
				s.GetId(), s.GetTitle(), sessionPlace(s), strings.Join(s.GetParticipantIds(), ", "), s.GetMessageCount(), s.GetUnconsideredCount(),
				date(s.GetUpdateTime()), mark,
			}
		},
	}
	return list.show(p, c.pages, c.output)
}

// current returns the current session of the channel that commands without an id use.
func (c sessionsList) current(ctx context.Context, conn *connection) (string, error) {
	scope, err := c.writeScope()
	if err != nil || c.User == "" || c.JSON {
		return "", err
	}
	resp, err := conn.ListSessions(ctx, &memsidecarv1.ListSessionsRequest{Scope: scope, PageSize: 1})
	return resp.GetCurrentSessionId(), err
}

// sessionPlace describes the channel of a session.
func sessionPlace(s *memsidecarv1.Session) string {
	return channelName(&memsidecarv1.Scope{ChannelKind: s.GetChannelKind(), ChannelId: s.GetChannelId()})
}

type sessionsGet struct {
	ID     string `arg:"" optional:"" help:"The session's id."`
	Recent *int32 `placeholder:"N" help:"How many of the newest messages, 0 to 1000 (10)."`

	conversation
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsGet) Help() string {
	return currentHelp + `
Examples:

    memsidecar sessions get -u alice
    memsidecar sessions get -u alice --recent 3 chat-1`
}

// Run shows the session.
func (c sessionsGet) Run(ctx context.Context, p *Program) error {
	scope, err := c.sessionScope(c.ID)
	if err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.GetSession(ctx, &memsidecarv1.GetSessionRequest{Scope: scope, RecentMessages: c.Recent})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) { s.sessionWithMessages(resp) })
}

func (s *screen) sessionWithMessages(r *memsidecarv1.GetSessionResponse) {
	s.session(r.GetSession(), r.GetSummary())
	if len(r.GetRecentMessages()) > 0 {
		s.say("\n")
		s.messages(r.GetRecentMessages())
	}
}

func (s *screen) session(c *memsidecarv1.Session, summary *memsidecarv1.SessionSummary) {
	made := ""
	if summary != nil {
		made = fmt.Sprintf(
			"%s (of %s, by %s)",
			summary.GetText(),
			count(summary.GetMessageCount(), "message", "messages"),
			summary.GetMadeBy(),
		)
	}
	window := cell{"empty: no message yet, or none recently", dim}
	if c.GetWindowExpireTime() != nil {
		window = cell{"expires " + date(c.GetWindowExpireTime()) + " without a new message", ""}
	} else if c.GetMessageCount() > 0 {
		window = cell{"expired, or never expires", dim}
	}
	s.fields(
		"id",
		cell{c.GetId(), bold},
		"title",
		c.GetTitle(),
		"channel",
		sessionPlace(c),
		"people",
		strings.Join(c.GetParticipantIds(), ", "),
		"agents",
		strings.Join(c.GetAgentIds(), ", "),
		"metadata",
		c.GetMetadataJson(),
		"messages",
		fmt.Sprintf("%d, %d of users", c.GetMessageCount(), c.GetUserMessageCount()),
		"unconsidered",
		c.GetUnconsideredCount(),
		"considered",
		everyName(c.MemorizeEvery != nil, c.GetMemorizeEvery(), "as the user's settings or the configuration specify"),
		"first message",
		date(c.GetFirstMessageTime()),
		"last message",
		date(c.GetLastMessageTime()),
		"window",
		window,
		"created",
		date(c.GetCreateTime()),
		"changed",
		date(c.GetUpdateTime()),
		"summary",
		made,
	)
}

type sessionsSwitch struct {
	ID   string `arg:"" optional:"" help:"The session's id; a session that does not exist is created."`
	None bool   `help:"Clear the current session."`

	conversation
	agentFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (sessionsSwitch) Help() string {
	return `Calls without a session id use the current session of the channel. In a group, other users keep theirs.

Examples:

    memsidecar sessions switch -u alice chat-2
    memsidecar sessions switch -u alice --none`
}

// Run switches the current session.
func (c sessionsSwitch) Run(ctx context.Context, p *Program) error {
	if _, err := c.userScope(); err != nil {
		return err
	}
	if (c.ID == "") == !c.None {
		return usage("say which session to switch to, or --none")
	}
	scope, err := c.writeScope()
	if err != nil {
		return err
	}
	scope.SessionId, scope.AgentId = c.ID, c.Agent
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.SwitchSession(ctx, &memsidecarv1.SwitchSessionRequest{Scope: scope})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) {
		switch {
		case c.None:
			s.say("the current session was cleared\n")
		case resp.GetCreated():
			s.say("%s is current, and new\n", line(c.ID))
		default:
			s.say("%s is current\n", line(c.ID))
		}
	})
}
