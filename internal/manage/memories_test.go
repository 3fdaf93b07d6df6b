package manage_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// world implements all dependencies of a Service. It records the steps, and can fail at one.
type world struct {
	vectorstore.Store // only the methods below are called
	failAt            string
	mu                sync.Mutex
	steps             []string
	meets             map[string]*sync.WaitGroup // steps that end when as many have begun
	applied           [][]vectorstore.Entry
}

var errFailed = errors.New("failed on purpose")

func (w *world) step(name string) error {
	w.mu.Lock()
	w.steps = append(w.steps, name)
	w.mu.Unlock()
	if meet := w.meets[name]; meet != nil {
		meet.Done()
		meet.Wait()
	}
	if name == w.failAt {
		return errFailed
	}
	return nil
}

func (w *world) Bar(context.Context, memory.User) (func(), error) {
	return func() { w.steps = append(w.steps, "release") }, w.step("bar")
}

func (w *world) Apply(_ context.Context, _ memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error) {
	if err := w.step("apply"); err != nil {
		return nil, err
	}
	w.applied = append(w.applied, entries)
	return slices.Repeat([]vectorstore.Applied{{Action: memory.ActionAdded}}, len(entries)), nil
}

// SearchKeyword finds nothing.
func (w *world) SearchKeyword(context.Context, memory.User, string, vectorstore.Filter, int) ([]vectorstore.Hit, error) {
	return nil, w.step("search")
}

func (w *world) Wake() {}

func (w *world) Embeddings(_ context.Context, texts []string) ([]vectorstore.Embedding, error) {
	return make([]vectorstore.Embedding, len(texts)), w.step("embed")
}

func (w *world) Forget(context.Context, memory.User) (int64, error) { return 3, w.step("memories") }

func (w *world) Delete(context.Context, memory.User, string, memory.Audience) error {
	return w.step("memory")
}

func (w *world) List(context.Context, memory.User, vectorstore.ListQuery) (vectorstore.Page, error) {
	return vectorstore.Page{Memories: []memory.Memory{{ID: "a"}, {ID: "b", SessionID: "s"}}}, w.step("list")
}

// Revisions returns revisions of each memory.
func (w *world) Revisions(context.Context, memory.User, string, memory.Audience) ([]vectorstore.Revision, error) {
	return []vectorstore.Revision{
		{
			ID:       "1",
			Previous: &memory.Memory{ID: "b"},
		}, {ID: "2", Previous: &memory.Memory{ID: "a"}}, {ID: "3", Change: vectorstore.ChangeAdded},
	}, w.step("revisions")
}

// Forget returns a different result type for each forgetter.
type (
	jobs     struct{ *world }
	settings struct{ *world }
	talks    struct{ *world }
	traces   struct{ *world }
	tokens   struct{ *world }
	shown    struct{ *world }
	days     struct{ *world }
	disk     struct{ *world }
)

func (j jobs) Forget(context.Context, memory.User) (queue.Forgotten, error) {
	return queue.Forgotten{Considerations: 1, Messages: 2}, j.step("jobs")
}

func (j jobs) ForgetMemory(context.Context, memory.User, string) error { return j.step("words") }

func (j jobs) List(context.Context, memory.User, queue.ListQuery) ([]queue.Job, string, error) {
	return []queue.Job{{Seq: 1}}, "", j.step("jobs")
}

func (s settings) Forget(context.Context, memory.User) (bool, error) { return true, s.step("settings") }

func (s settings) Get(context.Context, memory.User) (memory.Settings, error) {
	return memory.Settings{}, s.step("settings")
}

func (t traces) Flush(context.Context) { t.steps = append(t.steps, "flush") }

func (t traces) Forget(context.Context, memory.User) (int64, error) { return 4, t.step("traces") }

func (t traces) ForgetSession(context.Context, string, string, memory.Channel, ...string) (int64, error) {
	return 1, t.step("traces")
}

