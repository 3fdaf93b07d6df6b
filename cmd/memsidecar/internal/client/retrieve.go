package client

import (
	"context"
	"fmt"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type retrieveCommand struct {
	Query           []string `arg:"" help:"What the user said, or any question. \"-\" is standard input."`
	Context         bool     `help:"Print only the block for the bot's system prompt."`
	TopK            *int32   `short:"k" placeholder:"N" help:"At most this many, 1 to 100. By default as configured."`
	MinScore        *float64 `placeholder:"X" help:"Leave out what is less relevant, 0 to 1. By default as configured."`
	Kind            []string `enum:"${kinds}" placeholder:"KIND" help:"Only these kinds: ${kindlist}."`
	After           when     `placeholder:"TIME" help:"Only what was stored at or after this time."`
	Before          when     `placeholder:"TIME" help:"Only what was stored before this time."`
	LearnedBy       string   `enum:"any,this" default:"any" placeholder:"WHO" help:"any, or this: only what --agent learned."`
	MaxContextChars *int32   `placeholder:"N" help:"Longest block for the prompt, 200 to 100000. By default as configured."`

	place
	agentFlag
	calls
	output
}

// Help has examples.
func (retrieveCommand) Help() string {
	return `Without --channel-kind everything of the user is searched, as for a direct chat.

Examples:

    memsidecar retrieve -u alice What may I cook tonight?
    memsidecar retrieve -u 小林 --kind preference,fact 今晚吃什么
    memsidecar retrieve -u alice --context "Any plans?" >> prompt.txt`
}

// Run asks and shows what was found, best first.
func (c retrieveCommand) Run(ctx context.Context, p *Program) error {
	scope, err := c.sees()
	if err != nil {
		return err
	}
	if c.LearnedBy == "this" && c.Agent == "" {
		return usage("say with --agent whose memories --learned-by this means")
	}
	query, err := p.text(ctx, c.Query)
	if err != nil {
		return err
	}
	scope.AgentId = c.Agent
	request := &memsidecarv1.RetrieveRequest{
		Scope: scope, Query: query, TopK: c.TopK, MinScore: c.MinScore, MaxContextChars: c.MaxContextChars,
		CreatedAfter: c.After.timestamp(), CreatedBefore: c.Before.timestamp(),
		Agent: memsidecarv1.AgentFilter(valueOf(memsidecarv1.AgentFilter_value, "AGENT_FILTER_", c.LearnedBy)),
	}
	for _, kind := range c.Kind {
		request.Kinds = append(request.Kinds, memsidecarv1.MemoryKind(valueOf(memsidecarv1.MemoryKind_value, kindPrefix, kind)))
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.Retrieve(ctx, request)
	if err != nil {
		return err
	}
	for _, d := range resp.GetDegraded() {
		p.note("degraded: %s: %s", nameOf(d.GetComponent().String(), "DEGRADED_COMPONENT_"), d.GetReason())
	}
	if len(resp.GetMemories()) == 0 {
		p.note("nothing found")
	}
	return c.show(p, resp, func(s *screen) {
		switch {
		case len(resp.GetMemories()) == 0:
		case c.Context:
			s.promptBlock(p, resp.GetPromptContext())
		default:
			s.hits(resp.GetMemories())
		}
	})
}

// promptBlock shows the block: as it is to a file or a program, that the bot's prompt is made of, and safely to a person.
func (s *screen) promptBlock(p *Program, text string) {
	if _, ok := terminal(p.Stdout); ok {
		text = block(text)
	}
	s.say("%s\n", text)
}

func (s *screen) hits(hits []*memsidecarv1.RetrievedMemory) {
	t := &table{columns: []column{{name: "score", right: true}, {name: "text", wraps: true}, {name: "kind"}, {name: "when"}, {name: "why", wraps: true}}}
	for _, hit := range hits {
		m, parts := hit.GetMemory(), hit.GetParts()
		var why []string
		for _, part := range []struct {
			name  string
			value float64
		}{{"similarity", parts.GetSimilarity()}, {"keyword", parts.GetKeyword()}, {"recency", parts.GetRecency()}, {"importance", parts.GetImportance()}} {
			if part.value > 0 {
				why = append(why, fmt.Sprintf("%s %.2f", part.name, part.value))
			}
		}
		t.row(cell{fmt.Sprintf("%.2f", hit.GetScore()), green}, m.GetText(), kindName(m.GetKind()), date(m.GetObserveTime()),
			cell{strings.Join(why, ", "), dim})
	}
	s.print(t)
}
