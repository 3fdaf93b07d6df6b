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

// settleOps turns the ops into the statements of the batch's plans and how each is stored. Each op is checked alone: one that cannot be
// applied is dropped, and the plan says why.
func (c *Considerer) settleOps(ctx context.Context, of batch, t Transcript, ops []Op, plans []plan) error {
	b := planBuilder{batch: of, plans: plans, at: map[string]place{}, touched: map[string]int{}}
	for i, op := range ops {
		if op.Action == opExcluded {
			continue
		}
		if op.Action == OpForget && slices.Contains(op.IDs, Everything) {
			ids, err := c.everything(ctx, of.jobs[0], t)
			if err != nil {
				return err
			}
			if len(of.jobs) > 1 { // also what the dialogues before it add
				for k := range i {
					ids = append(ids, OpID(k))
				}
			}
			op.IDs = ids
			plans[b.jobOf(t, op)].Everything = true
		}
		b.add(i, b.jobOf(t, op), op)
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

// place is a statement in the plans of a batch.
type place struct{ job, statement int }

// planBuilder adds ops to the plans of a batch.
type planBuilder struct {
	batch   batch
	plans   []plan
	at      map[string]place // of op ids
	touched map[string]int   // memories to the last job that changes them
}

// jobOf returns the job of an op: the one with the last new message that it cites, else the newest. An op that changes what an earlier op
// added or changed is not applied before that.
func (b *planBuilder) jobOf(t Transcript, op Op) int {
	job := b.batch.jobOf(t, op.Statement)
	for _, id := range op.IDs {
		job = max(job, b.at[id].job, b.touched[id])
	}
	return job
}

func (b *planBuilder) add(number, job int, op Op) {
	plan := &b.plans[job]
	op.Statement.MessageIDs = b.batch.refsOf(job, op.Statement.MessageIDs)
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
		plan.Dropped = append(plan.Dropped, string(op.Action)+": "+why)
		return
	}
	b.at[OpID(number)] = place{job, len(plan.Statements)}
	for _, id := range r.Targets {
		b.touched[id] = job
	}
	plan.Statements = append(plan.Statements, op.Statement)
	plan.Resolutions = append(plan.Resolutions, r)
	plan.embeddings = append(plan.embeddings, op.Embedding)
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
		switch r := b.plans[k.job].Resolutions[k.statement]; r.Action {
		case TreatAdd, TreatSupersede:
			ids = append(ids, statementMemoryID(b.batch.jobs[k.job], k.statement))
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