func (t traces) List(context.Context, trace.ListQuery) ([]trace.Record, string, error) {
	return []trace.Record{{ID: "t"}}, "", t.step("traces")
}

func (l shown) Registries(context.Context, memory.User, string, int) ([]lists.Exported, string, error) {
	return []lists.Exported{{}}, "", l.step("registries")
}

func (l shown) Items(context.Context, lists.View, string, int) (lists.Page, error) {
	return lists.Page{Items: []lists.Item{{Key: "k"}}}, l.step("items")
}

func (l shown) Lists(context.Context, memory.User, string, int) ([]lists.Shown, string, error) {
	return []lists.Shown{{List: "l"}}, "", l.step("lists")
}

func (l shown) ForgetSession(context.Context, string, string, memory.Channel, ...string) error {
	return l.step("forget lists")
}

func (t talks) Get(context.Context, session.Viewer, string) (session.Session, error) {
	return session.Session{ID: "s", Participants: []string{"u", "v"}}, t.step("session")
}

func (t talks) Participants(context.Context, string, string) ([]string, error) {
	return []string{"u", "v"}, t.step("participants")
}

func (t talks) Delete(context.Context, session.Viewer, string) (session.Deleted, error) {
	return session.Deleted{Messages: 5, Considerations: 6}, t.step("delete session")
}

func (t talks) Sessions(context.Context, memory.User, string, int) ([]session.Session, string, error) {
	return []session.Session{{ID: "s", Participants: []string{"u"}}}, "", t.step("sessions")
}

func (t talks) OwnMessages(context.Context, memory.User, string, int64, int) ([]session.Message, error) {
	return []session.Message{{Position: 1}}, t.step("messages")
}

func (t talks) Window(context.Context, session.Viewer, string, session.WindowQuery) (session.Window, error) {
	return session.Window{}, t.step("window")
}

func (t tokens) Today(context.Context, memory.User) (budget.Entry, error) {
	return budget.Entry{Day: "2026-11-20", Count: budget.Count{Tokens: 9}}, t.step("tokens")
}

func (d days) Bar(context.Context, memory.User) (func(), error) {
	return func() { d.steps = append(d.steps, "release digests") }, d.step("bar digests")
}

func (d days) Forget(context.Context, memory.User) (int64, error) { return 11, d.step("digests") }

func (d days) List(context.Context, memory.User, string, int) ([]digest.Entry, string, error) {
	return []digest.Entry{{}}, "", d.step("digests")
}

func (d disk) PurgeLater() { d.steps = append(d.steps, "purge later") }

func (d disk) Purge(context.Context) (bool, error) { return true, d.step("purge") }

func service(w *world) *manage.Service {
	return manage.NewService(manage.Deps{
		Store: w, Vectors: w, Considerations: jobs{w}, Traces: traces{w}, Purger: disk{w},
		Rewrite: func(context.Context, memory.User) {},
	})
}

func eraser(w *world) *manage.Eraser {
	digests := manage.NewForgetter("digests", days{w}.Forget, func(r *manage.Receipt, n int64) { r.Digests += n })
	return manage.NewEraser(manage.EraserConfig{
		Barriers: []manage.Barrier{w, days{w}},
		Forgetters: [][]manage.Forgetter{
			{manage.NewForgetter("traces", traces{w}.Forget, func(r *manage.Receipt, n int64) { r.Traces = n }), digests},
			{manage.NewForgetter("jobs", jobs{w}.Forget, func(r *manage.Receipt, f queue.Forgotten) { r.Messages = f.Messages })},
			{
				digests,
				manage.NewForgetter("settings", settings{w}.Forget, func(r *manage.Receipt, deleted bool) { r.Settings = deleted }),
				manage.NewForgetter("memories", w.Forget, func(r *manage.Receipt, n int64) { r.Memories = n }),
			},
		},
		Purger: disk{w}, Memories: service(w), Sessions: talks{w}, Traces: traces{w}, Lists: shown{w},
		Policies: session.Policies(func(namespace string) session.Policy { return session.Policy{Enabled: namespace != "off"} }),
	})
}

