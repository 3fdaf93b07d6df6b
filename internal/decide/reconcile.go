package decide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/span"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

const (
	// nearby limits the results of one search for candidates.
	nearby = 8
	// probed limits the hits of a probe, before its filter.
	probed = 50
	// asked limits the memories that share words with a request to forget.
	asked = 50
)

// spelledAlike is the least spelling similarity worth a comparison: any two texts have some.
const spelledAlike = 0.25

const reconcileComponent = "reconcile" // what a trace calls it

// localProvider's vectors compare spelling, not meaning.
const localProvider = "local"

// reconcile fills in the plan's resolutions. When it fails, it saves the decision, so that the models are not asked for it again.
func (c *Considerer) reconcile(ctx context.Context, job queue.Job, p *plan) error {
	resolutions, note, err := c.resolve(ctx, job, p)
	if err == nil {
		p.Resolutions, p.Reason = resolutions, p.Reason+note
	} else if ctx.Err() != nil || job.Checkpoint != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	return errors.Join(inStage("reconciling", err), c.save(ctx, job, *p))
}

func inStage(stage string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", stage, err)
}

// resolve returns how each of the plan's statements is stored, and a note for the reason.
func (c *Considerer) resolve(ctx context.Context, job queue.Job, p *plan) (resolutions []Resolution, note string, err error) {
	if p.embeddings, err = c.embed(ctx, p.Statements); err != nil {
		return nil, "", err
	}
	if c.Reconciler == nil {
		return unresolved(p.Statements), "", nil
	}
	input := ReconcileInput{Claims: make([]Claim, len(p.Statements))}
	for i, s := range p.Statements {
		claim := Claim{MemoryID: statementMemoryID(job, i), Statement: s}
		if claim.Near, err = c.near(ctx, job, s, p.embeddings[i]); err != nil {
			return nil, "", err
		}
		input.Claims[i] = claim
	}
	resolutions, err = c.Reconciler.Reconcile(ctx, input)
	_, transient := errors.AsType[*memory.TransientError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case transient:
		return nil, "", err
	default: // a used-up budget or unusable answers must not lose the dialogue
		trace.Degrade(ctx, reconcileComponent, err.Error())
		note = "; compared with existing memories by rules: " + err.Error()
		if resolutions, err = c.ReconcileRules.Reconcile(ctx, input); err != nil {
			return nil, "", err
		}
	}
	resolutions = consistent(input.Claims, resolutions)
	return resolutions, note, c.rephrase(ctx, p, resolutions)
}

// rephrase sets the texts with which statements are stored, and the vectors of these texts.
func (c *Considerer) rephrase(ctx context.Context, p *plan, resolutions []Resolution) error {
	for i, r := range resolutions {
		if r.Text == "" || r.Action != TreatSupersede {
			continue
		}
		p.Statements[i].Text = r.Text
		made, err := c.embed(ctx, p.Statements[i:i+1])
		if err != nil {
			return err
		}
		p.embeddings[i] = made[0]
	}
	return nil
}

// embed returns the vectors of the statements that may be stored.
func (c *Considerer) embed(ctx context.Context, statements []memory.Statement) ([]vectorstore.Embedding, error) {
	var texts []string
	for _, s := range statements {
		if !s.Forget {
			texts = append(texts, s.Text)
		}
	}
	embeddings := make([]vectorstore.Embedding, len(statements))
	if len(texts) == 0 {
		return embeddings, nil
	}
	embedding, end := span.Start(ctx, "embed")
	made, err := c.Vectors.Embeddings(embedding, texts)
	end(err)
	if err != nil {
		return nil, err
	}
	for i, s := range statements {
		if !s.Forget {
			embeddings[i], made = made[0], made[1:]
		}
	}
	return embeddings, nil
}

// unresolved treats every statement as new.
func unresolved(statements []memory.Statement) []Resolution {
	list := make([]Resolution, len(statements))
	for i, s := range statements {
		list[i].Action = TreatAdd
		if s.Forget {
			list[i].Action = TreatWithdraw
		}
	}
	return list
}

