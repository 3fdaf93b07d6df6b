package recall_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	embedlocal "github.com/memsidecar/memsidecar/internal/embed/local"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	"github.com/memsidecar/memsidecar/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// flaky is an embedder that fails on demand.
type flaky struct {
	embed.Embedder
	mu     sync.Mutex
	err    error
	refuse string // a text that is always refused
	texts  []string
}

func (f *flaky) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// taken returns the texts embedded since its last call.
func (f *flaky) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts := f.texts
	f.texts = nil
	return texts
}

func (f *flaky) Embed(ctx context.Context, purpose embed.Purpose, texts []string) ([][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if slices.Contains(texts, f.refuse) {
		return nil, errors.New("the text is refused")
	}
	if purpose == embed.ForDocument {
		f.texts = append(f.texts, texts...)
	}
	return f.Embedder.Embed(ctx, purpose, texts)
}

func newFlaky(t *testing.T, dimensions int) *flaky {
	t.Helper()
	e, err := embedlocal.New(dimensions)
	if err != nil {
		t.Fatal(err)
	}
	return &flaky{Embedder: e, refuse: "refused"}
}

// process is the part of the sidecar that indexes messages.
type process struct {
	*testing.T
	storage  *sqlite.Storage
	sessions *sqlstore.Sessions
	recall   *sqlstore.Recall
	embedder *flaky
	worker   *recall.Worker
}

func start(t *testing.T, dir string, embedder *flaky) *process {
	t.Helper()
	storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		T: t, storage: storage, sessions: sqlstore.NewSessions(storage, sqlstore.NewQueue(storage)),
		recall: sqlstore.NewRecall(storage), embedder: embedder,
	}
	p.worker = recall.NewWorker(p.recall, embedder, recall.Options{
		Vectors: 50, ChunkSize: 40, Enabled: func(namespace string) bool { return namespace != "off" }, BackoffMin: time.Second,
		BackoffMax: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	p.worker.Start()
	return p
}

func (p *process) stop() {
	p.Helper()
	p.worker.Stop()
	if err := p.storage.Close(); err != nil {
		p.Error(err)
	}
}

func (p *process) say(user string, texts ...string) {
	p.Helper()
	p.sayIn("n", user, texts...)
}

func (p *process) sayIn(namespace, user string, texts ...string) {
	p.Helper()
	a := session.Append{
		Scope: memory.Scope{Namespace: namespace, UserID: user, SessionID: user}, Audience: memory.Everything(), At: time.Now(),
	}
	for _, text := range texts {
		a.Messages = append(a.Messages, memory.Message{Role: memory.RoleUser, Speaker: user, Content: text, Time: time.Now()})
	}
	if _, err := p.sessions.Append(p.Context(), a); err != nil {
		p.Fatal(err)
	}
	p.worker.Wake()
}

// settle waits until the worker has done its work.
func settle() {
	time.Sleep(5 * time.Second) // in synctest's time
	synctest.Wait()
}

func query(user string) recall.Query {
	return recall.Query{User: memory.User{Namespace: "n", ID: user}, Limit: 1000, Filter: recall.Filter{Audience: memory.Everything()}}
}

// similar returns the messages that a vector search finds.
func (p *process) similar(user string) (found []string) {
	p.Helper()
	vectors, err := p.embedder.Embedder.Embed(p.Context(), embed.ForQuery, []string{"tea"})
	if err != nil {
		p.Fatal(err)
	}
	hits, err := p.recall.SearchVector(p.Context(), query(user), p.embedder.Fingerprint().String(), vectors[0])
	if err != nil {
		p.Fatal(err)
	}
	for _, h := range hits {
		found = append(found, h.Message.Content)
	}
	slices.Sort(found)
	return found
}

func (p *process) indexed(user string) (n int) {
	p.Helper()
	err := p.storage.Read(p.Context(), func(q sqldb.Querier) error {
		return q.QueryRow(p.Context(), `SELECT coalesce(sum(messages), 0) FROM message_indexes
			WHERE user_row = (SELECT id FROM users WHERE user_id = ?)`, user).Scan(&n)
	})
	if err != nil {
		p.Fatal(err)
	}
	return n
}

func texts(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s tea %03d", prefix, i)
	}
	return list
}

// TestWorkerEmbedsEachMessageOnce: Each user's newest messages are indexed and embedded once. After a restart the worker continues.
func TestWorkerEmbedsEachMessageOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := newFlaky(t, 64)
		p := start(t, dir, e)
		p.say("ann", texts("first", 30)...)
		p.say("bob", "bob's tea", "  ", strings.Repeat("long tea. ", 20))
		settle()
		if got := p.similar("ann"); !slices.Equal(got, texts("first", 30)) {
			t.Errorf("ann: %q", got)
		}
		if got := p.similar("bob"); len(got) != 2 {
			t.Errorf("bob: %q", got)
		}
		taken := e.taken()
		if len(taken) != 32 || slices.ContainsFunc(taken, func(s string) bool { return len(s) > 40 }) {
			t.Errorf("%d texts were embedded: %q", len(taken), taken)
		}
		p.say("ann", texts("second", 40)...)
		settle()
		if got := p.similar("ann"); !slices.Equal(got, append(texts("first", 30)[20:], texts("second", 40)...)) {
			t.Errorf("ann: %q", got)
		}
		if n := len(e.taken()); n != 40 {
			t.Errorf("%d texts were embedded, want the new ones", n)
		}
		if ann, bob := p.indexed("ann"), p.indexed("bob"); ann != 70 || bob != 0 {
			t.Errorf("%d and %d messages are indexed", ann, bob)
		}
		p.worker.Stop()
		p.worker = recall.NewWorker(p.recall, e, recall.Options{Log: slog.New(slog.DiscardHandler)}) // never started
		p.say("ann", texts("third", 80)...)
		p.stop()

		p = start(t, dir, e)
		defer p.stop()
		settle()
		if got := p.similar("ann"); !slices.Equal(got, texts("third", 80)[30:]) {
			t.Errorf("ann: %q", got)
		}
		if n := len(e.taken()); n != 50 {
			t.Errorf("%d texts were embedded, want the newest", n)
		}
		if n := p.indexed("ann"); n != 150 {
			t.Errorf("%d messages are indexed", n)
		}
	})
}