// TestDeleteSessionNeedsSessions: If the namespace has no sessions, nothing is deleted.
func TestDeleteSessionNeedsSessions(t *testing.T) {
	w := &world{}
	_, err := eraser(w).DeleteSession(t.Context(), session.Viewer{Namespace: "off"}, "s", true)
	if !errors.Is(err, memory.ErrPrecondition) || len(w.steps) > 0 {
		t.Errorf("%v, after %q", err, w.steps)
	}
}

// TestServiceValidatesWrites: The service itself refuses invalid writes.
func TestServiceValidatesWrites(t *testing.T) {
	w := &world{}
	scope := memory.Scope{Namespace: "n", UserID: "u"}
	_, _, err := service(w).Create(t.Context(), scope, manage.Draft{Kind: "odd"}, "", nil)
	wantInvalid(t, err, "memory.text", "memory.kind")
	_, err = service(w).Update(t.Context(), scope.User(), "m", memory.Everything(), manage.Edit{Importance: new(2.0)}, nil)
	wantInvalid(t, err, "memory.importance")
	_, err = (&manage.Settings{}).Update(t.Context(), scope.User(), manage.SettingsPatch{
		TimeZone: new("Local"), Language: new("not a language"), MemorizeEvery: new(new(-1)),
	}, nil)
	wantInvalid(t, err, "settings.time_zone", "settings.language", "settings.memorize_every")
	if len(w.steps) > 0 {
		t.Errorf("did %q", w.steps)
	}
}

func wantInvalid(t *testing.T, err error, fields ...string) {
	t.Helper()
	var got []string
	if invalid, ok := errors.AsType[*memory.InvalidError](err); ok {
		for _, v := range invalid.Violations {
			got = append(got, v.Field)
		}
	}
	if !slices.Equal(got, fields) {
		t.Errorf("%v names %q, want %q", err, got, fields)
	}
}

func exporter(w *world) *manage.Exporter {
	return &manage.Exporter{
		Store: w, Queue: jobs{w}, Sessions: talks{w}, Settings: settings{w}, Traces: traces{w}, Tokens: tokens{w}, Lists: shown{w}, Digests: days{w},
	}
}

// Jobs are barred before the first stage and until the end, also after a failure. A stage begins when the one before it succeeded.
func TestForgetRunsTheStagesInOrderWhileJobsAreBarred(t *testing.T) {
	parts := [][]string{
		{"bar"},
		{"bar digests"},
		{"digests", "traces"},
		{"jobs"},
		{"digests", "memories", "settings"},
		{"release"},
		{"release digests"},
		{"purge"},
	}
	const deleting = 5 // the number of forgetters
	for _, failAt := range append(slices.Concat(parts[:deleting]...), "purge", "") {
		w := &world{failAt: failAt}
		receipt, err := eraser(w).Forget(t.Context(), memory.User{})
		want := slices.Concat(parts...)
		switch i := slices.IndexFunc(parts, func(part []string) bool { return slices.Contains(part, failAt) }); {
		case failAt == "bar":
			want = parts[0]
		case failAt == "bar digests":
			want = []string{"bar", "bar digests", "release"}
		case i >= 0 && i < deleting:
			want = append(slices.Concat(parts[:i+1]...), "release", "release digests")
		}
		begin := 0
		for _, part := range parts[:deleting] { // concurrent steps come in any order
			if end := begin + len(part); end <= len(w.steps) {
				slices.Sort(w.steps[begin:end])
				begin = end
			}
			if slices.Contains(part, failAt) {
				break
			}
		}
		if !slices.Equal(w.steps, want) {
			t.Errorf("failing at %q: did %q, want %q", failAt, w.steps, want)
		}
		if (failAt == "") != (err == nil) || err != nil && !errors.Is(err, errFailed) {
			t.Errorf("failing at %q: %v", failAt, err)
		}
		full := manage.Receipt{Memories: 3, Messages: 2, Traces: 4, Settings: true, Digests: 22, Purged: true}
		if failAt == "" && receipt != full {
			t.Errorf("the receipt is %+v", receipt)
		}
	}
}

func TestForgetRunsTheForgettersOfAStageConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a step that waits for a later one deadlocks, which ends the test
		w := &world{meets: map[string]*sync.WaitGroup{}}
		var all sync.WaitGroup
		for _, name := range []string{"settings", "memories"} {
			all.Add(1)
			w.meets[name] = &all
		}
		if _, err := eraser(w).Forget(t.Context(), memory.User{}); err != nil {
			t.Error(err)
		}
	})
}

// TestDeleteSessionDeletesTheSessionLast: The session is deleted last, so that a retry after a failure does the rest. Jobs do not wait for
// the purge.
func TestDeleteSessionDeletesTheSessionLast(t *testing.T) {
	released := []string{"release", "release digests", "release", "release digests"}
	whole := append([]string{
		"session", "bar", "bar digests", "bar", "bar digests", "list", "memory", "flush", "words", "purge later",
		"list", "memory", "flush", "words", "purge later", "traces", "forget lists", "delete session",
	}, released...)
	whole = append(whole, "purge")
	for _, failAt := range []string{"session", "list", "memory", "traces", "forget lists", "delete session", ""} {
		w := &world{failAt: failAt}
		receipt, err := eraser(w).DeleteSession(t.Context(), session.Viewer{UserID: "u"}, "s", true)
		want := whole
		if i := slices.Index(whole, failAt); i >= 0 {
			want = slices.Clone(whole[:i+1])
			if i > 2 {
				want = append(want, released...)
			}
		}
		if !slices.Equal(w.steps, want) {
			t.Errorf("failing at %q: did %q, want %q", failAt, w.steps, want)
		}
		if (failAt == "") != (err == nil) || err != nil && !errors.Is(err, errFailed) {
			t.Errorf("failing at %q: %v", failAt, err)
		}
		if full := (manage.SessionReceipt{Deleted: session.Deleted{Messages: 5, Considerations: 6}, Memories: 2}); failAt == "" &&
			receipt != full {
			t.Errorf("the receipt is %+v", receipt)
		}
	}
	w := &world{}
	if _, err := eraser(w).DeleteSession(t.Context(), session.Viewer{UserID: "eve"}, "s", true); !errors.Is(err, memory.ErrPrecondition) ||
		len(w.steps) != 1 {
		t.Errorf("a caller without access did %q: %v", w.steps, err)
	}
}

// TestExportStopsAtTheFirstError: The export ends at the first failure, also at an error of the caller's.
func TestExportStopsAtTheFirstError(t *testing.T) {
	for _, failAt := range []string{
		"settings", "list", "jobs", "visit settings", "visit memory", "revisions", "visit revision",
		"visit consideration", "sessions", "window", "messages", "visit session", "visit message", "traces",
		"visit trace", "digests", "visit digest", "registries", "visit registry", "items", "visit item",
		"lists", "visit list", "tokens", "visit tokens", "",
	} {
		w := &world{failAt: failAt}
		visited := 0
		visit := func(name string) error {
			visited++
			return w.step("visit " + name)
		}
		err := exporter(w).Export(t.Context(), memory.User{ID: "u"}, manage.Visitor{
			Settings:      func(memory.Settings) error { return visit("settings") },
			Memory:        func(memory.Memory) error { return visit("memory") },
			Revision:      func(vectorstore.Revision) error { return visit("revision") },
			Consideration: func(queue.Job) error { return visit("consideration") },
			Session:       func(session.Session, *session.Summary) error { return visit("session") },
			Message:       func(session.Message) error { return visit("message") },
			Trace:         func(trace.Record) error { return visit("trace") },
			Tokens:        func(budget.Entry) error { return visit("tokens") },
			Digest:        func(digest.Entry) error { return visit("digest") },
			Registry:      func(lists.Exported) error { return visit("registry") },
			RegistryItem:  func(lists.Item) error { return visit("item") },
			NumberedList:  func(lists.Shown) error { return visit("list") },
		})
		if (failAt == "") != (err == nil) || err != nil && !errors.Is(err, errFailed) {
			t.Errorf("failing at %q: %v", failAt, err)
		}
		if failAt == "" && visited != 14 {
			t.Errorf("visited %d records", visited)
		}
		if last := w.steps[len(w.steps)-1]; failAt != "" && last != failAt {
			t.Errorf("failing at %q: continues with %q", failAt, last)
		}
	}
}

