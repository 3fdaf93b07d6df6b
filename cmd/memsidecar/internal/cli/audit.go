package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type auditCommand struct {
	Limit     int      `default:"20" placeholder:"N" help:"Show the N users with the most doubtful memories, 0 to 200 (${default}). The total counts all users."`
	Examples  int      `default:"3" placeholder:"N" help:"Show at most N examples of each finding and user, 0 to 20 (${default})."`
	FailAbove *float64 `placeholder:"SHARE" help:"Exit with 1 when a larger share of the active memories is doubtful, 0 to 1. For monitoring."`

	person
	sidecarFlag
	output
}

// Help implements kong.HelpProvider.
func (auditCommand) Help() string {
	return `Counts the memories of a namespace, or of one user: active ones, history, duplicates, likely junk, stale ones, and ones without
support in a message. Duplicates, near duplicates and junk are doubtful. The command only reads. It shows what is stored about
users, so it needs an admin token. With --json every line is a user, and the last line is the total.

Examples:

    memsidecar audit
    memsidecar audit -u alice --examples 20
    memsidecar audit --limit 0 --fail-above 0.2
    memsidecar audit --json | jq -r '.user.examples[]? | select(.finding == "AUDIT_FINDING_JUNK") | .text'`
}

// Run audits and shows the findings.
func (c auditCommand) Run(ctx context.Context, p *Program) error {
	if c.FailAbove != nil && (*c.FailAbove < 0 || *c.FailAbove > 1) {
		return usage("--fail-above %g: write a share of 0 to 1, for example 0.2", *c.FailAbove)
	}
	conn, err := c.dial(p, 0)
	if err != nil {
		return err
	}
	defer conn.close()
	users, examples := int32(min(c.Limit, maxPage)), int32(min(c.Examples, maxPage)) //nolint:gosec // what is out of range is refused
	stream, err := conn.AuditMemories(ctx, &memsidecarv1.AuditMemoriesRequest{Scope: c.optionalScope(), MaxUsers: &users, MaxExamples: &examples})
	if err != nil {
		return err
	}
	worst, total, err := c.receive(p, stream)
	if err != nil {
		return err
	}
	if total.GetUserCount() == 0 {
		p.note("nothing is stored")
	}
	if !c.JSON {
		s := c.screen(p)
		s.auditTotal(total)
		s.auditUsers(worst)
		s.auditExamples(worst)
	}
	if share := total.GetDoubtfulShare(); c.FailAbove != nil && share > *c.FailAbove {
		return failure("%.1f %% of the active memories are doubtful, more than the %g %% of --fail-above", 100*share, 100**c.FailAbove)
	}
	return nil
}

// auditStream is the stream of answers.
type auditStream interface {
	Recv() (*memsidecarv1.AuditMemoriesResponse, error)
}

// receive shows the progress, and with --json the records.
func (c auditCommand) receive(p *Program, stream auditStream) (users []*memsidecarv1.MemoryAudit, total *memsidecarv1.MemoryAudit, err error) {
	bar := p.progress(-1, "memories")
	defer func() { err = errors.Join(err, bar.Finish()) }()
	for {
		record, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return users, total, nil
		}
		if err != nil {
			return nil, nil, err
		}
		switch r := record.GetRecord().(type) {
		case *memsidecarv1.AuditMemoriesResponse_Progress:
			if err := bar.Set64(r.Progress.GetMemoryCount()); err != nil {
				return nil, nil, err
			}
			continue
		case *memsidecarv1.AuditMemoriesResponse_User:
			users = append(users, r.User)
		case *memsidecarv1.AuditMemoriesResponse_Total:
			total = r.Total
		}
		if c.JSON {
			if err := c.json(p, record); err != nil {
				return nil, nil, err
			}
		}
	}
}

func (s *screen) auditTotal(a *memsidecarv1.MemoryAudit) {
	doubtful := cell{fmt.Sprintf("%d of %d (%.0f %%)", a.GetDoubtfulCount(), a.GetActiveCount(), 100*a.GetDoubtfulShare()), green}
	if a.GetDoubtfulCount() > 0 {
		doubtful.style = yellow
	}
	s.fields(
		"users", a.GetUserCount(), "active", a.GetActiveCount(),
		"history", fmt.Sprintf("%d superseded, %d expired, %d withdrawn", a.GetSupersededCount(), a.GetExpiredCount(), a.GetWithdrawnCount()),
		"quarantined", number(a.GetQuarantinedCount()), "duplicates", number(a.GetDuplicateCount()),
		"near duplicates", number(a.GetNearDuplicateCount()), "junk", number(a.GetJunkCount()), "doubtful", doubtful,
		"stale", a.GetStaleCount(), "unsupported", a.GetUnsupportedCount(), "without vector", a.GetWithoutVectorCount(),
		"also in other channels", a.GetElsewhereCount(), "cut", cell{a.GetCutReason(), yellow},
	)
}

