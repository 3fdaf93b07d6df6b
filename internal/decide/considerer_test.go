package decide_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

// judge decides and summarises as a test says.
type judge struct {
	decide    func(ctx context.Context, t decide.Transcript) (decide.Verdict, error)
	summarize func(t decide.Transcript) ([]memory.Statement, error)

	mu    sync.Mutex
	calls []decide.Transcript
}

func (*judge) Name() string { return "test/judge" }

func (j *judge) Decide(ctx context.Context, t decide.Transcript) (decide.Verdict, error) {
	j.mu.Lock()
	j.calls = append(j.calls, t)
	j.mu.Unlock()
	if j.decide == nil {
		return decide.Verdict{Remember: true, Reason: "everything matters"}, nil
	}
	return j.decide(ctx, t)
}

func (j *judge) asked() []decide.Transcript {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.calls
}

// Summarize makes a statement of each message of the speaker.
func (j *judge) Summarize(_ context.Context, t decide.Transcript, v decide.Verdict) ([]memory.Statement, error) {
	if j.summarize != nil {
		return j.summarize(t)
	}
	var statements []memory.Statement
	for i, m := range t.Dialogue.Messages {
		if m.Role == memory.RoleUser && m.Speaker == t.Speaker {
			statements = append(statements, memory.Statement{
				Text: "The user said: " + m.Content, Language: "en", Kind: memory.KindFact, Importance: 0.5, Reason: v.Reason,
				MessageIDs: []string{t.Ref(i)}, Quote: m.Content, ObservedAt: m.Time,
			})
		}
	}
	return statements, nil
}

// asker is an extractor that asks the judge. Its statements are checked, as those of a model are.
type asker struct{ *judge }

func (a asker) Extract(ctx context.Context, in decide.Input) (found decide.Extraction, err error) {
	v, err := a.Decide(ctx, in.Transcript)
	if found.Reason = v.Reason; err != nil || !v.Remember {
		return found, err
	}
	statements, err := a.Summarize(ctx, in.Transcript, v)
	if err != nil {
		return found, fmt.Errorf("summarising: %w", err)
	}
	known, err := in.Known()
	for _, s := range statements {
		if in.CitesNew(s) {
			found.Ops = append(found.Ops, opOf(s, known, found.Ops))
		}
	}
	return found, err
}

// opOf reads a statement: "old => new" replaces a memory, a statement to forget names all whose text has its words, and what is known
// already is the same.
func opOf(s memory.Statement, known []decide.Known, before []decide.Op) decide.Op {
	op := decide.Op{Action: decide.OpAdd, Statement: s}
	old, text, replaces := strings.Cut(s.Text, " => ")
	if replaces {
		op.Action, op.Statement.Text, op.Reason = decide.OpUpdate, text, "instead of "+old
	}
	if s.Forget {
		op.Action, op.Reason = decide.OpForget, "the user asked for it"
	}
	add := func(id, known string, later bool) {
		switch {
		case s.Forget && strings.Contains(known, s.Text), replaces && known == old:
			op.IDs, op.History = append(op.IDs, id), later && replaces
		case !s.Forget && !replaces && known == s.Text:
			op.Action, op.IDs = decide.OpSame, []string{id}
		}
	}
	for _, k := range known {
		add(k.Memory.ID, k.Memory.Text, k.Memory.ObservedAt.After(s.ObservedAt))
	}
	for i, o := range before {
		add(decide.OpID(i), o.Statement.Text, false)
	}
	return op
}

// noVectors is an embedder that is away.
type noVectors struct{}

func (noVectors) Wake() {}

func (noVectors) Embeddings(_ context.Context, texts []string) ([]vectorstore.Embedding, error) {
	return make([]vectorstore.Embedding, len(texts)), nil
}

// flaky fails the first calls of Apply.
type flaky struct {
	decide.Memories
	mu       sync.Mutex
	failures []error
	searches []error
}

// fail makes the next calls of Apply fail.
func (f *flaky) fail(errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = errs
}

// failSearch makes the next searches fail.
func (f *flaky) failSearch(errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.searches = errs
}

