package decide

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/observe/span"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/usage"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Settings reads users' settings.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
}

// Memories stores new memories, and finds existing ones that are similar. The methods are those of vectorstore.Store.
type Memories interface {
	Apply(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error)
	SearchVector(ctx context.Context, user memory.User, fingerprint string, vector []float32, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
	SearchKeyword(ctx context.Context, user memory.User, query string, filter vectorstore.Filter, limit int) ([]vectorstore.Hit, error)
	List(ctx context.Context, user memory.User, query vectorstore.ListQuery) (vectorstore.Page, error)
}

// Digests receives the results of considering.
type Digests interface {
	// Remembered may be called with the same value again, after a crash, and then changes nothing.
	Remembered(ctx context.Context, r Remembered) error
}

// Remembered is the result of considering one speaker's words.
type Remembered struct {
	ConsiderationID string
	Scope           memory.Scope // its user is the speaker
	DecidedBy       string
	Statements      []memory.Statement
	Changes         []memory.MemoryChange // of the statements, in order
}

// Vectors embeds texts for storage.
type Vectors interface {
	// Embeddings returns the vectors of each text. While the embedder is unavailable they are empty, and are added later.
	Embeddings(ctx context.Context, texts []string) ([]vectorstore.Embedding, error)
	// Wake reports that something was stored without vectors.
	Wake()
}

// Deps is what a Considerer works with.
type Deps struct {
	Queue    queue.Store
	Sessions Sessions
	// Recorder records dialogues in their sessions. Optional: without it no dialogue is recorded, and sessions are not considered on
	// request.
	Recorder Recorder
	Memories Memories
	Settings Settings
	Vectors  Vectors
	Traces   Traces
	// Gate decides whether the extractor is asked; optional.
	Gate      Gate
	Extractor Extractor
	// Excluded keeps messages that are not to be kept out of what is derived from messages; optional.
	Excluded Exclusions
	// Local replaces a model that refuses, whose answers cannot be used, or whose token budget is used up.
	Local    Extractor
	Digests  Digests          // optional
	Echoes   *Echoes          // recognise what Retrieve returned; optional
	Redactor *redact.Redactor // removes secrets from dialogues; optional
	// HistoryRedactor removes secrets from dialogues before they are stored; optional.
	HistoryRedactor *redact.Redactor
}

// Options describes a Considerer.
type Options struct {
	// Record also records each dialogue in its session.
	Record bool
	// Visibility decides who may see what.
	Visibility memory.Visibility
	MaxPending int // considerations of one user that may be pending
	// MaxPendingNamespace limits a namespace's pending considerations; 0 means no limit.
	MaxPendingNamespace int
	// MaxPendingTotal limits the pending considerations of all namespaces, MaxPendingBytes the size of their dialogues; 0 means no
	// limit.
	MaxPendingTotal int
	MaxPendingBytes int64
	MaxWait         time.Duration // cap of Request.Wait
	// Debounce returns how long dialogues of a namespace wait where a model is asked. Optional: without it none waits.
	Debounce func(namespace string) Debounce
	// AsksModel reports whether considering asks a model, and Urgent whether the new messages of a transcript are not to be held back. With
	// Debounce both are required.
	AsksModel func() bool
	Urgent    func(t Transcript) bool
	// Batched is called with the number of dialogues that were considered in the call of an earlier one. Optional.
	Batched  func(dialogues int)
	Location *time.Location // of users who set no time zone
	// Now is the clock, also the pool's; by default time.Now.
	Now     func() time.Time
	Pool    queue.Options
	Tracing oteltrace.TracerProvider // of attempts; nil records none
}

// Considerer accepts dialogues and considers them in the background.
type Considerer struct {
	Deps
	options  Options
	pool     *queue.Pool
	tracer   oteltrace.Tracer
	calls    groupCalls
	ending   chan struct{} // closed when waiting for outcomes has to end
	endWaits func()
}

// NewConsiderer returns a Considerer; Start starts its workers.
func NewConsiderer(parts Deps, options Options) *Considerer {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.Pool.Now = options.Now
	c := &Considerer{Deps: parts, options: options, tracer: span.Tracer(options.Tracing), ending: make(chan struct{})}
	c.endWaits = sync.OnceFunc(func() { close(c.ending) })
	c.pool = queue.NewPool(parts.Queue, c.attempt, options.Pool)
	return c
}

// Start starts considering accepted dialogues, including those that earlier processes accepted.
func (c *Considerer) Start() { c.pool.Start() }

// Stop lets running considerations finish until the context ends.
func (c *Considerer) Stop(ctx context.Context) { c.pool.Stop(ctx) }

// EndWaits makes all current and future calls that wait for an outcome return immediately. It is for a process that is about to stop.
func (c *Considerer) EndWaits() { c.endWaits() }

// Wake makes the workers look for jobs now. Call it when storage recovered.
func (c *Considerer) Wake() { c.pool.Wake() }

// Resume makes postponed jobs due now. Call it when a model recovered.
func (c *Considerer) Resume() { c.pool.Resume() }

// Bar blocks jobs that hold the user's words until release is called, and cancels those that run.
func (c *Considerer) Bar(ctx context.Context, user memory.User) (release func(), err error) {
	return c.pool.Bar(ctx, user)
}

// settled wakes the workers, and waits for the outcome as long as requested and allowed.
func (c *Considerer) settled(ctx context.Context, accepted memory.Consideration, wait time.Duration) (memory.Consideration, error) {
	c.pool.Wake()
	if wait <= 0 || accepted.State.Final() {
		return accepted, nil
	}
	return c.await(ctx, accepted, min(wait, c.options.MaxWait))
}

// await returns the consideration when it is final, or after the wait.
func (c *Considerer) await(ctx context.Context, accepted memory.Consideration, wait time.Duration) (memory.Consideration, error) {
	user := accepted.Scope.User()
	final, stop := c.pool.Watch(user, accepted.ID)
	defer stop()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	now, err := c.Queue.Get(ctx, user, accepted.ID, memory.Everything())
	if err != nil || now.State.Final() {
		return now, err
	}
	select {
	case <-final:
	case <-timer.C:
	case <-c.ending:
	case <-ctx.Done():
		return accepted, ctx.Err()
	}
	return c.Queue.Get(ctx, user, accepted.ID, memory.Everything())
}

// Retry makes a failed consideration pending again. A pending one becomes due, with those of the user that come before it.
func (c *Considerer) Retry(ctx context.Context, user memory.User, id string, audience memory.Audience) (memory.Consideration, error) {
	retried, err := c.Queue.Retry(ctx, user, id, audience, c.options.Now())
	if err == nil {
		c.pool.Wake()
	}
	return retried, err
}

// plan is the decision. It is saved before it is applied, so that after a crash the model is not asked again: it might answer
// differently, and the plan may be half applied.
type plan struct {
	Statements []memory.Statement `json:"statements"`
	Reason     string             `json:"reason"`
	DecidedBy  string             `json:"decided_by"`
	// Resolutions say how each statement is stored.
	Resolutions []Resolution `json:"resolutions,omitempty"`
	Dropped     []string     `json:"dropped,omitempty"`    // changes that were not made, with reasons
	Fallback    string       `json:"fallback,omitempty"`   // why the local extractor decided instead of a model
	Everything  bool         `json:"everything,omitempty"` // the user asked to forget everything
	Private     []string     `json:"private,omitempty"`    // messages that are not to be kept

	embeddings []vectorstore.Embedding // of the statements, some of which may be missing; nil after a crash
}

// outcome returns what the plan says about a consideration.
func (p *plan) outcome() memory.Outcome {
	return memory.Outcome{Reason: p.Reason, DecidedBy: p.DecidedBy, Dropped: p.Dropped, Fallback: p.Fallback, ForgetEverything: p.Everything}
}

// handle considers one speaker's words.
func (c *Considerer) handle(ctx context.Context, job queue.Job) (memory.State, memory.Outcome, error) {
	user := job.User()
	ctx = usage.WithUser(ctx, user)
	settings, err := c.Settings.Get(ctx, user)
	if err != nil {
		return "", memory.Outcome{}, err
	}
	if settings.Paused {
		return memory.StateSkipped, memory.Outcome{Reason: pausedReason}, nil
	}
	p, ok := savedPlan(job.Checkpoint)
	if !ok {
		if p, err = c.plan(ctx, job, settings.Location(c.options.Location)); err != nil {
			return "", memory.Outcome{}, err
		}
	}
	if err := c.exclude(ctx, job, p); err != nil {
		return "", memory.Outcome{}, err
	}
	if len(p.Statements) == 0 {
		return memory.StateSkipped, p.outcome(), nil
	}
	changes, err := c.apply(ctx, job, p)
	if err != nil {
		return "", memory.Outcome{}, err
	}
	if err := c.remembered(ctx, job, p, changes); err != nil {
		return "", memory.Outcome{}, err
	}
	outcome := p.outcome()
	outcome.Reason += onlyWithdrawn(p.Statements, changes)
	outcome.Changes = changes
	return memory.StateRemembered, outcome, nil
}

// savedPlan reads a checkpoint. Databases of earlier versions may hold one that was decided and not yet compared with the memories;
// nothing of such a plan was applied, and it is made again.
func savedPlan(checkpoint []byte) (p plan, ok bool) {
	if checkpoint == nil || json.Unmarshal(checkpoint, &p) != nil || len(p.Resolutions) != len(p.Statements) {
		return plan{}, false
	}
	return p, true
}

// reading is the jobs of a batch, ready to be decided for one speaker.
type reading struct {
	batch  batch
	t      Transcript
	in     Input
	echoed string // remark about what was left out
	// settled is set when nobody needs to be asked: plan says why.
	settled bool
	plan    plan
	// answered is set when found holds what the extractor found.
	answered bool
	found    extracted
}

// decide asks what is to be remembered of the jobs of a batch, and returns a plan for each.
func (c *Considerer) decide(ctx context.Context, b batch, location *time.Location) ([]plan, error) {
	r, err := c.read(ctx, b, location)
	if err != nil {
		return nil, err
	}
	if !r.settled {
		if r.found, err = c.extract(ctx, r.in); err != nil {
			return nil, fmt.Errorf("deciding: %w", err)
		}
	}
	return c.settle(ctx, r)
}

// read prepares what an extractor reads of the jobs of a batch.
func (c *Considerer) read(ctx context.Context, b batch, location *time.Location) (*reading, error) {
	job := b.jobs[0]
	r := &reading{batch: b, t: b.transcript(location)}
	if !r.t.spoken() {
		r.settled, r.plan = true, plan{Reason: "the dialogue holds no words of this user"}
		return r, nil
	}
	var err error
	r.t, r.echoed, err = c.withoutEchoes(ctx, r.t)
	if err != nil {
		return nil, err
	}
	if !r.t.spoken() {
		r.settled, r.plan = true, plan{Reason: r.echoed}
		return r, nil
	}
	before, err := c.earlier(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("reading the last turns: %w", err)
	}
	t := r.t.after(before)
	r.t = t
	r.in = Input{Transcript: t, Known: sync.OnceValues(func() ([]Known, error) { return c.knownMemories(ctx, job, t, before) })}
	return r, nil
}

// settle turns what an extractor found into a plan for each job.
func (c *Considerer) settle(ctx context.Context, r *reading) ([]plan, error) {
	if r.settled {
		return r.batch.plans(r.plan), nil
	}
	found := r.found
	p := plan{Reason: found.Reason + r.echoed, DecidedBy: found.by, Fallback: found.fallback}
	if p.Fallback != "" {
		p.Reason += "; decided by rules: " + p.Fallback
	}
	if err := withdrawPrivate(r.in, &found.Extraction); err != nil {
		return nil, fmt.Errorf("deciding: %w", err)
	}
	ops, left := withoutBare(found.Ops)
	if len(found.Ops) > 0 && !left {
		p.Reason += "; but nothing is left of it after removing secrets"
		ops = nil
	}
	var err error
	if len(ops) > 0 && !found.Checked {
		if ops, err = c.checkOps(ctx, r.in, ops); err != nil {
			return nil, err
		}
	}
	p.Reason += remarks(r.t.Notes)
	plans := r.batch.plans(p)
	plans[len(plans)-1].Dropped = found.Dropped
	plans[0].Private = found.Private
	if err := c.settleOps(ctx, r.batch, r.t, ops, plans); err != nil {
		return nil, err
	}
	r.batch.note(plans, len(ops) > 0)
	return plans, nil
}

// after returns the transcript with the last turns before it.
func (t Transcript) after(before earlierTurns) Transcript {
	t.Dialogue.Messages = slices.Concat(before.messages, t.Dialogue.Messages)
	t.Earlier, t.refs = len(before.messages), slices.Concat(before.refs, t.refs)
	return t
}

func remarks(notes *Remarks) string {
	var b strings.Builder
	for _, note := range notes.All() {
		b.WriteString("; " + note)
	}
	return b.String()
}

// save makes the plans of a batch durable, all at once. A plan alone that does nothing need not be.
func (c *Considerer) save(ctx context.Context, b batch, plans []plan) error {
	if len(plans) == 1 && len(plans[0].Statements) == 0 {
		return nil
	}
	saved := map[int64]plan{}
	for i, job := range b.jobs {
		saved[job.Seq] = plans[i]
	}
	return c.saveAll(ctx, saved, len(plans)-1)
}

// saveAll makes plans durable, all at once. More is how many of the dialogues were considered in the call of an earlier one.
func (c *Considerer) saveAll(ctx context.Context, plans map[int64]plan, more int) error {
	saved := map[int64][]byte{}
	for seq := range plans {
		data, err := json.Marshal(plans[seq])
		if err != nil {
			return err
		}
		if saved[seq] = data; len(plans) == 1 {
			return c.Queue.Checkpoint(ctx, seq, data)
		}
	}
	if len(saved) == 0 {
		return nil
	}
	err := c.Queue.CheckpointAll(ctx, saved)
	if err == nil && c.options.Batched != nil && more > 0 {
		c.options.Batched(more)
	}
	return err
}

// spoken reports whether the speaker said anything in the new messages.
func (t Transcript) spoken() bool {
	return slices.ContainsFunc(t.Dialogue.Messages[t.Earlier:], func(m memory.Message) bool {
		return m.Role == memory.RoleUser && m.Speaker == t.Speaker && strings.TrimSpace(m.Content) != ""
	})
}

// apply stores the plan's statements. Applying the same plan again changes nothing.
func (c *Considerer) apply(ctx context.Context, job queue.Job, p plan) ([]memory.MemoryChange, error) {
	if err := c.embed(ctx, &p); err != nil {
		return nil, err
	}
	changes := make([]memory.MemoryChange, len(p.Statements))
	var entries []vectorstore.Entry
	var numbers []int // of the entries' statements
	now := c.options.Now()
	for i, s := range p.Statements {
		r := p.Resolutions[i]
		entry, ok := r.entry(vectorstore.Entry{
			StatementID: job.Consideration.ID + "/" + strconv.Itoa(i),
			Memory:      newMemory(job, s, p.DecidedBy, i, now),
			Embedding:   p.embeddings[i],
			Reinforce:   true,
		})
		if !ok {
			changes[i] = r.change(s, vectorstore.Applied{Action: memory.ActionWithdrawn})
			continue
		}
		entries, numbers = append(entries, entry), append(numbers, i)
	}
	if len(entries) == 0 {
		return changes, nil
	}
	applying, endApplying := span.Start(ctx, "apply", attribute.Int("memsidecar.statements", len(entries)))
	applied, err := c.store(applying, job.User(), entries)
	endApplying(err)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(entries, func(e vectorstore.Entry) bool { return e.Embedding.Fingerprint == "" }) {
		c.Vectors.Wake() // the embedder may have recovered since, and found no work then
	}
	for k, a := range applied {
		i := numbers[k]
		changes[i] = p.Resolutions[i].change(p.Statements[i], a)
	}
	return changes, nil
}

func newMemory(job queue.Job, s memory.Statement, decidedBy string, number int, now time.Time) memory.Memory {
	scope := job.Consideration.Scope
	return memory.Memory{
		ID:      statementMemoryID(job, number),
		AgentID: scope.AgentID, Channel: scope.Channel, SessionID: scope.SessionID,
		Text: s.Text, Language: s.Language, Kind: s.Kind, Standing: s.Standing, Importance: s.Importance, Explicit: s.Explicit,
		Provenance: memory.Provenance{
			Source: memory.SourceDialogue, ConsiderationID: job.Consideration.ID, SpeakerID: scope.UserID,
			MessageIDs: s.MessageIDs, Question: s.Question, Quote: s.Quote, Slot: s.Slot, Dates: s.Dates, Reason: s.Reason, DecidedBy: decidedBy,
		},
		CreatedAt: now, UpdatedAt: now, ObservedAt: s.ObservedAt, Mentions: 1, LastSaidAt: s.ObservedAt,
		ValidTo: s.ValidTo, Quarantine: s.Quarantine,
	}
}

// MemoryID derives a memory's id from its cause, so that storing it twice has no effect.
func MemoryID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "mem_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}
