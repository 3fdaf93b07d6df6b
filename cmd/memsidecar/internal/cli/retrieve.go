package cli

import (
	"context"
	"fmt"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type retrieveCommand struct {
	Query           []string `arg:"" help:"What the user said, or any question. \"-\" is standard input."`
	Context         bool     `help:"Print only the block for the bot's system prompt."`
	TopK            *int32   `short:"k" placeholder:"N" help:"At most N results, 1 to 100. By default as configured."`
	MinRelevance    *float64 `placeholder:"X" help:"Lowest relevance of a result, 0 to 1. By default as configured."`
	Kind            []string `enum:"${kinds}" placeholder:"KIND" help:"Only these kinds: ${kindlist}."`
	After           timeArg  `placeholder:"TIME" help:"Only results stored at or after this time."`
	Before          timeArg  `placeholder:"TIME" help:"Only results stored before this time."`
	At              timeArg  `placeholder:"TIME" help:"Answer as of this time: ignore later messages, and use the memories that were valid then."`
	MaxContextChars *int32   `placeholder:"N" help:"Longest prompt block in characters, 200 to 100000. By default as configured."`
	Messages        bool     `help:"Search past messages, and show the messages around them. With --memories, search both."`
	Memories        bool     `help:"Search memories (the default)."`
	History         bool     `help:"Include superseded and expired memories, with the time in which they were valid."`
	ExcludeStanding bool     `help:"Leave out what belongs in every answer: safety, name, wishes about answers."`
	Neighbors       *int32   `placeholder:"N" help:"With --messages: number of messages to show before and after each result, 0 to 20 (1)."`
	Turn            string   `placeholder:"ID" help:"Id of the bot's turn; the traces of its calls share it."`

	learnedByFlag
	place
	agentFlag
	Session string `group:"scope" placeholder:"ID" help:"The session of the question, for the trace."`
	calls
	output
}

// Help implements kong.HelpProvider.
func (retrieveCommand) Help() string {
	return `Without --channel-kind, all channels of the user are searched, as in a direct chat.

Examples:

    memsidecar retrieve -u alice What may I cook tonight?
    memsidecar retrieve -u alice --messages --neighbors 2 soup
    memsidecar retrieve -u alice --history Where did I live?
    memsidecar retrieve -u alice --at 2026-03-01 Where do I live?
    memsidecar retrieve -u 小林 --kind preference,fact 今晚吃什么
    memsidecar retrieve -u alice --context "Any plans?" >> prompt.txt`
}

// Run retrieves and shows the hits, best first.
func (c retrieveCommand) Run(ctx context.Context, p *Program) error {
	scope, err := c.readScope()
	if err != nil {
		return err
	}
	learnedBy, err := c.filter(c.Agent)
	if err != nil {
		return err
	}
	query, err := p.text(ctx, c.Query)
	if err != nil {
		return err
	}
	scope.AgentId, scope.SessionId = c.Agent, c.Session
	request := &memsidecarv1.RetrieveRequest{
		Scope: scope, Query: query, TopK: c.TopK, MinRelevance: c.MinRelevance, MaxContextChars: c.MaxContextChars,
		NeighborCount: c.Neighbors, TurnId: c.Turn, IncludeHistory: c.History,
		CreatedAfterTime: c.After.timestamp(), CreatedBeforeTime: c.Before.timestamp(), ReadTime: c.At.timestamp(),
		Agent: learnedBy, ExcludeStanding: c.ExcludeStanding,
	}
	for _, kind := range c.Kind {
		request.Kinds = append(request.Kinds, memsidecarv1.MemoryKind(valueOf(memsidecarv1.MemoryKind_value, kindPrefix, kind)))
	}
	if c.Memories {
		request.Sources = append(request.Sources, memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MEMORIES)
	}
	if c.Messages {
		request.Sources = append(request.Sources, memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES)
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
	p.degraded(resp.GetDegraded())
	found := len(resp.GetStanding()) + len(resp.GetMemories()) + len(resp.GetMessages())
	if found == 0 {
		p.note("nothing found")
	}
	return c.show(p, resp, func(s *screen) {
		switch {
		case found == 0:
		case c.Context:
			s.promptBlock(p, resp.GetPromptContext())
		default:
			s.standing(resp.GetStanding())
			if len(resp.GetStanding()) > 0 && len(resp.GetMemories())+len(resp.GetMessages()) > 0 {
				s.say("\n")
			}
			s.hits(resp.GetMemories(), c.History)
			if len(resp.GetMemories()) > 0 && len(resp.GetMessages()) > 0 {
				s.say("\n")
			}
			s.messageHits(resp.GetMessages())
		}
	})
}

// promptBlock prints the block: unchanged to a file or a program, with control characters escaped on a terminal.
func (s *screen) promptBlock(p *Program, text string) {
	if _, ok := terminal(p.Stdout); ok {
		text = block(text)
	}
	s.say("%s\n", text)
}

// standing shows what belongs in every answer.
func (s *screen) standing(memories []*memsidecarv1.Memory) {
	if len(memories) == 0 {
		return
	}
	t := &table{columns: []column{{name: "always"}, {name: "text", wraps: true}, {name: "when"}}}
	for _, m := range memories {
		t.row(cell{standingName(m.GetStanding()), green}, m.GetText(), date(m.GetObserveTime()))
	}
	s.print(t)
}

// hits shows memories; with their history, each has its period.
func (s *screen) hits(hits []*memsidecarv1.RetrievedMemory, history bool) {
	if len(hits) == 0 {
		return
	}
	t := &table{
		columns: []column{
			{name: "score", right: true},
			{name: "text", wraps: true},
			{name: "kind"},
			{name: "when"},
			{name: "why", wraps: true},
		},
	}
	if history {
		t.columns = append(t.columns, column{name: "state"}, column{name: "held"})
	}
	for _, hit := range hits {
		m := hit.GetMemory()
		row := []any{
			cell{fmt.Sprintf("%.2f", hit.GetScore()), green},
			m.GetText(), kindName(m.GetKind()), date(m.GetObserveTime()),
			cell{scoreText(hit.GetParts()), dim},
		}
		if history {
			row = append(row, memoryStateCell(m), validity(m))
		}
		t.row(row...)
	}
	s.print(t)
}

// scoreText describes the parts of a score.
func scoreText(parts *memsidecarv1.ScoreParts) string {
	var list []string
	for _, part := range []struct {
		name  string
		value float64
	}{
		{"similarity", parts.GetSimilarity()},
		{"keyword", parts.GetKeyword()},
		{"neighbors", parts.GetNeighbors()},
		{"recency", parts.GetRecency()},
		{"importance", parts.GetImportance()},
	} {
		if part.value > 0 {
			list = append(list, fmt.Sprintf("%s %.2f", part.name, part.value))
		}
	}
	return strings.Join(list, ", ")
}

// messageHits shows messages with their neighbors, which have no score.
func (s *screen) messageHits(hits []*memsidecarv1.RetrievedMessage) {
	if len(hits) == 0 {
		return
	}
	t := &table{
		columns: []column{
			{name: "score", right: true},
			{name: "where"},
			{name: "when"},
			{name: "who"},
			{name: "text", wraps: true},
			{name: "why", wraps: true},
		},
	}
	around := func(list []*memsidecarv1.SessionMessage) {
		for _, m := range list {
			t.row("", cell{messageLocation(m.GetSessionId(), m.GetPosition()), dim}, cell{date(m.GetMessage().GetSendTime()), dim},
				cell{speakerName(m.GetMessage()), dim}, cell{m.GetMessage().GetContent(), dim}, "")
		}
	}
	for _, hit := range hits {
		around(hit.GetBefore())
		m := hit.GetMessage()
		t.row(cell{fmt.Sprintf("%.2f", hit.GetScore()), green}, messageLocation(m.GetSessionId(), m.GetPosition()), date(m.GetMessage().GetSendTime()),
			speakerName(m.GetMessage()), cell{m.GetMessage().GetContent(), bold}, cell{scoreText(hit.GetParts()), dim})
		around(hit.GetAfter())
	}
	s.print(t)
}

// messageLocation returns the place of a message.
func messageLocation(session string, position int64) string {
	return fmt.Sprintf("%s #%d", session, position)
}
