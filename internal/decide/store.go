package decide

import (
	"context"
	"fmt"
	"strconv"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/span"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// embed adds the vectors of the statements that may be stored and have none yet.
func (c *Considerer) embed(ctx context.Context, p *plan) error {
	embeddings := make([]vectorstore.Embedding, len(p.Statements))
	copy(embeddings, p.embeddings)
	var texts []string
	var missing []int
	for i, s := range p.Statements {
		if !s.Forget && embeddings[i].Fingerprint == "" && s.Text != "" {
			texts, missing = append(texts, s.Text), append(missing, i)
		}
	}
	if len(texts) > 0 {
		embedding, end := span.Start(ctx, "embed")
		made, err := c.Vectors.Embeddings(embedding, texts)
		end(err)
		if err != nil {
			return err
		}
		for k, i := range missing {
			embeddings[i] = made[k]
		}
	}
	p.embeddings = embeddings
	return nil
}

// entry returns how the store applies a statement; ok is false when there is nothing to store.
func (r Resolution) entry(e vectorstore.Entry) (_ vectorstore.Entry, ok bool) {
	e.Reason = r.Reason
	switch r.Action {
	case TreatSame:
		e.SameAs = r.Targets[0]
	case TreatSupersede:
		e.Supersedes = r.Targets
	case TreatOutdated:
		e.Memory.SupersededBy = r.Targets[0]
	case TreatWithdraw:
		e.Withdraws = r.Targets
		return e, len(r.Targets) > 0
	case TreatAdd:
	}
	return e, true
}

// change describes for the outcome what was done with a statement.
func (r Resolution) change(s memory.Statement, a vectorstore.Applied) memory.MemoryChange {
	change := memory.MemoryChange{MemoryID: a.Memory.ID, Action: a.Action, Text: s.Text, Related: a.Related}
	switch a.Action {
	case memory.ActionReinforced, memory.ActionUpdated, memory.ActionOutdated, memory.ActionWithdrawn:
		change.Reason = r.Reason
		if a.Action == memory.ActionWithdrawn && change.MemoryID == "" {
			change.Action, change.Reason = memory.ActionNotFound, "no existing memory says it"
		}
	case memory.ActionQuarantined:
		change.Reason = s.Quarantine
	default: // the target was deleted
	}
	return change
}

// onlyWithdrawn is a note for the reason when the dialogue only withdrew memories.
func onlyWithdrawn(statements []memory.Statement, changes []memory.MemoryChange) string {
	withdrawn := map[string]bool{}
	for i, change := range changes {
		if !statements[i].Forget {
			return ""
		}
		for _, id := range append(change.Related, change.MemoryID) {
			if id != "" {
				withdrawn[id] = true
			}
		}
	}
	switch len(withdrawn) {
	case 0:
		return "; it matches no existing memory, so nothing was withdrawn"
	case 1:
		return "; nothing was remembered, and one memory was withdrawn"
	}
	return fmt.Sprintf("; nothing was remembered, and %d memories were withdrawn", len(withdrawn))
}

// remembered passes the results to the digests, except requests to forget.
func (c *Considerer) remembered(ctx context.Context, job queue.Job, p plan, changes []memory.MemoryChange) error {
	if c.Digests == nil {
		return nil
	}
	r := Remembered{ConsiderationID: job.Consideration.ID, Scope: job.Consideration.Scope, DecidedBy: p.DecidedBy}
	for i, s := range p.Statements {
		if !s.Forget {
			r.Statements = append(r.Statements, s)
			r.Changes = append(r.Changes, changes[i])
		}
	}
	if len(r.Statements) == 0 {
		return nil
	}
	return c.Digests.Remembered(ctx, r)
}

// statementMemoryID is the id of the memory made of a consideration's statement.
func statementMemoryID(job queue.Job, number int) string {
	return MemoryID(job.Consideration.ID, job.Consideration.Scope.UserID, strconv.Itoa(number))
}
