package cli

import (
	"context"
	"fmt"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type digestCommands struct {
	Show      digestShow      `cmd:"" help:"Show the digest of a day so far."`
	List      digestList      `cmd:"" help:"List the days that have a digest, newest first."`
	Summarize digestSummarize `cmd:"" help:"Summarize messages that no digest covers yet, and show the digest of the day."`
}

// wording is the language flag of commands that write text.
type wording struct {
	Language string `placeholder:"LANGUAGE" help:"BCP 47 language of the text, for example zh. By default that of the user's settings, else of the conversation."`
}

// narrowed returns a function that returns the scope that the place sees, for an agent, and sets whether only the agent's is meant.
func (f learnedByFlag) narrowed(at place, agent string, only *memsidecarv1.AgentFilter) func() (*memsidecarv1.Scope, error) {
	return func() (scope *memsidecarv1.Scope, err error) {
		if scope, err = at.readScope(); err != nil {
			return nil, err
		}
		scope.AgentId = agent
		*only, err = f.filter(agent)
		return scope, err
	}
}

const dayHelp = `A day, such as 2026-11-20, is in the user's time zone; the default is today. Without --channel-kind, the digest covers all channels.
`

type digestShow struct {
	Day string `arg:"" optional:"" help:"The day."`

	wording
	learnedByFlag
	place
	agentFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (digestShow) Help() string {
	return dayHelp + `
Examples:

    memsidecar digest show -u alice
    memsidecar digest show -u 小林 2026-11-20 --language zh
    memsidecar digest show -u alice --json | jq -r '.tasks[].text'`
}

// Run shows the digest as Markdown.
func (c digestShow) Run(ctx context.Context, p *Program) error {
	var only memsidecarv1.AgentFilter
	scope := c.narrowed(c.place, c.Agent, &only)
	resp, err := ask(p, c.calls, scope, func(conn *connection, scope *memsidecarv1.Scope) (*memsidecarv1.GetDigestResponse, error) {
		return conn.GetDigest(ctx, &memsidecarv1.GetDigestRequest{Scope: scope, Agent: only, Day: c.Day, Language: c.Language})
	})
	if err != nil {
		return err
	}
	return c.digest(p, resp.GetDigest())
}

// digest shows one digest.
func (f output) digest(p *Program, d *memsidecarv1.Digest) error {
	if n := d.GetWaitingCount(); n > 0 {
		p.note("%s covered by no digest yet: run memsidecar digest summarize", count(n, "message of the day is", "messages of the day are"))
	}
	return f.show(p, d, func(s *screen) { s.promptBlock(p, strings.TrimSpace(d.GetMarkdown())) })
}

type digestSummarize struct {
	Day string `arg:"" optional:"" help:"The day."`

	wording
	learnedByFlag
	place
	agentFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (digestSummarize) Help() string {
	return dayHelp + `It also works when automatic digests are off (digest.enabled), and on messages that were imported as history only.
With a model it may take longer than --timeout; running it again continues.

Examples:

    memsidecar digest summarize -u alice
    memsidecar digest summarize -u alice 2026-11-20 --timeout 5m`
}

// Run makes the digest and shows it.
func (c digestSummarize) Run(ctx context.Context, p *Program) error {
	var only memsidecarv1.AgentFilter
	scope := c.narrowed(c.place, c.Agent, &only)
	resp, err := ask(p, c.calls, scope, func(conn *connection, scope *memsidecarv1.Scope) (*memsidecarv1.SummarizeDayResponse, error) {
		return conn.SummarizeDay(ctx, &memsidecarv1.SummarizeDayRequest{Scope: scope, Agent: only, Day: c.Day, Language: c.Language})
	})
	if err != nil {
		return err
	}
	return c.digest(p, resp.GetDigest())
}

type digestList struct {
	wording
	pages
	learnedByFlag
	place
	agentFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (digestList) Help() string {
	return `Without --channel-kind, all channels are listed. With --json every line is one digest.

Examples:

    memsidecar digest list -u alice
    memsidecar digest list -u alice --all --json | jq -r .markdown`
}

// Run lists the digests.
func (c digestList) Run(ctx context.Context, p *Program) error {
	var only memsidecarv1.AgentFilter
	scope, conn, err := c.reach(p, c.narrowed(c.place, c.Agent, &only))
	if err != nil {
		return err
	}
	defer conn.close()
	t := &table{columns: []column{
		{name: "day"},
		{name: "topics", wraps: true},
		{name: "preferences", right: true},
		{name: "decisions", right: true},
		{name: "tasks", right: true},
		{name: "issues", right: true},
		{name: "insights", right: true},
	}}
	list := listing[*memsidecarv1.Digest]{
		table: t,
		page: func(size int32, token string) ([]*memsidecarv1.Digest, string, error) {
			resp, err := conn.ListDigests(ctx, &memsidecarv1.ListDigestsRequest{Scope: scope, Agent: only, PageSize: size, PageToken: token, Language: c.Language})
			return resp.GetDigests(), resp.GetNextPageToken(), err
		},
		row: func(d *memsidecarv1.Digest) []any {
			return []any{
				d.GetDay(), strings.Join(d.GetTopics(), ", "), fmt.Sprint(len(d.GetPreferences())), fmt.Sprint(len(d.GetDecisions())),
				fmt.Sprint(len(d.GetTasks())), fmt.Sprint(len(d.GetTechnicalIssues())), fmt.Sprint(len(d.GetKeyInsights())),
			}
		},
	}
	return list.show(p, c.pages, c.output)
}

type notebookCommand struct {
	MaxEntries *int32 `placeholder:"N" help:"At most this many memories, 1 to 10000. By default as configured."`

	wording
	learnedByFlag
	place
	agentFlag
	calls
	output
}

// Help implements kong.HelpProvider.
func (notebookCommand) Help() string {
	return `All memories of a user, grouped by kind, newest first, without duplicates. Without --channel-kind, memories of all channels
are shown.

Examples:

    memsidecar notebook -u alice
    memsidecar notebook -u 小林 --language zh > MEMORY.md`
}

// Run shows the notebook as Markdown.
func (c notebookCommand) Run(ctx context.Context, p *Program) error {
	var only memsidecarv1.AgentFilter
	scope := c.narrowed(c.place, c.Agent, &only)
	resp, err := ask(p, c.calls, scope, func(conn *connection, scope *memsidecarv1.Scope) (*memsidecarv1.GetNotebookResponse, error) {
		return conn.GetNotebook(ctx, &memsidecarv1.GetNotebookRequest{Scope: scope, Agent: only, MaxEntries: c.MaxEntries, Language: c.Language})
	})
	if err != nil {
		return err
	}
	n := resp.GetNotebook()
	if n.GetTruncated() {
		p.note("the newest %s; there are more: add --max-entries", count(n.GetEntryCount(), "memory", "memories"))
	}
	return c.show(p, n, func(s *screen) { s.promptBlock(p, strings.TrimSpace(n.GetMarkdown())) })
}
