package cli

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type memoriesCommands struct {
	List      memoriesList      `cmd:"" help:"List a user's memories, newest first."`
	Get       memoriesGet       `cmd:"" help:"Show one memory and its source."`
	Update    memoriesUpdate    `cmd:"" help:"Change a memory."`
	Delete    memoriesDelete    `cmd:"" help:"Delete memories."`
	Revisions memoriesRevisions `cmd:"" help:"Show the changes of a memory, and of memories that it replaced."`
	Revert    memoriesRevert    `cmd:"" help:"Undo the newest change of a memory."`
	Release   memoriesRelease   `cmd:"" help:"Release memories from quarantine."`
	Export    memoriesExport    `cmd:"" help:"Write everything stored about a user as JSONL."`
	Import    memoriesImport    `cmd:"" help:"Import memories from JSONL."`
}

type memoriesList struct {
	Filter string   `placeholder:"FILTER" help:"Comparisons joined by AND, of kind, state, importance, explicit, agent_id, language, create_time or observe_time."`
	State  []string `enum:"${memorystates}" placeholder:"STATE" help:"Only in these states: ${memorystatelist}. By default active, expired and quarantined."`

	Standing bool `help:"Only standing memories, which are part of every answer."`

	pages
	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (memoriesList) Help() string {
	return `Without --channel-kind, all channels are listed. With --json every line is one memory.

Examples:

    memsidecar memories list -u alice
    memsidecar memories list -u alice --filter 'kind = "preference" AND importance >= 0.5'
    memsidecar memories list -u alice --state superseded,withdrawn
    memsidecar memories list -u alice --standing
    memsidecar memories list -u alice --all --json | jq -r .text`
}

// Run lists memories.
func (c memoriesList) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	t := &table{columns: []column{{name: "id"}, {name: "text", wraps: true}, {name: "kind"}, {name: "importance", right: true}, {name: "state"}, {name: "when"}}}
	request := &memsidecarv1.ListMemoriesRequest{Scope: scope, Filter: c.Filter, Standing: c.Standing}
	if c.Standing {
		t.columns = append(t.columns, column{name: "standing"})
	}
	for _, state := range c.State {
		request.States = append(request.States, memsidecarv1.MemoryState(valueOf(memsidecarv1.MemoryState_value, memoryStatePrefix, state)))
	}
	list := listing[*memsidecarv1.Memory]{
		table: t,
		page: func(size int32, token string) ([]*memsidecarv1.Memory, string, error) {
			request.PageSize, request.PageToken = size, token
			resp, err := conn.ListMemories(ctx, request)
			return resp.GetMemories(), resp.GetNextPageToken(), err
		},
		row: func(m *memsidecarv1.Memory) []any {
			row := []any{m.GetId(), m.GetText(), kindName(m.GetKind()), fmt.Sprintf("%.2f", m.GetImportance()), memoryStateCell(m), date(m.GetObserveTime())}
			if c.Standing {
				row = append(row, standingName(m.GetStanding()))
			}
			return row
		},
	}
	return list.show(p, c.pages, c.output)
}

