package decide

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// Limits of what waits for each other and is considered together.
const (
	batchFollowers = 39
	batchMessages  = 100
	batchRunes     = 24_000
)

// Debounce says how long what is handed over waits for the following messages of its conversation.
type Debounce struct {
	Pause    time.Duration // until nothing was added for this long; 0: it does not wait
	Messages int           // or until so many messages of people wait
}

// debounce returns how long a new dialogue is held back, and whether it ends the holding back of those before it.
func (c *Considerer) debounce(d memory.Dialogue, speakers []string, wait time.Duration) (hold Debounce, hurry bool) {
	if wait > 0 {
		return hold, true
	}
	if hold = c.debounceIn(d.Scope.Namespace); hold.Pause <= 0 {
		return hold, false
	}
	for _, speaker := range speakers {
		if c.options.Urgent(Transcript{Dialogue: d, Speaker: speaker}) {
			return Debounce{}, true
		}
	}
	return hold, false
}

// debounceIn returns how long dialogues of a namespace wait: not at all where no model is asked.
func (c *Considerer) debounceIn(namespace string) Debounce {
	if c.options.Debounce == nil || !c.options.AsksModel() {
		return Debounce{}
	}
	return c.options.Debounce(namespace)
}

// batch is jobs of one user and conversation that are considered in one call, oldest first.
//
// The first job is the one that was claimed. The others stay pending, and the plans of all are saved in one transaction before the first
// is applied. Then each job is claimed in its turn, finds its plan, and applies it without asking again. So every job ends as if it had
// been alone: with its own state and outcome, in the order of the line, and after a crash at any point either no plan exists or all do.
type batch struct {
	jobs []queue.Job
}

// batchOf returns the job with those that are considered together with it.
func (c *Considerer) batchOf(ctx context.Context, job queue.Job) (batch, error) {
	b := batch{jobs: []queue.Job{job}}
	if c.debounceIn(job.Consideration.Scope.Namespace).Pause <= 0 {
		return b, nil
	}
	following, err := c.Queue.Following(ctx, job.Seq, batchFollowers)
	if err != nil {
		return b, err
	}
	speakers := job.Dialogue.Speakers()
	messages, runes := size(job.Dialogue)
	for i := range following {
		next := &following[i]
		more, longer := size(next.Dialogue)
		messages, runes = messages+more, runes+longer
		// Forgetting a user stops the jobs that hold the user's words, which the pool knows by the first job's dialogue.
		other := slices.ContainsFunc(next.Dialogue.Speakers(), func(s string) bool { return !slices.Contains(speakers, s) })
		if other || messages > batchMessages || runes > batchRunes {
			break
		}
		b.jobs = append(b.jobs, *next)
	}
	for i := range b.jobs[1:] {
		b.jobs[i+1].Dialogue, _ = c.Redactor.Dialogue(b.jobs[i+1].Dialogue) // the attempt did it with the first
	}
	return b, nil
}

func size(d memory.Dialogue) (messages, runes int) {
	for i := range d.Messages {
		runes += utf8.RuneCountInString(d.Messages[i].Content)
	}
	return len(d.Messages), runes
}

// transcript joins the dialogues. A message that was handed over twice is read once.
func (b batch) transcript(location *time.Location) Transcript {
	first := b.jobs[0]
	t := Transcript{Dialogue: first.Dialogue, Speaker: first.Consideration.Scope.UserID, Location: location}
	if len(b.jobs) == 1 {
		return t
	}
	t.Dialogue.Messages = nil
	read := map[string]int{} // messages to the job that they were read in
	for k, job := range b.jobs {
		for i, m := range job.Dialogue.Messages {
			same := sameMessage(&m)
			if in, ok := read[same]; ok && in < k {
				continue
			}
			read[same] = k
			t.Dialogue.Messages = append(t.Dialogue.Messages, m)
			t.refs = append(t.refs, b.ref(k, i))
		}
	}
	return t
}

// ref names a message in the transcript of a batch.
func (b batch) ref(job, message int) string {
	if id := b.jobs[job].Dialogue.Messages[message].ID; id != "" {
		return id
	}
	return b.jobs[job].Consideration.ID + memory.PositionRef(message)
}

// jobOf returns the job with the last new message that a statement cites, or the newest.
func (b batch) jobOf(t Transcript, s memory.Statement) int {
	newest := len(b.jobs) - 1
	if newest == 0 {
		return 0
	}
	for i := len(t.Dialogue.Messages) - 1; i >= t.Earlier; i-- {
		cited := t.Ref(i)
		if !slices.Contains(s.MessageIDs, cited) {
			continue
		}
		for k, job := range b.jobs {
			for n := range job.Dialogue.Messages {
				if b.ref(k, n) == cited {
					return k
				}
			}
		}
	}
	return newest
}

// refsOf returns what names the messages for a job: its own ones without an id by their position alone.
func (b batch) refsOf(job int, refs []string) []string {
	if len(b.jobs) == 1 {
		return refs
	}
	own := slices.Clone(refs)
	for i, ref := range own {
		if rest, ok := strings.CutPrefix(ref, b.jobs[job].Consideration.ID+memory.PositionRef(0)[:1]); ok {
			own[i] = memory.PositionRef(0)[:1] + rest
		}
	}
	return own
}

// plans returns the plan for each job.
func (b batch) plans(p plan) []plan {
	plans := make([]plan, len(b.jobs))
	for i := range plans {
		plans[i] = p
	}
	return plans
}

// note says in the plans with which consideration each was considered.
func (b batch) note(plans []plan, found bool) {
	if len(plans) == 1 {
		return
	}
	for i := range plans {
		if found && len(plans[i].Statements) == 0 {
			plans[i].Reason = "nothing to remember in this dialogue"
		}
		with := b.jobs[0]
		if i == 0 {
			with = b.jobs[len(b.jobs)-1]
		}
		plans[i].Reason += "; considered together with " + with.Consideration.ID
	}
}