// TestImportStoresWhatPrecedesAnError: Memories before an invalid one are stored. The error names its position.
func TestImportStoresWhatPrecedesAnError(t *testing.T) {
	w := &world{}
	importer := service(w).Import(memory.Scope{Namespace: "n", UserID: "u"})
	good := memory.Memory{Text: "Likes tea", Kind: memory.KindFact}
	for range 101 {
		if err := importer.Add(t.Context(), good, nil); err != nil {
			t.Fatal(err)
		}
	}
	var known memory.Violations
	known.Add("memory[101].kind", "is wrong as well")
	err := importer.Add(t.Context(), memory.Memory{Kind: memory.KindFact}, known)
	if err == nil || !strings.Contains(err.Error(), "memory[101].text is required") ||
		!strings.Contains(err.Error(), "memory[101].kind is wrong as well") {
		t.Errorf("the error is %v", err)
	}
	if len(w.applied) != 2 || len(w.applied[0]) != 100 || len(w.applied[1]) != 1 || importer.Added != 101 {
		t.Errorf("stored %d batches, %d memories", len(w.applied), importer.Added)
	}
	if err := importer.Flush(t.Context()); err != nil || len(w.applied) != 2 {
		t.Errorf("flushing nothing: %v, %d batches", err, len(w.applied))
	}
	w.failAt = "apply"
	if err := importer.Add(t.Context(), good, nil); err != nil {
		t.Fatal(err)
	}
	if err := importer.Flush(t.Context()); !errors.Is(err, errFailed) || importer.Added != 101 {
		t.Errorf("while storage fails: %v, %d added", err, importer.Added)
	}
	w.failAt = ""
	if err := importer.Flush(t.Context()); err != nil || importer.Added != 102 {
		t.Errorf("after the outage: %v, %d added", err, importer.Added)
	}
}

func TestDraft(t *testing.T) {
	good := manage.Draft{Text: "x", Kind: memory.KindFact}
	for name, test := range map[string]struct {
		change func(*manage.Draft)
		wrong  string
	}{
		"good":           {func(*manage.Draft) {}, ""},
		"no text":        {func(d *manage.Draft) { d.Text = "" }, "m.text"},
		"longest text":   {func(d *manage.Draft) { d.Text = strings.Repeat("字", memory.MaxTextRunes) }, ""},
		"longer":         {func(d *manage.Draft) { d.Text = strings.Repeat("字", memory.MaxTextRunes+1) }, "m.text"},
		"no kind":        {func(d *manage.Draft) { d.Kind = "" }, "m.kind"},
		"all importance": {func(d *manage.Draft) { d.Importance = 1 }, ""},
		"more":           {func(d *manage.Draft) { d.Importance = 1.001 }, "m.importance"},
		"less":           {func(d *manage.Draft) { d.Importance = -0.001 }, "m.importance"},
		"NaN":            {func(d *manage.Draft) { d.Importance = math.NaN() }, "m.importance"},
		"long ago":       {func(d *manage.Draft) { d.ObservedAt = time.Date(1899, 12, 31, 0, 0, 0, 0, time.UTC) }, "m.observe_time"},
	} {
		d := good
		test.change(&d)
		v := d.Validate("m")
		if test.wrong == "" && len(v) != 0 || test.wrong != "" && (len(v) != 1 || v[0].Field != test.wrong) {
			t.Errorf("%s: %v, want %q", name, v, test.wrong)
		}
	}
}