type memoriesGet struct {
	ID string `arg:"" help:"The memory's id."`

	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (memoriesGet) Help() string {
	return `Examples:

    memsidecar memories get -u alice mem_ixmff34jmcga2cmhdf6jbmhr`
}

// Run shows the memory.
func (c memoriesGet) Run(ctx context.Context, p *Program) error {
	resp, err := ask(p, c.calls, c.readScope, func(conn *connection, scope *memsidecarv1.Scope) (*memsidecarv1.GetMemoryResponse, error) {
		return conn.GetMemory(ctx, &memsidecarv1.GetMemoryRequest{Scope: scope, MemoryId: c.ID})
	})
	if err != nil {
		return err
	}
	return c.show(p, resp.GetMemory(), func(s *screen) { s.memory(resp.GetMemory()) })
}

func (s *screen) memory(m *memsidecarv1.Memory) {
	from := m.GetProvenance()
	mentioned := fmt.Sprintf("%d times", m.GetMentionCount())
	if m.GetMentionCount() == 1 {
		mentioned = "once"
	} else if m.GetLastMentionTime() != nil {
		mentioned += ", last " + date(m.GetLastMentionTime())
	}
	used := "never"
	if m.GetUseCount() > 0 {
		used = fmt.Sprintf("%d times, last %s", m.GetUseCount(), date(m.GetLastUseTime()))
	}
	s.fields(
		"id", m.GetId(), "text", cell{m.GetText(), bold}, "state", memoryStateCell(m), "not trusted", m.GetQuarantineReason(), "holds", validity(m),
		"superseded by", m.GetSupersededById(), "kind", kindName(m.GetKind()), "standing", standingName(m.GetStanding()),
		"importance", fmt.Sprintf("%.2f", m.GetImportance()),
		"retention", retentionOf(m), "explicit", yesNo(m.GetExplicit()), "language", m.GetLanguage(), "channel", channelName(m.GetScope()),
		"agent", m.GetScope().GetAgentId(), "session", m.GetScope().GetSessionId(),
		"said", date(m.GetObserveTime()), "mentioned", mentioned, "used", used,
		"stored", date(m.GetCreateTime()), "changed", date(m.GetUpdateTime()),
		"source", nameOf(from.GetSource().String(), "MEMORY_SOURCE_"), "said as", from.GetQuote(), "said by", from.GetSpeakerId(),
		"messages", strings.Join(from.GetMessageIds(), ", "), "because", from.GetReason(), "decided by", from.GetDecidedBy(),
		"consideration", from.GetConsiderationId(),
	)
}

// retentionOf returns how likely a memory is to be kept, or "".
func retentionOf(m *memsidecarv1.Memory) string {
	if m.Retention == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", m.GetRetention())
}

// channelName describes a channel.
func channelName(scope *memsidecarv1.Scope) string {
	return strings.TrimSpace(nameOf(scope.GetChannelKind().String(), "CHANNEL_KIND_") + " " + scope.GetChannelId())
}

type memoriesUpdate struct {
	ID         string   `arg:"" help:"The memory's id."`
	Text       *string  `placeholder:"TEXT" help:"The new statement."`
	Kind       string   `enum:",${kinds}" default:"" placeholder:"KIND" help:"The new kind: ${kindlist}."`
	Importance *float64 `placeholder:"X" help:"The new importance, 0 to 1."`
	Standing   string   `enum:",none,${standings}" default:"" placeholder:"CLASS" help:"Make it part of every answer: ${standinglist}; or none."`

	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (memoriesUpdate) Help() string {
	return `Examples:

    memsidecar memories update -u alice mem_ixmff34jmcga2cmhdf6jbmhr --importance 0.9
    memsidecar memories update -u alice mem_ixmff34jmcga2cmhdf6jbmhr --text "The user is allergic to nuts."
    memsidecar memories update -u alice mem_ixmff34jmcga2cmhdf6jbmhr --standing safety`
}

// Run changes the given fields and shows the memory.
func (c memoriesUpdate) Run(ctx context.Context, p *Program) error {
	scope, err := c.readScope()
	if err != nil {
		return err
	}
	request := &memsidecarv1.UpdateMemoryRequest{Scope: scope, Memory: &memsidecarv1.Memory{Id: c.ID}, UpdateMask: &fieldmaskpb.FieldMask{}}
	change := func(field string) { request.UpdateMask.Paths = append(request.UpdateMask.Paths, field) }
	if c.Text != nil {
		request.Memory.Text = *c.Text
		change("text")
	}
	if c.Kind != "" {
		request.Memory.Kind = memsidecarv1.MemoryKind(valueOf(memsidecarv1.MemoryKind_value, kindPrefix, c.Kind))
		change("kind")
	}
	if c.Importance != nil {
		request.Memory.Importance = c.Importance
		change("importance")
	}
	if c.Standing != "" { // "none" is the zero value
		request.Memory.Standing = memsidecarv1.Standing(valueOf(memsidecarv1.Standing_value, standingPrefix, c.Standing))
		change("standing")
	}
	if len(request.GetUpdateMask().GetPaths()) == 0 {
		return usage("say what to change with --text, --kind, --importance or --standing")
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.UpdateMemory(ctx, request)
	if err != nil {
		return err
	}
	return c.show(p, resp.GetMemory(), func(s *screen) { s.memory(resp.GetMemory()) })
}

type memoriesDelete struct {
	ID []string `arg:"" help:"The memories' ids."`

	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (memoriesDelete) Help() string {
	return `The consideration that created a memory does not create it again. With --json every line is the id of a memory.

Examples:

    memsidecar memories delete -u alice mem_ixmff34jmcga2cmhdf6jbmhr`
}

// Run deletes the memories one by one.
func (c memoriesDelete) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	return each(c.ID, func(id string) error {
		if _, err := conn.DeleteMemory(ctx, &memsidecarv1.DeleteMemoryRequest{Scope: scope, MemoryId: id}); err != nil {
			return err
		}
		return c.show(p, &memsidecarv1.Memory{Id: id}, func(s *screen) { s.say("deleted %s\n", line(id)) })
	})
}
