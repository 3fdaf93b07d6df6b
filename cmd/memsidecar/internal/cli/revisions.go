package cli

import (
	"context"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// memoryStateCell describes a memory's state.
func memoryStateCell(m *memsidecarv1.Memory) cell {
	looks := map[memsidecarv1.MemoryState]style{
		memsidecarv1.MemoryState_MEMORY_STATE_ACTIVE:      green,
		memsidecarv1.MemoryState_MEMORY_STATE_SUPERSEDED:  dim,
		memsidecarv1.MemoryState_MEMORY_STATE_EXPIRED:     dim,
		memsidecarv1.MemoryState_MEMORY_STATE_QUARANTINED: yellow,
		memsidecarv1.MemoryState_MEMORY_STATE_WITHDRAWN:   red,
	}
	if m.GetState() == memsidecarv1.MemoryState_MEMORY_STATE_UNSPECIFIED {
		return cell{} // deleted, or from an older sidecar without states
	}
	return cell{nameOf(m.GetState().String(), memoryStatePrefix), looks[m.GetState()]}
}

// validity returns the period in which a memory holds.
func validity(m *memsidecarv1.Memory) string {
	from, to := date(m.GetValidStartTime()), date(m.GetValidEndTime())
	if to == "" {
		return "since " + from
	}
	return strings.TrimSpace(from + " to " + to)
}

type memoriesRevisions struct {
	ID string `arg:"" help:"The memory's id."`

	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (memoriesRevisions) Help() string {
	return `Lists the changes of the memory, of memories that it replaced, and of memories that replaced it, newest first. With --json
every line is one change.

Examples:

    memsidecar memories revisions -u alice mem_ixmff34jmcga2cmhdf6jbmhr`
}

// Run lists the changes.
func (c memoriesRevisions) Run(ctx context.Context, p *Program) error {
	resp, err := ask(p, c.calls, c.readScope, func(conn *connection, scope *memsidecarv1.Scope) (*memsidecarv1.ListMemoryRevisionsResponse, error) {
		return conn.ListMemoryRevisions(ctx, &memsidecarv1.ListMemoryRevisionsRequest{Scope: scope, MemoryId: c.ID})
	})
	if err != nil {
		return err
	}
	t := &table{columns: []column{
		{name: "revision"}, {name: "when"}, {name: "done"}, {name: "memory"}, {name: "text", wraps: true}, {name: "before", wraps: true}, {name: "why", wraps: true},
	}}
	list := listing[*memsidecarv1.MemoryRevision]{
		table: t,
		row: func(r *memsidecarv1.MemoryRevision) []any {
			done := cell{changeName(r), ""}
			if r.GetReverted() {
				done = cell{done.text + " (undone)", dim}
			}
			return []any{r.GetId(), date(r.GetCreateTime()), done, r.GetMemory().GetId(), r.GetMemory().GetText(), cell{previousText(r), dim}, cell{r.GetReason(), dim}}
		},
	}
	return list.showAll(p, c.output, resp.GetRevisions())
}

func changeName(r *memsidecarv1.MemoryRevision) string {
	return nameOf(r.GetChange().String(), "MEMORY_REVISION_CHANGE_")
}

// previousText returns what the change replaced: another memory, or the memory's earlier text.
func previousText(r *memsidecarv1.MemoryRevision) string {
	was := r.GetPrevious()
	switch {
	case was == nil:
		return ""
	case was.GetId() != r.GetMemory().GetId():
		return was.GetId() + " " + was.GetText()
	case was.GetText() != r.GetMemory().GetText():
		return was.GetText()
	}
	return memoryStateCell(was).text
}

type memoriesRevert struct {
	ID       string `arg:"" help:"The memory's id, or that of a memory that it replaced."`
	Revision string `placeholder:"ID" help:"The change to undo, from memories revisions. If it is not the newest one, nothing is undone."`

	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (memoriesRevert) Help() string {
	return `Undoes the newest change that was not undone yet. A superseded memory becomes active again and its replacement is withdrawn;
an edited memory gets its earlier text; a withdrawn memory is restored.

Examples:

    memsidecar memories revert -u alice mem_ixmff34jmcga2cmhdf6jbmhr`
}

// Run undoes the change and shows the memory as it is afterwards.
func (c memoriesRevert) Run(ctx context.Context, p *Program) error {
	resp, err := ask(p, c.calls, c.readScope, func(conn *connection, scope *memsidecarv1.Scope) (*memsidecarv1.RevertMemoryResponse, error) {
		return conn.RevertMemory(ctx, &memsidecarv1.RevertMemoryRequest{Scope: scope, MemoryId: c.ID, RevisionId: c.Revision})
	})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) {
		s.say("undone: %s of %s\n", changeName(resp.GetReverted()), date(resp.GetReverted().GetCreateTime()))
		s.memory(resp.GetMemory())
	})
}

type memoriesRelease struct {
	ID []string `arg:"" help:"The memories' ids."`

	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (memoriesRelease) Help() string {
	return `Retrieve finds released memories. With --json every line is one memory.

Examples:

    memsidecar memories list -u alice --state quarantined
    memsidecar memories release -u alice mem_ixmff34jmcga2cmhdf6jbmhr`
}

func (c memoriesRelease) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	return each(c.ID, func(id string) error {
		resp, err := conn.ReleaseMemory(ctx, &memsidecarv1.ReleaseMemoryRequest{Scope: scope, MemoryId: id})
		if err != nil {
			return err
		}
		return c.show(p, resp.GetMemory(), func(s *screen) { s.say("released %s\n", line(id)) })
	})
}