// near finds current memories with the dialogue's visibility that may say the same as the statement, or contradict it. An untrusted
// statement has no candidates, since it must not change existing memories.
func (c *Considerer) near(ctx context.Context, job queue.Job, s memory.Statement, embedding vectorstore.Embedding) ([]Neighbor, error) {
	if s.Quarantine != "" {
		return nil, nil
	}
	user := job.User()
	// An old dialogue may arrive late, when a memory that was current then has ended, such as a trip that was called off.
	filter := vectorstore.Filter{
		Audience: memory.OnlyVisibility(job.Consideration.Scope.Channel), At: s.ObservedAt,
		Statuses: []memory.Status{memory.StatusActive},
	}
	found := neighborhood{at: map[string]int{}}
	limit := nearby
	if s.Forget {
		limit = asked
	}
	hits, err := c.Memories.SearchKeyword(ctx, user, s.Text, filter, limit)
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		found.add(h.Memory, 0)
	}
	for _, probe := range c.Reconciler.Probes(s) {
		if hits, err = c.Memories.SearchKeyword(ctx, user, probe.Query, filter, probed); err != nil {
			return nil, err
		}
		kept := 0
		for _, h := range hits {
			if kept < limit && probe.Keep(h.Memory) {
				found.add(h.Memory, 0)
				kept++
			}
		}
	}
	if len(embedding.Chunks) != 1 { // none, or a text too long to be a repetition
		return found.list, nil
	}
	hits, err = c.Memories.SearchVector(ctx, user, embedding.Fingerprint, embedding.Chunks[0], filter, nearby)
	if errors.Is(err, memory.ErrUnavailable) || ctx.Err() != nil {
		return nil, err
	}
	fingerprint, _ := embed.ParseFingerprint(embedding.Fingerprint)
	for _, h := range hits { // no hits while the vectors are being rebuilt: only keywords work then
		switch {
		case fingerprint.Provider != localProvider:
			found.add(h.Memory, h.Score)
		case h.Score >= spelledAlike:
			found.add(h.Memory, 0)
		}
	}
	return found.list, nil
}

// neighborhood is a list without duplicates.
type neighborhood struct {
	list []Neighbor
	at   map[string]int
}

func (n *neighborhood) add(m *memory.Memory, cosine float64) {
	i, ok := n.at[m.ID]
	if !ok {
		i = len(n.list)
		n.at[m.ID] = i
		n.list = append(n.list, Neighbor{Memory: *m})
	}
	n.list[i].Cosine = max(n.list[i].Cosine, cosine)
}

// consistent makes sure that each resolution can be applied after those before it: a target is a candidate of one of the claims so far,
// or an earlier claim that is stored. If the target is a claim that repeats a memory, that memory becomes the target.
func consistent(claims []Claim, resolutions []Resolution) []Resolution {
	list := make([]Resolution, 0, len(claims))
	number, known := map[string]int{}, map[string]bool{}
	for _, claim := range claims {
		for _, n := range claim.Near {
			known[n.Memory.ID] = true
		}
	}
	for i, claim := range claims {
		r := Resolution{Action: TreatAdd}
		if i < len(resolutions) {
			r = resolutions[i]
		}
		var targets []string
		for _, id := range r.Targets {
			k, isClaim := number[id]
			switch {
			case isClaim && list[k].Action == TreatSame:
				targets = append(targets, list[k].Targets[0])
			case isClaim && list[k].Action == TreatOutdated && r.Action == TreatSame:
				r.Action = TreatOutdated
				targets = append(targets, list[k].Targets[0])
			case isClaim && (list[k].Action == TreatAdd || list[k].Action == TreatSupersede), known[id]:
				targets = append(targets, id)
			}
		}
		slices.Sort(targets)
		r.Targets = slices.Compact(targets)
		switch {
		case claim.Statement.Forget:
			r.Action = TreatWithdraw
		case r.Action == TreatWithdraw, r.Action == TreatAdd, claim.Statement.Quarantine != "", len(r.Targets) == 0,
			len(r.Targets) > 1 && r.Action != TreatSupersede:
			r = Resolution{Action: TreatAdd}
		}
		number[claim.MemoryID] = i
		list = append(list, r)
	}
	return list
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
