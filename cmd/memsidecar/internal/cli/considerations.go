package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type considerationsCommands struct {
	List  considerationsList  `cmd:"" help:"List a user's considerations, newest first."`
	Get   considerationsGet   `cmd:"" help:"Show the outcome of one dialogue."`
	Retry considerationsRetry `cmd:"" help:"Try failed or pending considerations again now."`
}

type considerationsList struct {
	State []string `enum:"${states}" placeholder:"STATE" help:"Only in these states: ${statelist}."`

	pages
	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (considerationsList) Help() string {
	return `With --json every line is one consideration.

Examples:

    memsidecar considerations list -u alice
    memsidecar considerations list -u alice --state pending,failed`
}

// Run lists considerations.
func (c considerationsList) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	request := &memsidecarv1.ListConsiderationsRequest{Scope: scope}
	for _, state := range c.State {
		request.States = append(
			request.States,
			memsidecarv1.ConsiderationState(valueOf(memsidecarv1.ConsiderationState_value, statePrefix, state)),
		)
	}
	t := &table{
		columns: []column{
			{name: "id"},
			{name: "state"},
			{name: "accepted"},
			{name: "messages", right: true},
			{name: "attempts", right: true},
			{name: "why", wraps: true},
		},
	}
	list := listing[*memsidecarv1.Consideration]{
		table: t,
		page: func(size int32, token string) ([]*memsidecarv1.Consideration, string, error) {
			request.PageSize, request.PageToken = size, token
			resp, err := conn.ListConsiderations(ctx, request)
			return resp.GetConsiderations(), resp.GetNextPageToken(), err
		},
		row: func(one *memsidecarv1.Consideration) []any {
			return []any{
				one.GetId(), stateCell(one.GetState()), date(one.GetCreateTime()), one.GetMessageCount(), one.GetAttemptCount(),
				cmp.Or(one.GetError(), one.GetReason()),
			}
		},
	}
	return list.show(p, c.pages, c.output)
}

func stateCell(state memsidecarv1.ConsiderationState) cell {
	looks := map[memsidecarv1.ConsiderationState]style{
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_REMEMBERED: green,
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED:    dim,
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_PENDING:    yellow,
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_RUNNING:    yellow,
		memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED:     red,
	}
	return cell{stateName(state), looks[state]}
}

type considerationsGet struct {
	ID string `arg:"" help:"The consideration's id."`

	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (considerationsGet) Help() string {
	return `Examples:

    memsidecar considerations get -u alice con_01a1faee-a5c8-7b54-bff9-33f04e555976`
}

// Run shows the consideration.
func (c considerationsGet) Run(ctx context.Context, p *Program) error {
	resp, err := ask(p, c.calls, c.readScope, func(conn *connection, scope *memsidecarv1.Scope) (*memsidecarv1.GetConsiderationResponse, error) {
		return conn.GetConsideration(ctx, &memsidecarv1.GetConsiderationRequest{Scope: scope, ConsiderationId: c.ID})
	})
	if err != nil {
		return err
	}
	return c.show(p, resp.GetConsideration(), func(s *screen) { s.consideration(resp.GetConsideration()) })
}

func (s *screen) consideration(c *memsidecarv1.Consideration) {
	s.fields(
		"id", c.GetId(), "state", stateCell(c.GetState()), "because", c.GetReason(), "error", cell{c.GetError(), red},
		"channel", channelName(c.GetScope()), "agent", c.GetScope().GetAgentId(), "session", c.GetScope().GetSessionId(),
		"messages", c.GetMessageCount(), "attempts", c.GetAttemptCount(), "next attempt", date(c.GetNextAttemptTime()),
		"accepted", date(c.GetCreateTime()), "changed", date(c.GetUpdateTime()), "decided by", c.GetDecidedBy(),
		"rules because", c.GetFallbackReason(), "not done", strings.Join(c.GetDroppedChanges(), "; "),
	)
	if c.GetForgetEverything() {
		s.fields("forget everything", "yes")
	}
	s.changes(c.GetChanges())
}

// changes describes the changes of memories.
func (s *screen) changes(changes []*memsidecarv1.MemoryChange) {
	if len(changes) == 0 {
		return
	}
	s.say("\n")
	t := &table{columns: []column{{name: "done"}, {name: "memory"}, {name: "text", wraps: true}}}
	if slices.ContainsFunc(changes, func(c *memsidecarv1.MemoryChange) bool {
		return c.GetReason() != "" || len(c.GetRelatedMemoryIds()) > 0
	}) {
		t.columns = append(t.columns, column{name: "concerns"}, column{name: "why", wraps: true})
	}
	for _, change := range changes {
		row := []any{nameOf(change.GetAction().String(), "MEMORY_ACTION_"), change.GetMemoryId(), change.GetText()}
		if len(t.columns) > len(row) {
			row = append(row, strings.Join(change.GetRelatedMemoryIds(), ", "), cell{change.GetReason(), dim})
		}
		t.row(row...)
	}
	s.print(t)
}

type considerationsRetry struct {
	ID []string `arg:"" help:"The considerations' ids."`

	place
	calls
	output
}

// Help implements kong.HelpProvider.
func (considerationsRetry) Help() string {
	return `A failed consideration becomes pending again. A postponed one becomes due now, after earlier ones of the same user.
While the model's provider is unavailable, both wait until its circuit breaker admits a call.

Examples:

    memsidecar considerations list -u alice --state failed,pending --json | jq -r .id |
      xargs memsidecar considerations retry -u alice`
}

// Run makes the considerations pending again, or due.
func (c considerationsRetry) Run(ctx context.Context, p *Program) error {
	scope, conn, err := c.reach(p, c.readScope)
	if err != nil {
		return err
	}
	defer conn.close()
	return each(c.ID, func(id string) error {
		resp, err := conn.RetryConsideration(ctx, &memsidecarv1.RetryConsiderationRequest{Scope: scope, ConsiderationId: id})
		if err != nil {
			return err
		}
		return c.show(p, resp.GetConsideration(), func(s *screen) {
			state := stateCell(resp.GetConsideration().GetState())
			s.say("%s is %s\n", line(id), s.paint(state.text, state.style))
		})
	})
}
