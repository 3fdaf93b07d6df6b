package decide

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const (
	opPrefix   = "op#"
	opExcluded = OpAction("")
)

// OpID refers in Op.IDs to the memory that an earlier op of the same extraction adds.
func OpID(number int) string { return opPrefix + strconv.Itoa(number) }

// settleOps turns the ops into the statements of a plan and how each is stored. Each op is checked alone: one that cannot be applied is
// dropped, and the plan says why.
func (c *Considerer) settleOps(ctx context.Context, job queue.Job, t Transcript, ops []Op, p *plan) error {
	b := planBuilder{job: job, plan: p, at: map[string]int{}}
	for i, op := range ops {
		if op.Action == opExcluded {
			continue
		}
		if op.Action == OpForget && slices.Contains(op.IDs, Everything) {
			ids, err := c.everything(ctx, job, t)
			if err != nil {
				return err
			}
			op.IDs = ids
			p.Everything = true
		}
		b.add(i, op)
	}
	return nil
}

// everything lists the ids of all memories that the dialogue may change.
func (c *Considerer) everything(ctx context.Context, job queue.Job, t Transcript) (ids []string, err error) {
	query := vectorstore.ListQuery{Filter: filterAt(t), Limit: 1000}
	query.Filter.At = c.options.Now()
	for more := true; more; more = query.After != "" {
		page, err := c.Memories.List(ctx, job.User(), query)
		if err != nil {
			return nil, err
		}
		for i := range page.Memories {
			ids = append(ids, page.Memories[i].ID)
		}
		query.After = page.Next
	}
	return ids, nil
}

// planBuilder adds ops to a plan.
type planBuilder struct {
	job  queue.Job
	plan *plan
	at   map[string]int // op ids to statements
}

func (b *planBuilder) add(number int, op Op) {
	r := Resolution{Reason: op.Reason}
	action := op.Action
	if op.Statement.Quarantine != "" && action != OpForget {
		action, op.IDs = OpAdd, nil // what is not trusted changes nothing
	}
	why := ""
	r.Targets, action = b.targets(op, action)
	switch action {
	case OpAdd:
		r.Action, r.Targets, r.Reason = TreatAdd, nil, ""
	case OpUpdate:
		r.Action = TreatSupersede
		if op.History {
			r.Action, r.Targets = TreatOutdated, r.Targets[:1]
		}
	case OpSame:
		r.Action, r.Targets = TreatSame, r.Targets[:1]
	case OpForget:
		r.Action, op.Statement.Forget = TreatWithdraw, true
	default:
		why = "its action " + strconv.Quote(string(op.Action)) + " is unknown"
	}
	if why == "" && action != OpForget {
		if problem := memory.TextProblem(op.Statement.Text); problem != "" {
			why = "its text " + problem
		}
	}
	if why != "" {
		b.plan.Dropped = append(b.plan.Dropped, string(op.Action)+": "+why)
		return
	}
	b.at[OpID(number)] = len(b.plan.Statements)
	b.plan.Statements = append(b.plan.Statements, op.Statement)
	b.plan.Resolutions = append(b.plan.Resolutions, r)
	b.plan.embeddings = append(b.plan.embeddings, op.Embedding)
}

// targets returns the ids of the memories that the op concerns. Those of earlier ops are the memories that these become or repeat. An op
// that replaces or repeats a memory that is not there is a new statement.
func (b *planBuilder) targets(op Op, action OpAction) (ids []string, _ OpAction) {
	for _, id := range op.IDs {
		if !strings.HasPrefix(id, opPrefix) {
			ids = append(ids, id)
			continue
		}
		k, ok := b.at[id]
		if !ok {
			continue
		}
		switch r := b.plan.Resolutions[k]; r.Action {
		case TreatAdd, TreatSupersede:
			ids = append(ids, statementMemoryID(b.job, k))
		case TreatSame:
			ids = append(ids, r.Targets[0])
		case TreatOutdated, TreatWithdraw:
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > 0 || action == OpAdd || action == OpForget {
		return ids, action
	}
	return nil, OpAdd
}
