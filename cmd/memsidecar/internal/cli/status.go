package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type statusCommand struct {
	Days int `placeholder:"N" help:"Also show the costs of models on the last N days, 1 to 31, including today."`

	person
	calls
	output
}

// Help implements kong.HelpProvider.
func (statusCommand) Help() string {
	return `Shows the queue, costs, budgets and quotas of the namespace; with --user also those of that user.

Examples:

    memsidecar status
    memsidecar status --days 7
    memsidecar status --json | jq -e '[.storage.component, .models.components[]] | all(.breaker != "BREAKER_STATE_OPEN")'`
}

// Run shows the status.
func (c statusCommand) Run(ctx context.Context, p *Program) error {
	if c.Days < 0 || c.Days > 31 {
		return usage("--days %d: use 1 to 31", c.Days)
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.GetStatus(ctx, &memsidecarv1.GetStatusRequest{Scope: c.optionalScope(), UsageDays: int32(c.Days)})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) { s.status(conn.addr, resp) })
}

func queueCell(q *memsidecarv1.QueueStatus) cell {
	if q == nil {
		return cell{"unknown while storage is unavailable", red}
	}
	c := cell{fmt.Sprintf("%d pending, %d failed", q.GetPendingCount(), q.GetFailedCount()), ""}
	if q.GetOldestPendingTime() != nil {
		c.text += ", the oldest since " + date(q.GetOldestPendingTime())
	}
	if q.GetFailedCount() > 0 {
		c.style = yellow
	}
	return c
}

// totalCell returns how much of the limit for all pending considerations is used: yellow near the limit, red at the limit.
func totalCell(q *memsidecarv1.QueueTotal) cell {
	if q == nil {
		return cell{}
	}
	mib := func(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
	c := cell{text: fmt.Sprint(q.GetPendingCount())}
	if most := q.GetMaxPendingCount(); most > 0 {
		c.text += fmt.Sprintf(" of at most %d", most)
	}
	c.text += " pending, " + mib(q.GetPendingBytes())
	if most := q.GetMaxPendingBytes(); most > 0 {
		c.text += " of at most " + mib(most)
	}
	taken := max(share(q.GetPendingCount(), q.GetMaxPendingCount()), share(q.GetPendingBytes(), q.GetMaxPendingBytes()))
	switch {
	case taken >= 1:
		c.text, c.style = c.text+": more is refused", red
	case taken >= 0.8:
		c.style = yellow
	}
	return c
}

// share returns the used part of a limit; 0 is no limit.
func share(used, limit int64) float64 {
	if limit == 0 {
		return 0
	}
	return float64(used) / float64(limit)
}

func fullCell(limit *memsidecarv1.MemoriesStatus) cell {
	if limit.GetFullUserCount() == 0 {
		return cell{}
	}
	return cell{fmt.Sprintf("users with %d explicit memories or more: %d; explicit memories are not evicted, other memories of these users are",
		limit.GetMaxPerUser(), limit.GetFullUserCount()), yellow}
}

func (s *screen) status(addr string, r *memsidecarv1.GetStatusResponse) {
	progress := cell{}
	if at := r.GetModels().GetEmbeddingProgress(); at != nil {
		progress = cell{fmt.Sprintf("%d of %d memories have vectors", at.GetDoneCount(), at.GetTotalCount()), yellow}
		if n := at.GetRefusedCount(); n > 0 {
			progress.text += fmt.Sprintf(", %d are refused by the model", n)
		}
		if problem := at.GetProblem(); problem != "" {
			progress = cell{progress.text + ": " + problem, red}
		}
	}
	s.fields("address", addr, "version", r.GetProcess().GetVersion(), "started", date(r.GetProcess().GetStartTime()),
		"embedding", cmp.Or(r.GetModels().GetEmbeddingFingerprint(), "unknown"), "re-embedding", progress,
		"queue", queueCell(r.GetQueue()), "all namespaces", totalCell(r.GetQueue().GetTotal()), "full", fullCell(r.GetMemories()))
	if since := r.GetStorage().GetPurgePendingSinceTime(); since != nil {
		s.say("%s\n", s.paint("deleted data is not purged from the files yet, since "+date(since), yellow))
	}

	s.say("\n")
	t := &table{columns: []column{{name: "part"}, {name: "by"}, {name: "state"}, {name: "remote"}, {name: "why", wraps: true}}}
	for _, c := range slices.Concat([]*memsidecarv1.ComponentStatus{r.GetStorage().GetComponent()}, r.GetModels().GetComponents()) {
		why := cmp.Or(c.GetReason(), c.GetChoice())
		if c.GetReason() != "" && c.GetSinceTime() != nil {
			why = "since " + date(c.GetSinceTime()) + ": " + why
		}
		state := breakerCell(c.GetBreaker())
		if c.GetFallback() != "" {
			why = c.GetFallback()
			if c.GetBreaker() == memsidecarv1.BreakerState_BREAKER_STATE_CLOSED {
				state = cell{"budget", yellow}
			}
		}
		t.row(c.GetName(), c.GetImplementation(), state, yesNo(c.GetRemote()), why)
	}
	s.print(t)

	s.quotas(r.GetQuotas())
	s.budgets(r.GetUsage().GetTokenBudgets())
	if days := r.GetUsage().GetDays(); len(days) > 0 {
		for _, day := range days {
			s.usage(day.GetDay(), day.GetModels(), day.GetCosts())
		}
		if costs := r.GetUsage().GetCosts(); len(costs) > 0 {
			s.say("\ntotal of these days: %s\n", costText(costs))
		}
		return
	}
	s.usage("today", r.GetUsage().GetToday().GetModels(), r.GetUsage().GetToday().GetCosts())
}

// breakerCell describes a component's state in a word. The breaker's own term "closed" would read as if the component did not work.
func breakerCell(state memsidecarv1.BreakerState) cell {
	switch state {
	case memsidecarv1.BreakerState_BREAKER_STATE_OPEN:
		return cell{"unavailable", red}
	case memsidecarv1.BreakerState_BREAKER_STATE_HALF_OPEN:
		return cell{"half open", yellow}
	case memsidecarv1.BreakerState_BREAKER_STATE_CLOSED:
		return cell{"ok", green}
	default:
		return cell{"embedded", green} // in this process: without a breaker
	}
}

type healthCommand struct {
	Service string `default:"" placeholder:"NAME" help:"The service to check: \"\" is the whole sidecar, storage its storage."`

	sidecarFlag
	Timeout time.Duration `group:"sidecar" default:"2s" placeholder:"DURATION" help:"Longest wait for the answer (${default})."`
	JSON    bool          `group:"output" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (healthCommand) Help() string {
	return `The exit code is 0 only if the status is SERVING. It calls the standard gRPC health service.

Examples:

    memsidecar health
    HEALTHCHECK CMD ["/memsidecar", "health"]`
}

// Run asks the sidecar whether it serves.
func (c healthCommand) Run(ctx context.Context, p *Program) error {
	conn, err := calls{c.sidecarFlag, c.Timeout}.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: c.Service})
	if isNotFound(err) {
		return &Error{Code: ExitNotFound, Message: fmt.Sprintf("the sidecar at %s has no service %q", conn.addr, c.Service), cause: err}
	}
	if err != nil {
		return err
	}
	if err := (output{JSON: c.JSON}).show(p, resp, func(s *screen) { s.say("%s\n", resp.GetStatus()) }); err != nil {
		return err
	}
	if resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return failure("the sidecar at %s answers calls, but is not serving", conn.addr)
	}
	return nil
}