func (f *flaky) SearchKeyword(
	ctx context.Context,
	user memory.User,
	query string,
	filter vectorstore.Filter,
	limit int,
) ([]vectorstore.Hit, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.searches) > 0 {
		err := f.searches[0]
		f.searches = f.searches[1:]
		return nil, err
	}
	return f.Memories.SearchKeyword(ctx, user, query, filter, limit)
}

func (f *flaky) Apply(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.failures) > 0 {
		err := f.failures[0]
		f.failures = f.failures[1:]
		return nil, err
	}
	return f.Memories.Apply(ctx, user, entries)
}

// system is the write path on a database of its own.
type system struct {
	*decide.Considerer
	judge    *judge
	memories *flaky
	store    *storelocal.Store
	queue    *sqlstore.Queue
	settings *sqlstore.Settings
	eraser   *manage.Eraser
	traces   *trace.Recorder
}

func newSystem(t *testing.T, j *judge, change ...func(*decide.Deps, *decide.Options)) *system {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s := &system{
		judge:    j,
		store:    storelocal.New(storage, storelocal.Options{IndexBudget: 1 << 20}),
		queue:    sqlstore.NewQueue(storage),
		settings: sqlstore.NewSettings(storage),
	}
	s.memories = &flaky{Memories: s.store}
	traces := trace.NewRecorder(sqlstore.NewTraces(storage), trace.Options{Retention: time.Hour, Log: log})
	s.traces = traces
	deps, options := decide.Deps{
		Queue: s.queue, Memories: s.memories, Settings: s.settings, Vectors: noVectors{}, Extractor: asker{j}, Traces: traces,
	}, decide.Options{MaxPending: 100, MaxWait: time.Minute, Location: time.UTC, Pool: queue.Options{
		Workers: 4, MaxAge: time.Hour, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond, Log: log,
	}}
	for _, set := range change {
		set(&deps, &options)
	}
	s.Considerer = decide.NewConsiderer(deps, options)
	memories := manage.NewService(manage.Deps{
		Store: s.store, Considerations: s.queue, Traces: traces, Purger: storage,
	})
	s.eraser = manage.NewEraser(manage.EraserConfig{
		Barriers: []manage.Barrier{s.Considerer},
		Forgetters: [][]manage.Forgetter{
			{manage.NewForgetter("traces", traces.Forget, func(r *manage.Receipt, n int64) { r.Traces = n })},
			{manage.NewForgetter("considerations", s.queue.Forget, func(r *manage.Receipt, f queue.Forgotten) {
				r.Considerations, r.Messages = f.Considerations, f.Messages
			})},
			{manage.NewForgetter("memories", s.store.Forget, func(r *manage.Receipt, n int64) { r.Memories = n })},
		},
		Purger: storage, Memories: memories,
	})
	s.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.Stop(ctx)
		traces.Close()
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func user(id string) memory.User { return memory.User{Namespace: "n", ID: id} }

// request is a dialogue in which each speaker says one thing; the first is the scope's user.
func request(wait time.Duration, speakers ...string) decide.Request {
	d := memory.Dialogue{
		Scope: memory.Scope{
			Namespace: "n",
			UserID:    speakers[0],
			AgentID:   "npc",
			SessionID: "s",
			Channel:   memory.Channel{Kind: memory.ChannelGroup, ID: "g"},
		},
	}
	for _, s := range speakers {
		d.Messages = append(d.Messages, memory.Message{Role: memory.RoleUser, Speaker: s, Content: "words of " + s, Time: time.Now()})
	}
	return decide.Request{Dialogue: d, Wait: wait}
}

// Consider returns the consideration alone.
func (s *system) Consider(ctx context.Context, r decide.Request) (memory.Consideration, error) {
	accepted, err := s.Considerer.Consider(ctx, r)
	return accepted.Consideration, err
}

func (s *system) consider(t *testing.T, r decide.Request) memory.Consideration {
	t.Helper()
	c, err := s.Consider(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *system) stored(t *testing.T, id string) []string {
	t.Helper()
	page, err := s.store.List(
		t.Context(),
		user(id),
		vectorstore.ListQuery{Filter: vectorstore.Filter{Audience: memory.Everything()}, Limit: 100},
	)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, m := range page.Memories {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestForgottenInFlight: what is being decided while its user is forgotten stores nothing, whether or not the decider
// listens to its context.
func TestForgottenInFlight(t *testing.T) {
	for name, deaf := range map[string]bool{"listening": false, "deaf": true} {
		t.Run(name, func(t *testing.T) {
			deciding, release := make(chan struct{}), make(chan struct{})
			once := sync.OnceFunc(func() { close(deciding) })
			j := &judge{decide: func(ctx context.Context, tr decide.Transcript) (decide.Verdict, error) {
				if tr.Speaker == "alice" {
					once()
					if deaf {
						<-release
					} else {
						<-ctx.Done()
					}
				}
				return decide.Verdict{Remember: true, Reason: "whatever"}, nil
			}}
			s := newSystem(t, j)
			c := s.consider(t, request(0, "alice"))
			s.consider(t, request(0, "alice")) // waits behind it
			<-deciding
			forgotten := make(chan error, 1)
			var receipt manage.Receipt
			go func() {
				var err error
				receipt, err = s.eraser.Forget(context.Background(), user("alice"))
				forgotten <- err
			}()
			close(release)
			if err := <-forgotten; err != nil {
				t.Fatal(err)
			}
			if receipt.Considerations != 2 || !receipt.Purged {
				t.Errorf("the receipt is %+v", receipt)
			}
			if c := s.consider(t, request(time.Minute, "bob")); c.State != memory.StateRemembered {
				t.Errorf("another user's is %+v", c)
			}
			if _, err := s.queue.Get(t.Context(), user("alice"), c.ID, memory.Everything()); !errors.Is(err, memory.ErrNotFound) {
				t.Errorf("the consideration is still there: %v", err)
			}
			if got := s.stored(t, "alice"); len(got) != 0 {
				t.Errorf("stored %q", got)
			}
		})
	}
}

// TestForgottenSpeakerInFlight: another person's words are decided while one speaker of the dialogue is forgotten. They
// are decided anew, without the forgotten words.
func TestForgottenSpeakerInFlight(t *testing.T) {
	deciding := make(chan struct{})
	once := sync.OnceFunc(func() { close(deciding) })
	first := true
	j := &judge{}
	j.decide = func(ctx context.Context, tr decide.Transcript) (decide.Verdict, error) {
		j.mu.Lock()
		hang := first && tr.Speaker == "bob"
		first = first && !hang
		j.mu.Unlock()
		if hang {
			once()
			<-ctx.Done()
			return decide.Verdict{}, ctx.Err()
		}
		return decide.Verdict{Remember: true, Reason: "whatever"}, nil
	}
	s := newSystem(t, j)
	s.consider(t, request(time.Minute, "alice", "bob"))
	<-deciding
	if _, err := s.eraser.Forget(t.Context(), user("alice")); err != nil {
		t.Fatal(err)
	}
	s.consider(t, request(time.Minute, "bob")) // behind it in bob's line
	if got := s.stored(t, "bob"); len(got) != 1 {
		t.Errorf("stored of bob: %q", got)
	}
	calls := j.asked()
	for _, m := range calls[len(calls)-2].Dialogue.Messages {
		if strings.Contains(m.Content, "alice") {
			t.Errorf("decided anew with %q", m.Content)
		}
	}
}

// TestDecidedOnce: what was decided is saved before it is applied, so that a failure in between asks no model again.
func TestDecidedOnce(t *testing.T) {
	s := newSystem(t, &judge{})
	s.memories.fail(&memory.TransientError{Err: errors.New("hiccup")}, &memory.TransientError{Err: errors.New("hiccup")})
	c := s.consider(t, request(time.Minute, "u"))
	if c.State != memory.StateRemembered || c.Attempts != 3 || c.Outcome.DecidedBy != "test/judge" ||
		c.Outcome.Reason != "everything matters" {
		t.Errorf("the consideration is %+v", c)
	}
	if n := len(s.judge.asked()); n != 1 {
		t.Errorf("decided %d times", n)
	}
	if got := s.stored(t, "u"); len(got) != 1 {
		t.Errorf("stored %q", got)
	}
}

// TestCannotDecide: that is never "nothing to remember".
func TestCannotDecide(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		panics   bool
		summary  error
		state    memory.State
		attempts int
		says     string
	}{
		"refused":       {err: errors.New("no such model"), state: memory.StateFailed, attempts: 1, says: "deciding: no such model"},
		"once away":     {err: &memory.TransientError{Err: errors.New("503")}, state: memory.StateRemembered, attempts: 2},
		"broken answer": {summary: errors.New("no JSON"), state: memory.StateFailed, attempts: 1, says: "summarising: no JSON"},
		"panic":         {panics: true, state: memory.StateFailed, attempts: 1, says: "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			failing := true
			j := &judge{decide: func(context.Context, decide.Transcript) (decide.Verdict, error) {
				mu.Lock()
				defer mu.Unlock()
				if failing && test.panics {
					panic("boom")
				}
				if err := test.err; failing && err != nil {
					failing = test.state == memory.StateFailed
					return decide.Verdict{}, err
				}
				return decide.Verdict{Remember: true, Reason: "now"}, nil
			}}
			plain := &judge{}
			j.summarize = func(tr decide.Transcript) ([]memory.Statement, error) {
				mu.Lock()
				defer mu.Unlock()
				if failing && test.summary != nil {
					return nil, test.summary
				}
				return plain.Summarize(context.Background(), tr, decide.Verdict{Reason: "now"})
			}
			s := newSystem(t, j)
			c := s.consider(t, request(time.Minute, "u"))
			if c.State != test.state || c.Attempts != test.attempts || !strings.Contains(c.Outcome.Error, test.says) ||
				(c.Outcome.Error == "") != (test.says == "") {
				t.Errorf("the consideration is %+v", c)
			}
			if c.State != memory.StateFailed {
				return
			}
			if got := s.stored(t, "u"); len(got) != 0 {
				t.Errorf("stored %q", got)
			}
			mu.Lock()
			failing = false
			mu.Unlock()
			if retried, err := s.Retry(t.Context(), user("u"), c.ID, memory.Everything()); err != nil ||
				retried.State != memory.StatePending {
				t.Errorf("retried: %+v, %v", retried, err)
			}
			s.consider(t, request(time.Minute, "u")) // behind it
			again, err := s.queue.Get(t.Context(), user("u"), c.ID, memory.Everything())
			if err != nil || again.State != memory.StateRemembered || again.Outcome.Error != "" {
				t.Errorf("after the retry: %+v, %v", again, err)
			}
		})
	}
}

// TestNothingToRemember: the reason says whose judgement it was.
func TestNothingToRemember(t *testing.T) {
	j := &judge{decide: func(_ context.Context, tr decide.Transcript) (decide.Verdict, error) {
		return decide.Verdict{Remember: tr.Speaker == "empty", Reason: "judged"}, nil
	}, summarize: func(decide.Transcript) ([]memory.Statement, error) { return nil, nil }}
	s := newSystem(t, j)
	silent := request(time.Minute, "silent")
	silent.Dialogue.Messages[0].Content = " \n"
	for name, test := range map[string]struct {
		request decide.Request
		says    string
		asked   int
	}{
		"no":            {request(time.Minute, "bored"), "judged", 1},
		"no statements": {request(time.Minute, "empty"), "judged", 1},
		"no words":      {silent, "holds no words of this user", 0},
	} {
		before := len(j.asked())
		c := s.consider(t, test.request)
		if c.State != memory.StateSkipped || !strings.Contains(c.Outcome.Reason, test.says) || len(c.Outcome.Changes) != 0 {
			t.Errorf("%s: %+v", name, c)
		}
		if n := len(j.asked()) - before; n != test.asked {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
}

// TestTranscript: a decider sees the whole dialogue, whose words it is about, and that person's time zone.
func TestTranscript(t *testing.T) {
	j := &judge{}
	s := newSystem(t, j)
	_, err := s.settings.Update(t.Context(), user("bob"), func(settings *memory.Settings) {
		settings.TimeZone, settings.UpdatedAt = "Asia/Shanghai", time.Now()
	})
	if err != nil {
		t.Fatal(err)
	}
	c := s.consider(t, request(time.Minute, "alice", "bob"))
	s.consider(t, request(time.Minute, "bob"))
	want := map[string]string{"alice": "UTC", "bob": "Asia/Shanghai"}
	for _, tr := range j.asked() {
		if tr.Location.String() != want[tr.Speaker] {
			t.Errorf("%s's time zone is %s", tr.Speaker, tr.Location)
		}
	}
	for _, tr := range j.asked()[:2] {
		if len(tr.Dialogue.Messages) != 2 || tr.Dialogue.Messages[1].Content != "words of bob" {
			t.Errorf("%s's transcript is %+v", tr.Speaker, tr.Dialogue.Messages)
		}
	}
	page, err := s.store.List(
		t.Context(),
		user("bob"),
		vectorstore.ListQuery{Filter: vectorstore.Filter{Audience: memory.Everything()}, OldestFirst: true, Limit: 1},
	)
	if err != nil || len(page.Memories) != 1 {
		t.Fatal(page, err)
	}
	m := page.Memories[0]
	if m.AgentID != "npc" || m.SessionID != "s" || m.Channel.ID != "g" || m.Provenance.SpeakerID != "bob" ||
		m.Provenance.ConsiderationID != c.ID ||
		fmt.Sprint(m.Provenance.MessageIDs) != "[#1]" ||
		m.Provenance.DecidedBy != "test/judge" {
		t.Errorf("stored as %+v", m)
	}
}

// TestPausedMeanwhile: what was accepted before the pause is not remembered after it.
func TestPausedMeanwhile(t *testing.T) {
	deciding, release := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(deciding) })
	s := newSystem(t, &judge{decide: func(context.Context, decide.Transcript) (decide.Verdict, error) {
		once()
		<-release
		return decide.Verdict{Reason: "nothing"}, nil
	}})
	s.consider(t, request(0, "u"))
	second := s.consider(t, request(0, "u"))
	<-deciding
	if _, err := s.settings.Update(
		t.Context(), user("u"),
		func(settings *memory.Settings) { settings.Paused, settings.UpdatedAt = true, time.Now() },
	); err != nil {
		t.Fatal(err)
	}
	close(release)
	r := request(time.Minute, "v", "u") // v's own line; u is paused and skipped at once
	s.consider(t, r)
	for {
		c, err := s.queue.Get(t.Context(), user("u"), second.ID, memory.Everything())
		if err != nil {
			t.Fatal(err)
		}
		if c.State.Final() {
			if c.State != memory.StateSkipped || !strings.Contains(c.Outcome.Reason, "paused") {
				t.Errorf("the second is %+v", c)
			}
			break
		}
	}
	if n := len(s.judge.asked()); n != 2 { // u's first and v's
		t.Errorf("decided %d times", n)
	}
}

// TestEndWaits: who waits gets what there is.
func TestEndWaits(t *testing.T) {
	deciding := make(chan struct{})
	s := newSystem(t, &judge{decide: func(ctx context.Context, _ decide.Transcript) (decide.Verdict, error) {
		close(deciding)
		<-ctx.Done()
		return decide.Verdict{}, ctx.Err()
	}})
	answer := make(chan memory.Consideration, 1)
	go func() {
		c, err := s.Consider(context.Background(), request(time.Minute, "u"))
		if err != nil {
			t.Error(err)
		}
		answer <- c
	}()
	<-deciding
	s.EndWaits()
	s.EndWaits()
	if c := <-answer; c.State != memory.StateRunning {
		t.Errorf("answered %+v", c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Stop(ctx) // cuts the decider off
	if c, err := s.Consider(t.Context(), request(time.Minute, "v")); err != nil || c.State != memory.StatePending {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
}