// number is a count that should be 0.
func number(n int64) cell {
	if n == 0 {
		return cell{"0", ""}
	}
	return cell{fmt.Sprint(n), yellow}
}

func (s *screen) auditUsers(users []*memsidecarv1.MemoryAudit) {
	if len(users) == 0 {
		return
	}
	t := &table{columns: []column{{name: "user"}}}
	for _, name := range []string{"active", "history", "quarantined", "duplicates", "near", "junk", "doubtful", "stale"} {
		t.columns = append(t.columns, column{name: name, right: true})
	}
	for _, a := range users {
		t.row(a.GetUserId(), a.GetActiveCount(), a.GetSupersededCount()+a.GetExpiredCount()+a.GetWithdrawnCount(),
			number(a.GetQuarantinedCount()), number(a.GetDuplicateCount()), number(a.GetNearDuplicateCount()), number(a.GetJunkCount()),
			fmt.Sprintf("%.0f %%", 100*a.GetDoubtfulShare()), a.GetStaleCount())
	}
	s.say("\n")
	s.print(t)
	for _, a := range users {
		if a.GetCutReason() != "" {
			s.say("%s: %s\n", line(a.GetUserId()), line(a.GetCutReason()))
		}
	}
}

// remedies are the advice for findings.
var remedies = []struct {
	findings []memsidecarv1.AuditFinding
	remedy   string
}{
	{
		[]memsidecarv1.AuditFinding{
			memsidecarv1.AuditFinding_AUDIT_FINDING_JUNK, memsidecarv1.AuditFinding_AUDIT_FINDING_DUPLICATE,
			memsidecarv1.AuditFinding_AUDIT_FINDING_NEAR_DUPLICATE, memsidecarv1.AuditFinding_AUDIT_FINDING_STALE,
		},
		"delete unwanted memories: memsidecar memories delete -u USER MEMORY…",
	},
	{
		[]memsidecarv1.AuditFinding{memsidecarv1.AuditFinding_AUDIT_FINDING_QUARANTINED},
		"release correct memories: memsidecar memories release -u USER MEMORY…",
	},
	{
		[]memsidecarv1.AuditFinding{memsidecarv1.AuditFinding_AUDIT_FINDING_UNSUPPORTED},
		"show the source: memsidecar memories get -u USER MEMORY; show the changes: memsidecar memories revisions -u USER MEMORY",
	},
	{
		[]memsidecarv1.AuditFinding{memsidecarv1.AuditFinding_AUDIT_FINDING_WITHOUT_VECTOR},
		"vectors are computed in the background; show the progress: memsidecar status",
	},
}

// auditExamples shows the examples and the remedies.
func (s *screen) auditExamples(users []*memsidecarv1.MemoryAudit) {
	t := &table{columns: []column{{name: "finding"}, {name: "user"}, {name: "memory"}, {name: "text", wraps: true}, {name: "why", wraps: true}}}
	shown := map[memsidecarv1.AuditFinding]bool{}
	for _, a := range users {
		for _, e := range a.GetExamples() {
			shown[e.GetFinding()] = true
			why := e.GetReason()
			if e.GetOtherMemoryId() != "" {
				why += fmt.Sprintf(": %s %s", e.GetOtherMemoryId(), e.GetOtherText())
			}
			t.row(nameOf(e.GetFinding().String(), "AUDIT_FINDING_"), a.GetUserId(), e.GetMemoryId(), e.GetText(), cell{why, dim})
		}
	}
	if len(t.rows) == 0 {
		return
	}
	s.say("\n")
	s.print(t)
	s.say("\n")
	for _, r := range remedies {
		if slices.ContainsFunc(r.findings, func(f memsidecarv1.AuditFinding) bool { return shown[f] }) {
			s.say("%s\n", r.remedy)
		}
	}
}
