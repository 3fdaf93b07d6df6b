package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type statusCommand struct {
	namespaceFlag
	calls
	output
}

// Help has examples.
func (statusCommand) Help() string {
	return `The queue and the costs are those of the namespace.

Examples:

    memsidecar status
    memsidecar status --json | jq -e '.components | all(.breaker != "BREAKER_STATE_OPEN")'`
}

// Run shows the status.
func (c statusCommand) Run(ctx context.Context, p *Program) error {
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.GetStatus(ctx, &memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: c.Namespace}})
	if err != nil {
		return err
	}
	return c.show(p, resp, func(s *screen) { s.status(conn.addr, resp) })
}

func (s *screen) status(addr string, r *memsidecarv1.GetStatusResponse) {
	embedding := r.GetEmbedding()
	progress := cell{}
	if at := embedding.GetProgress(); at != nil {
		progress = cell{fmt.Sprintf("%d of %d memories have vectors", at.GetDoneCount(), at.GetTotalCount()), yellow}
		if n := at.GetRefusedCount(); n > 0 {
			progress.text += fmt.Sprintf(", %d are refused by the model", n)
		}
		if problem := at.GetProblem(); problem != "" {
			progress = cell{progress.text + ": " + problem, red}
		}
	}
	queue := cell{"unknown while storage is down", red}
	if q := r.GetQueue(); q != nil {
		queue = cell{fmt.Sprintf("%d waiting, %d failed", q.GetPendingCount(), q.GetFailedCount()), ""}
		if q.GetOldestPendingTime() != nil {
			queue.text += ", the oldest since " + date(q.GetOldestPendingTime())
		}
		if q.GetFailedCount() > 0 {
			queue.look = yellow
		}
	}
	s.fields("address", addr, "version", r.GetVersion(), "started", date(r.GetStartTime()),
		"embedding", cmp.Or(embedding.GetFingerprint(), "not known yet"), "re-embedding", progress, "queue", queue)

	s.say("\n")
	t := &table{columns: []column{{name: "part"}, {name: "by"}, {name: "state"}, {name: "remote"}, {name: "why", wraps: true}}}
	for _, c := range r.GetComponents() {
		why := cmp.Or(c.GetReason(), c.GetChoice())
		if c.GetReason() != "" && c.GetSinceTime() != nil {
			why = "since " + date(c.GetSinceTime()) + ": " + why
		}
		t.row(c.GetName(), c.GetImplementation(), breakerCell(c.GetBreaker()), yesNo(c.GetRemote()), why)
	}
	s.print(t)

	if len(r.GetUsageToday()) == 0 {
		return
	}
	s.say("\n")
	t = &table{columns: []column{
		{name: "today"},
		{name: "model"},
		{name: "calls", right: true},
		{name: "failed", right: true},
		{name: "tokens in", right: true},
		{name: "tokens out", right: true},
		{name: "mean time", right: true},
	}}
	for _, u := range r.GetUsageToday() {
		failed := cell{text: fmt.Sprint(u.GetFailureCount())}
		if u.GetFailureCount() > 0 {
			failed.look = yellow
		}
		t.row(u.GetPart(), u.GetModel(), u.GetCallCount(), failed, u.GetInputTokenCount(), u.GetOutputTokenCount(),
			u.GetMeanLatency().AsDuration().Round(time.Millisecond))
	}
	s.print(t)
}

// breakerCell says how a part is, in a word.
func breakerCell(state memsidecarv1.BreakerState) cell {
	switch state {
	case memsidecarv1.BreakerState_BREAKER_STATE_OPEN:
		return cell{"open", red}
	case memsidecarv1.BreakerState_BREAKER_STATE_HALF_OPEN:
		return cell{"half open", yellow}
	case memsidecarv1.BreakerState_BREAKER_STATE_CLOSED:
		return cell{"closed", green}
	default:
		return cell{"embedded", green} // inside the process: it cannot be away
	}
}

type healthCommand struct {
	Service string `default:"" placeholder:"NAME" help:"Which service: \"\" is the sidecar as a whole, storage its storage."`

	sidecarFlag
	Timeout time.Duration `group:"sidecar" default:"2s" placeholder:"DURATION" help:"How long to wait for the answer (${default})."`
	JSON    bool          `group:"output" help:"Answer with JSON."`
}

// Help has examples.
func (healthCommand) Help() string {
	return `The exit code is 0 only if it is SERVING. It asks the standard gRPC health service.

Examples:

    memsidecar health
    HEALTHCHECK CMD ["/memsidecar", "health"]`
}

// Run asks.
func (c healthCommand) Run(ctx context.Context, p *Program) error {
	conn, err := calls{c.sidecarFlag, c.Timeout}.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: c.Service})
	if notThere(err) {
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
