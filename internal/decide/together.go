package decide

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// groupCalls are the calls of a model that run for several speakers of a dialogue.
//
// A dialogue has a job for each of its speakers. The first of them that a worker takes asks for all whose turn it is, and saves the plans
// of all in one transaction. The others find their plans when they are taken; those that are taken meanwhile wait for the call.
type groupCalls struct {
	mu      sync.Mutex
	running map[string]*groupCall // by consideration
}

type groupCall struct {
	done  chan struct{}
	plans map[int64]plan // by job; those of jobs that were not decided here are missing
	err   error
}

// join returns the running call for one of the considerations, or registers a new one for them.
func (g *groupCalls) join(considerations []string) (call *groupCall, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range considerations {
		if call := g.running[id]; call != nil {
			return call, false
		}
	}
	if g.running == nil {
		g.running = map[string]*groupCall{}
	}
	call = &groupCall{done: make(chan struct{}), plans: map[int64]plan{}}
	for _, id := range considerations {
		g.running[id] = call
	}
	return call, true
}

func (g *groupCalls) end(considerations []string, call *groupCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range considerations {
		delete(g.running, id)
	}
	close(call.done)
}

// plan returns the plan for a job, after saving it.
func (c *Considerer) plan(ctx context.Context, job queue.Job, location *time.Location) (plan, error) {
	b, err := c.batchOf(ctx, job)
	if err != nil {
		return plan{}, err
	}
	if len(job.Dialogue.Speakers()) < 2 || c.options.AsksModel == nil || !c.options.AsksModel() {
		return c.planAlone(ctx, b, location)
	}
	considerations := make([]string, len(b.jobs))
	for i := range b.jobs {
		considerations[i] = b.jobs[i].Consideration.ID
	}
	call, first := c.calls.join(considerations)
	if !first {
		select {
		case <-call.done:
		case <-ctx.Done():
			return plan{}, ctx.Err()
		}
		if p, ok := call.plans[job.Seq]; ok {
			return p, nil
		}
		if call.err != nil && postponed(ctx, call.err) {
			return plan{}, call.err // a model that is away for one is away for all
		}
		return c.planAlone(ctx, b, location)
	}
	defer c.calls.end(considerations, call)
	// The job may have been taken before another speaker's call planned it.
	if checkpoint, err := c.Queue.ReadCheckpoint(ctx, job.Seq); err != nil {
		return plan{}, err
	} else if p, ok := savedPlan(checkpoint); ok {
		return p, nil
	}
	call.plans, call.err = c.planTogether(ctx, b, location)
	if call.err != nil {
		return plan{}, call.err
	}
	return call.plans[job.Seq], nil
}

func (c *Considerer) planAlone(ctx context.Context, b batch, location *time.Location) (plan, error) {
	plans, err := c.decide(ctx, b, location)
	if err == nil {
		err = c.save(ctx, b, plans)
	}
	if err != nil {
		return plan{}, err
	}
	return plans[0], nil
}

// planTogether plans a batch, and the same dialogues for their other speakers.
func (c *Considerer) planTogether(ctx context.Context, b batch, location *time.Location) (map[int64]plan, error) {
	own, err := c.read(ctx, b, location)
	if err != nil {
		return nil, err
	}
	asked := []*reading{own}
	if !own.settled {
		others, err := c.otherSpeakers(ctx, own)
		if err != nil {
			return nil, err
		}
		asked = append(asked, others...)
	}
	if err := c.extractAll(ctx, asked); err != nil {
		return nil, err
	}
	plans, saved := map[int64]plan{}, map[int64]plan{}
	for _, r := range asked {
		if !r.settled && !r.answered {
			continue
		}
		list, err := c.settle(usage.WithUser(ctx, r.batch.jobs[0].User()), r)
		if err != nil {
			return nil, err
		}
		for i, job := range r.batch.jobs {
			plans[job.Seq] = list[i]
			if len(list) > 1 || len(asked) > 1 || len(list[i].Statements) > 0 {
				saved[job.Seq] = list[i]
			}
		}
	}
	return plans, c.saveAll(ctx, saved, len(b.jobs)-1)
}

// otherSpeakers reads the same dialogues for those of their other speakers whose turn it is. Speakers for whom they read otherwise, such
// as in another time zone, are left to a call of their own.
func (c *Considerer) otherSpeakers(ctx context.Context, own *reading) (list []*reading, err error) {
	seqs := make([]int64, len(own.batch.jobs))
	for i := range own.batch.jobs {
		seqs[i] = own.batch.jobs[i].Seq
	}
	lines, err := c.Queue.SameDialogues(ctx, seqs)
	if err != nil {
		return nil, err
	}
	for _, jobs := range lines {
		if len(jobs) != len(own.batch.jobs) {
			continue
		}
		settings, err := c.Settings.Get(ctx, jobs[0].User())
		if err != nil {
			return nil, err
		}
		location := settings.Location(c.options.Location)
		if settings.Paused || location.String() != own.t.Location.String() {
			continue
		}
		for i := range jobs {
			jobs[i].Dialogue, _ = c.Redactor.Dialogue(jobs[i].Dialogue)
		}
		r, err := c.read(usage.WithUser(ctx, jobs[0].User()), batch{jobs}, location)
		if err != nil {
			return nil, err
		}
		if !r.settled && r.like(own) {
			list = append(list, r)
		}
	}
	return list, nil
}

// like reports whether two speakers' readings show the same messages.
func (r *reading) like(own *reading) bool {
	a, b := r.t, own.t
	if a.Earlier != b.Earlier || len(a.Dialogue.Messages) != len(b.Dialogue.Messages) {
		return false
	}
	for i := range a.Dialogue.Messages {
		if a.Dialogue.Messages[i].Content != b.Dialogue.Messages[i].Content {
			return false
		}
	}
	return true
}

// extractAll asks the gate for each reading, and the extractor once for all that pass. An error is that of the first reading; the others
// are then left without an answer, and so they are when the model's answer for all cannot be used.
func (c *Considerer) extractAll(ctx context.Context, asked []*reading) error {
	var open []*reading
	for _, r := range asked {
		if r.settled {
			continue
		}
		found, done, err := c.gate(ctx, r.in)
		switch {
		case err != nil && r == asked[0]:
			return err
		case err != nil:
		case done:
			r.found, r.answered = found, true
		default:
			open = append(open, r)
		}
	}
	if len(open) > 1 {
		inputs := make([]Input, len(open))
		for i := range open {
			inputs[i] = open[i].in
		}
		together, ok := c.Extractor.(Together)
		if ok {
			found, err := together.ExtractTogether(ctx, inputs)
			switch {
			case err == nil:
				for i := range open {
					open[i].found, open[i].answered = extracted{Extraction: found[i], by: c.Extractor.Name()}, true
				}
				return nil
			case postponed(ctx, err):
				return err
			}
			trace.Degrade(ctx, summaryComponent, err.Error())
		}
	}
	if !slices.Contains(open, asked[0]) {
		return nil
	}
	found, err := c.extractAlone(ctx, asked[0].in)
	asked[0].found, asked[0].answered = found, err == nil
	return err
}