// TestWorkerSurvivesEmbedderOutage: During an embedder outage messages are found by keywords. Vectors follow after its recovery.
func TestWorkerSurvivesEmbedderOutage(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := newFlaky(t, 64)
		e.fail(&memory.TransientError{Err: errors.New("503"), Unavailable: true, RetryAfter: 7 * time.Second})
		p := start(t, dir, e)
		defer p.stop()
		p.say("ann", append(texts("some", 70), "refused", "later tea")...)
		settle()
		if n := p.indexed("ann"); n != 72 {
			t.Errorf("%d messages are indexed", n)
		}
		if got := p.similar("ann"); got != nil {
			t.Errorf("%q", got)
		}
		time.Sleep(10 * time.Minute)
		e.fail(nil)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := slices.Concat(texts("some", 70)[22:], []string{"later tea"})
		slices.Sort(want)
		if got := p.similar("ann"); !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
		hits, err := p.recall.SearchKeyword(t.Context(), query("ann"), "refused")
		if err != nil || len(hits) != 1 {
			t.Errorf("%v, %v", hits, err)
		}
		e.taken()
		p.say("ann", "another tea")
		settle()
		if got := e.taken(); !slices.Equal(got, []string{"another tea"}) {
			t.Errorf("%q was embedded", got)
		}
	})
}

// TestWorkerReplacesVectorsOfAnotherModel: After a change of model the newest messages get new vectors, and the old ones are deleted.
func TestWorkerReplacesVectorsOfAnotherModel(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := newFlaky(t, 64)
		p := start(t, dir, e)
		p.say("ann", texts("ann", 60)...)
		p.say("bob", texts("bob", 3)...)
		settle()
		p.stop()
		other := newFlaky(t, 128)
		other.refuse = "bob tea 001"
		p = start(t, dir, other)
		defer p.stop()
		settle()
		if ann, bob := p.similar("ann"), p.similar("bob"); len(ann) != 50 || len(bob) != 2 {
			t.Errorf("%q, %q", ann, bob)
		}
		var old int
		err := p.storage.Read(t.Context(), func(q sqldb.Querier) error {
			return q.QueryRow(t.Context(), `SELECT count(*) FROM message_embeddings WHERE fingerprint = ?`, e.Fingerprint().String()).Scan(&old)
		})
		if err != nil || old != 0 {
			t.Errorf("%d old vectors remain, %v", old, err)
		}
	})
}

// TestWorkerWaitsForAnEmbedder: The worker waits until an embedder is chosen.
func TestWorkerWaitsForAnEmbedder(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := newFlaky(t, 64)
		var later embed.Switch
		chosen := e.Embedder
		e.Embedder = &later
		p := start(t, dir, e)
		defer p.stop()
		p.say("ann", "tea")
		settle()
		later.Use(chosen)
		p.worker.Wake()
		settle()
		if got := p.similar("ann"); !slices.Equal(got, []string{"tea"}) {
			t.Errorf("%q", got)
		}
	})
}

// TestWorkerSkipsDisabledNamespaces: Messages are not embedded if their namespace has sessions disabled.
func TestWorkerSkipsDisabledNamespaces(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, dir, newFlaky(t, 256))
		defer p.stop()
		p.sayIn("off", "ann", "secret", "private")
		p.say("ann", "tea")
		settle()
		if got := p.embedder.taken(); !slices.Equal(got, []string{"tea"}) {
			t.Errorf("embedded %q", got)
		}
	})
}

// TestWorkerCatchUp: CatchUp returns after all existing messages are embedded, each once.
func TestWorkerCatchUp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := newFlaky(t, 64)
		p := start(t, dir, e)
		defer p.stop()
		p.worker.Stop()
		// never started
		p.worker = recall.NewWorker(p.recall, e, recall.Options{Vectors: 50, ChunkSize: 40, Log: slog.New(slog.DiscardHandler)})
		p.say("ann", texts("first", 70)...)
		p.worker.CatchUp()
		p.say("ann", texts("second", 5)...)
		p.worker.CatchUp()
		if got := p.similar("ann"); !slices.Equal(got, append(texts("first", 70)[25:], texts("second", 5)...)) {
			t.Errorf("%q", got)
		}
		if n := p.indexed("ann"); n != 70 {
			t.Errorf("%d messages are indexed", n)
		}
		if n := len(e.taken()); n != 50+5 {
			t.Errorf("%d texts were embedded, want each once", n)
		}
	})
}
